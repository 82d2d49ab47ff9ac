"""How right and wrong answers are graded in every dress that models give them.

For every task of the rows in a folder, the gold answer and a wrong one are written in each style
and graded under the careful reading and, in brackets, the plain one and the authors' release (once
where those two agree). A cell is the share of golds graded right and of wrong answers graded wrong;
one where careful falls below another is marked `<`.

    python benchmarks/answer_styles.py                        # the rows shipped with the tests
    python benchmarks/answer_styles.py --data FOLDER --limit 200
"""

import argparse
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from c4.tasks import TASKS, AnswerReading, Example, Family, ReadingStyle, Task, grade, load_samples
from c4.tasks.grading import answer_program
from c4.tasks.sandbox.run import RunEnd, run_program

SHIPPED = Path(__file__).parents[1] / "tests" / "data" / "rows"
RELEASE_LETTER = re.compile(r"\b([A-M])\b")
"""How the authors' release finds a letter; it sees `'B'`, which the paper's words leave out."""


@dataclass(frozen=True)
class Answered:
    """An answer to be dressed: of the example itself, or a wrong one."""

    example: Example
    value: str
    """A letter, a number, LaTeX, or a program."""

    @property
    def choice(self) -> str:
        """The text of the answered choice."""
        return self.example.choices["ABCDEFGHIJKLM".index(self.value)]

    @property
    def other(self) -> str:
        """A letter that is offered and not answered."""
        offered = "ABCDEFGHIJKLM"[: len(self.example.choices)]
        return next(letter for letter in offered if letter != self.value)

    @property
    def others(self) -> list[str]:
        """All such letters."""
        offered = "ABCDEFGHIJKLM"[: len(self.example.choices)]
        return [letter for letter in offered if letter != self.value]


Style = Callable[[Answered], str | None]
"""Writes an answer; None where the style does not apply to it."""


def _listed(words: Sequence[str], joint: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {joint} {words[-1]}"


LETTER_STYLES: dict[str, Style] = {
    "C. text": lambda a: f"{a.value}. {a.choice}",
    "C": lambda a: a.value,
    "C.": lambda a: f"{a.value}.",
    "(C) text": lambda a: f"({a.value}) {a.choice}",
    "C) text": lambda a: f"{a.value}) {a.choice}",
    "C text": lambda a: f"{a.value} {a.choice}",
    "c)": lambda a: f"{a.value.lower()})",
    "'C'": lambda a: f"'{a.value}'",
    "‘C’": lambda a: f"‘{a.value}’ fits.",
    "C's": lambda a: f"{a.value}'s the best choice.",
    "**C**": lambda a: f"**{a.value}**",
    "boxed": lambda a: rf"$\boxed{{\text{{{a.value}}}}}$",
    "The answer is C.": lambda a: f"The answer is {a.value}.",
    "Answer: (C)": lambda a: f"Answer: ({a.value})",
    "**Answer:** C": lambda a: f"**Answer:** {a.value}\n\n{a.choice}",
    "I think the answer is C.": lambda a: f"I think the answer is {a.value}.",
    "I would choose option C": lambda a: f"I would choose option {a.value} because it fits.",
    "A careful reading": lambda a: f"A careful reading shows that the answer is {a.value}.",
    "A good question": lambda a: f"A good question. I'd go with {a.value}.",
    "Option C is correct": lambda a: f"Option {a.value} is correct.",
    "A is incorrect": lambda a: f"{a.other} is incorrect, so the answer is {a.value}.",
    "A is wrong, so C": lambda a: f"{a.other} is wrong, so {a.value}.",
    "A or C? It is C": lambda a: f"{a.other} or {a.value}? It is {a.value}.",
    "C rather than A": lambda a: f"{a.value} rather than {a.other}.",
    "not A but C": lambda a: f"It is not {a.other} but {a.value}.",
    "A, B and D are wrong": lambda a: f"{_listed(a.others, 'and')} are wrong; {a.value}.",
    "eliminate A, B, D": lambda a: (
        f"We can eliminate {_listed(a.others, 'and')}. That leaves {a.value}."
    ),
    "explained afterwards": lambda a: (
        f"The correct answer is {a.value}. {a.other} is not, since it says less."
    ),
    "choices repeated": lambda a: "\n".join(
        [f"{letter}. {text}" for letter, text in zip("ABCDEFGHIJKLM", a.example.choices, strict=False)]
        + [f"The answer is {a.value}."]
    ),
    "JSON": lambda a: f'{{"answer": "{a.value}"}}',
    "at first A": lambda a: f"At first I thought {a.other}. Actually, the answer is {a.value}.",
    "<answer>": lambda a: f"<answer>{a.value}</answer>",
    "A is also plausible": lambda a: f"{a.value} is the correct answer. {a.other} is also plausible.",
    "A is also a valid point": lambda a: (
        f"{a.value} is correct. Note that {a.other} is also a valid point but weaker."
    ),
    "A is the better known": lambda a: (
        f"The answer is {a.value}, since {a.other} is the better known but {a.others[-1]} is right out."
    ),
    "between A and C, C": lambda a: f"Between {a.other} and {a.value}, {a.value}",
    "although A is right": lambda a: (
        f"{a.value} is correct, although {a.other} is right about one thing."
    ),
}  # fmt: skip


def _grouped(value: str, joint: str) -> str | None:
    sign, whole, rest = re.fullmatch(r"(-?)(\d+)(.*)", value).groups()  # type: ignore[union-attr]
    return f"{sign}{int(whole):,}{rest}".replace(",", joint) if len(whole) > 3 else None


def _indian(value: str) -> str | None:
    sign, whole, rest = re.fullmatch(r"(-?)(\d+)(.*)", value).groups()  # type: ignore[union-attr]
    if len(whole) < 6:
        return None
    pairs = re.sub(r"(?<=\d)(?=(?:\d\d)+$)", ",", whole[:-3])
    return f"{sign}{pairs},{whole[-3:]}{rest}"


def _scientific(value: str, form: str) -> str | None:
    sign, whole, rest = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?", value).groups()  # type: ignore[union-attr]
    if len(whole) < 4 or rest:
        return None
    return form.format(f"{sign}{whole[0]}.{whole[1:]}", len(whole) - 1)


def _negative(value: str, sign: str) -> str | None:
    return value.replace("-", sign) if value.startswith("-") else None


def _sentence(value: str | None) -> str | None:
    return value and f"We add 1 and 2. So the answer is {value}."


NUMBER_STYLES: dict[str, Style] = {
    "The answer is 12.": lambda a: _sentence(a.value),
    "#### 12": lambda a: f"2 + 3 = 5\n#### {a.value}",
    "$12": lambda a: _sentence(f"${a.value}"),
    "boxed": lambda a: rf"2 + 3 = 5, so $\boxed{{{a.value}}}$.",
    r"boxed \$": lambda a: rf"so \boxed{{\${a.value}}}",
    "**12**": lambda a: f"It is **{a.value}**.",
    "12 dollars": lambda a: f"He pays {a.value} dollars.",
    "12 m^2": lambda a: f"The area is {a.value} m^2.",
    "12%": lambda a: f"It is {a.value}%.",
    "12.00": lambda a: _sentence(f"{a.value}.00") if "." not in a.value else None,
    "= 12": lambda a: f"20 - 5 = {a.value}",
    "1,234": lambda a: _sentence(_grouped(a.value, ",")),
    "1{,}234": lambda a: _sentence(_grouped(a.value, "{,}")),
    r"1,\!234": lambda a: _sentence(_grouped(a.value, r",\!")),
    r"1\,234": lambda a: _sentence(_grouped(a.value, r"\,")),
    "thin space": lambda a: _sentence(_grouped(a.value, "\u202f")),
    "1,14,200": lambda a: _sentence(_indian(a.value)),
    "1.2e3": lambda a: _sentence(_scientific(a.value, "{}e{}")),
    r"1.2 \times 10^3": lambda a: _sentence(_scientific(a.value, r"{} \times 10^{{{}}}")),
    "1.2×10^3": lambda a: _sentence(_scientific(a.value, "{}×10^{}")),
    "−5": lambda a: _sentence(_negative(a.value, "−")),
    "- 5": lambda a: _sentence(_negative(a.value, "- ")),
    "-$5": lambda a: _sentence(_negative(a.value, "-$")),
}  # fmt: skip


def _boxed(latex: str | None) -> str | None:
    return latex and rf"We add 1 and 2. So it is $\boxed{{{latex}}}$."


def _changed(value: str, pattern: str, written: str | Callable[[re.Match[str]], str]) -> str | None:
    other = re.sub(pattern, written, value)
    return _boxed(other) if other != value else None


def _spaced(latex: str) -> str:
    """Spaces around signs; behind a comma too, but not inside a number."""
    return re.sub(r",(?!\d{3}(?!\d)|\\!)", ", ", latex.replace("=", " = "))


NUMERIC = re.compile(r"-?[\d.,]+")
LATEX_STYLES: dict[str, Style] = {
    "boxed": lambda a: _boxed(a.value),
    "spaced": lambda a: _boxed(" " + _spaced(a.value) + " "),
    "fbox": lambda a: rf"so \fbox{{{a.value}}}",
    "boxed g": lambda a: rf"so \boxed {a.value}." if re.fullmatch(r"\d+|[a-z]", a.value) else None,
    "x=": lambda a: _boxed(f"x={a.value}") if NUMERIC.fullmatch(a.value) else None,
    r"\text{ cm}": lambda a: _boxed(rf"{a.value}\text{{ cm}}") if NUMERIC.fullmatch(a.value) else None,
    r"\%": lambda a: _boxed(rf"{a.value}\%") if NUMERIC.fullmatch(a.value) else None,
    r"\$": lambda a: _boxed(rf"\${a.value}") if NUMERIC.fullmatch(a.value) else None,
    r"^{\circ}": lambda a: _changed(a.value, r"\^\\circ", r"^{\\circ}"),
    "no degrees": lambda a: _changed(a.value, r"\^\\circ", ""),
    "x^{5}": lambda a: _changed(a.value, r"\^(\d)(?!\d)", r"^{\1}"),
    "_{8}": lambda a: _changed(a.value, r"_(\d)", r"_{\1}"),
    "a/b": lambda a: _changed(a.value, r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2"),
    r"\dfrac": lambda a: _changed(a.value, r"\\frac", r"\\dfrac"),
    r"\sqrt2": lambda a: _changed(a.value, r"\\sqrt\{(\d)\}", r"\\sqrt\1"),
    r"\displaystyle": lambda a: _boxed(rf"\displaystyle {a.value}"),
    "bmatrix": lambda a: _changed(a.value, "pmatrix", "bmatrix"),
    r"\mathbf": lambda a: _boxed(rf"\mathbf{{{a.value}}}"),
    r"\left(": lambda a: _boxed(re.sub(r"(?<![t\w])\((.*)\)", r"\\left(\1\\right)", a.value)),
    "unit dropped": lambda a: _changed(a.value, r"\\(?:text|mbox)\{ ?(?:cm|inches|degrees)\}(\^2)?", ""),
    "1,234": lambda a: _boxed(_grouped(a.value, ",")) if a.value.isdigit() else None,
    "decimal": lambda a: _changed(a.value, r"^\\frac\{(\d+)\}\{(2|4|5|8|10|100)\}$",
                                  lambda m: str(int(m[1]) / int(m[2]))),
}  # fmt: skip


def _fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def _split_imports(code: str) -> tuple[str, str]:
    lines = code.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ", "@")))
    return "\n".join(lines[:first]).strip(), "\n".join(lines[first:])


def _separate_fences(code: str) -> str:
    imports, rest = _split_imports(code)
    return f"{_fenced(imports or 'import math')}\nThen the function:\n{_fenced(rest)}"


def _signature(code: str) -> str:
    line = next(line for line in code.split("\n") if line.startswith("def "))
    return line if line.rstrip().endswith(":") else line + "\n    ..."


def _prompted(code: str) -> str:
    return "\n".join(
        (">>> " if line and not line.startswith((" ", "\t")) else "... ") + line
        for line in code.split("\n")
    )


def _body(answered: Answered) -> str | None:
    prompt = answered.example.prompt
    head = re.findall(r"^def \w+.*", prompt, re.MULTILINE)
    _, found, body = (
        answered.value.rpartition(prompt[prompt.rfind(head[-1]) :].strip())
        if head
        else ("", "", "")
    )
    return body.strip("\n") if found else None


def _lambda(answered: Answered) -> str | None:
    found = re.search(
        r"^def (\w+)\(([^()]*)\):\n(?:\s*\"\"\"(?:.|\n)*?\"\"\"\n)?    return ([^\n]+)\s*\Z",
        _split_imports(answered.value)[1],
        re.MULTILINE,
    )
    if not found or "lambda" in found[3] or ":" in found[2]:
        return None
    imports = _split_imports(answered.value)[0]
    return f"{imports}\n{found[1]} = lambda {found[2]}: {found[3]}".lstrip()


CODE_STYLES: dict[str, Style] = {
    "bare": lambda a: a.value,
    "fenced": lambda a: _fenced(a.value),
    "fence, no language": lambda a: _fenced(a.value, ""),
    "never closed": lambda a: f"```python\n{a.value}",
    "closing fence glued": lambda a: f"```python\n{a.value}```",
    "closing fence, prose": lambda a: f"{a.value}\n```\nThis function does what was asked.",
    "fence closes with prose": lambda a: f"```python\n{a.value}\n``` This is it.",
    "fence without a newline": lambda a: f"```python {a.value}\n```",
    "prose around": lambda a: f"Here's the function:\n\n{a.value}\n\nIt doesn't need more.",
    "prose, fence, prose": lambda a: f"Sure!\n\n{_fenced(a.value)}\n\nLet's see why (it's easy).",
    "shell fence first": lambda a: f"{_fenced('pip install numpy', 'bash')}\n{_fenced(a.value)}",
    "signature fence first": lambda a: f"{_fenced(_signature(a.value))}\nIn full:\n{_fenced(a.value)}",
    "example fence behind": lambda a: f"{_fenced(a.value)}\nUse it:\n{_fenced('print(f(3))')}",
    "prose from": lambda a: f"from the description we see what to do:\n{a.value}",
    "prose import": lambda a: f"import nothing unless you must.\n\n{a.value}",
    "one leading space": lambda a: textwrap.indent(a.value, " "),
    "first line's space": lambda a: " " + a.value,
    "indented by four": lambda a: textwrap.indent(a.value, "    "),
    "separate fences": lambda a: _separate_fences(a.value),
    "[BEGIN] [DONE]": lambda a: f"[BEGIN]\n{a.value}\n[DONE]",
    "<code>": lambda a: f"<code>\n{a.value}\n</code>",
    ">>>": lambda a: _prompted(a.value) if '"""' not in a.value else None,
    "lambda": _lambda,
    "body only": _body,
    "body, indent lost": lambda a: (body := _body(a)) and body.lstrip(),
    "body, fenced": lambda a: (body := _body(a)) and _fenced(body),
    "cut second function": lambda a: f"{a.value}\n\ndef helper(x",
    "demonstration": lambda a: f"{a.value}\n\nprint({_name(a)}())",
    "CRLF": lambda a: a.value.replace("\n", "\r\n"),
    "~~~": lambda a: f"~~~python\n{a.value}\n~~~",
    "Answer:": lambda a: f"Answer:\n{a.value}",
}  # fmt: skip


def _name(answered: Answered) -> str:
    return re.findall(r"^def (\w+)", answered.value, re.MULTILINE)[-1]


STYLES = {
    Family.LETTERS: LETTER_STYLES,
    Family.LONG_REASONING: NUMBER_STYLES,
    Family.CODE: CODE_STYLES,
}


def styles_of(task: Task) -> dict[str, Style]:
    """The styles that answers of a task come in."""
    return LATEX_STYLES if task.name == "math" else STYLES[task.family]


def wrong_answer(task: Task, example: Example) -> str:
    """An answer that is certainly not the gold one."""
    if task.family is Family.LETTERS:
        return Answered(example, example.target).others[-1]
    if task.family is Family.CODE:
        return re.sub(
            r"^(\s+)return\b.*(?:\n\1\s+.*)*", r"\1return 'no'", example.target, flags=re.MULTILINE
        )
    if task.name == "math":
        digits = re.search(r"\d", example.target)
        swapped = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10 or 1), example.target, count=1)
        return swapped if digits else example.target + "+7"
    changed = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10 or 1), example.target, count=1)
    return changed


@cache
def passes(preamble: str, program: str, tests: str, reference: str) -> bool:
    """Whether a program passes; many dresses hold the same one."""
    outcome = run_program(preamble, program, tests, reference=reference)
    return outcome.verdict is RunEnd.PASSED


def is_graded_right(task: Task, example: Example, text: str, style: ReadingStyle) -> bool:
    """As `grade` says, each program run once."""
    if task.family is not Family.CODE:
        return bool(grade(task, example, text, AnswerReading(style)).correct)
    program = answer_program(task, example, text, style)
    return program is not None and passes(example.preamble, program, example.tests, example.target)


def release_letter(example: Example, text: str) -> bool:
    """Whether the authors' release grades a letter right."""
    found = RELEASE_LETTER.search(text)
    return found is not None and found[1] == example.target


@dataclass
class Cell:
    """Counts of one style on one task."""

    right: int = 0
    wrong: int = 0
    n: int = 0
    n_wrong: int = 0

    def __str__(self) -> str:
        return f"{share(self.right, self.n)}/{share(self.wrong, self.n_wrong)}"


def share(count: int, of: int) -> str:
    """A percentage, short."""
    return "–" if not of else f"{100 * count / of:.4g}"


def measure(task: Task, examples: list[Example], style: Style) -> dict[str, Cell]:
    """The cells of a style, by reading."""
    cells = {"careful": Cell(), "plain": Cell(), "release": Cell()}
    for example in examples:
        wrong = wrong_answer(task, example)
        for value, is_gold in ((example.target, True), (wrong, False)):
            text = style(Answered(example, value.rstrip("\n")))
            if text is None or (not is_gold and value == example.target):
                continue
            for name, cell in cells.items():
                given = _graded(task, example, text, name)
                cell.n += is_gold
                cell.right += is_gold and given
                cell.n_wrong += not is_gold
                cell.wrong += not is_gold and not given
    return cells


def _graded(task: Task, example: Example, text: str, reading: str) -> bool:
    if reading == "release" and task.family is Family.LETTERS:
        return release_letter(example, text)
    style = ReadingStyle.PLAIN if reading == "release" else ReadingStyle(reading)
    return is_graded_right(task, example, text, style)


def examples_of(task: Task, folder: Path, limit: int | None) -> list[Example]:
    """The usable rows of a task."""
    path = folder / f"{task.name}.jsonl"
    loaded = load_samples(task, str(path), skip=0)
    loaded = load_samples(task, str(path), skip=0, n=loaded.usable)
    return [sample.example for sample in loaded.samples][:limit]


Cells = dict[str, dict[str, Cell]]
"""By style, then by reading."""


def cells_of(task: Task, folder: Path, limit: int | None) -> Cells:
    """Every style of a task, and all of them together."""
    examples = examples_of(task, folder, limit)
    styles = styles_of(task)
    with ThreadPoolExecutor(2 if task.family is Family.CODE else 1) as pool:
        rows = list(pool.map(lambda style: measure(task, examples, style), styles.values()))
    total = {"careful": Cell(), "plain": Cell(), "release": Cell()}
    for cells in rows:
        for reading, cell in cells.items():
            for field, count in vars(cell).items():
                setattr(total[reading], field, getattr(total[reading], field) + count)
    return dict(zip(styles, rows, strict=True)) | {"all": total}


def table(columns: dict[str, Cells]) -> Iterator[str]:
    """The lines of a table, style by task."""
    yield "| style | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for style in next(iter(columns.values())):
        yield (
            f"| `{style}` | " + " | ".join(shown(cells[style]) for cells in columns.values()) + " |"
        )


def shown(cells: dict[str, Cell]) -> str:
    """Careful, and in brackets plain and release; `<` where careful is below one of them."""
    careful, others = cells["careful"], (cells["plain"], cells["release"])
    if not careful.n + careful.n_wrong:
        return "–"
    below = any(careful.right < other.right or careful.wrong < other.wrong for other in others)
    differs = str(cells["plain"]) != str(cells["release"])
    bracket = f"{cells['plain']}; {cells['release']}" if differs else str(cells["plain"])
    return f"{careful} ({bracket}){' <' if below else ''}"


def main() -> None:
    """Print one table per task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHIPPED, help="Folder of <task>.jsonl files.")
    parser.add_argument("--task", action="append", choices=TASKS, help="Only these tasks.")
    parser.add_argument("--limit", type=int, help="Rows of each task, at most.")
    args = parser.parse_args()
    print("Golds graded right/wrong answers graded wrong, in percent: careful (plain; release).")
    groups: dict[tuple[str, ...], dict[str, Cells]] = {}
    for name in args.task or TASKS:
        if (args.data / f"{name}.jsonl").exists():
            cells = cells_of(TASKS[name], args.data, args.limit)
            groups.setdefault(tuple(cells), {})[name] = cells
    for columns in groups.values():
        print("\n" + "\n".join(table(columns)), flush=True)


if __name__ == "__main__":
    main()
