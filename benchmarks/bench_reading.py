"""How long every reading takes on text made to be hard for it.

Prints milliseconds for 100,000 characters of each text, and how many times longer that takes than
half of it: about 2 is linear. A reading that is too slow is marked `!`.

    python benchmarks/bench_reading.py
    python benchmarks/bench_reading.py --all    # every line, not only the slowest of each reading
"""

import argparse
import time
from collections.abc import Callable

from c4.tasks import TASKS, Example
from c4.tasks.reading.formula import normal_answer
from c4.tasks.reading.number import written_number
from c4.tasks.reading.plain import normal_code, normal_latex, normal_number, program_in
from c4.tasks.reading.program import written_program

LENGTH = 100_000
LIMIT_MS = 50
PROGRAM_LIMIT_MS = 1000
STUB = Example("def f(x):", "", tests="check(f)\n")
PIECES = [
    *(".", ",", "1", "1 ", "1,", "-", "- ", "$", "1.2e3 ", "10^", "{,}", "\\,1", "x2 ", "1,234"),
    *("\\boxed{", "\\boxed{}", "\\boxed{x}", "\\boxed ", "\\frac{", "\\frac", "\\frac12", "\\sqrt"),
    *("\\frac{1}{2}", "{", "}", "{}", "\\", "\\\\", "^{", "x=", "\\text{cm}", "answer $"),
    *("answer ", "A", "A ", "A or ", "A, ", "'A' ", "not A ", "the answer is A ", "A is wrong ", "A\n", "a) "),
    *("(A) ", "A. ", "A? ", "if A ", "I ", "é", "\N{REPLACEMENT CHARACTER}", " ", "\n", "\t", "\0"),
    *("@a\n", "```\n", "```python\n", "def f(\n", "def f(x):\n    return x\n", "(", "[{", "'", '"""'),
    *(">>> ", "import a\n", "from the\n", "x = 1\n", "    return x\n", "f = lambda x: x\n", "{1:"),
    *("lambda x:", "not ", "a.", "a+", "if x:\n", "[BEGIN]", "class A:\n", "f(", "def f(x): return ("),
]  # fmt: skip

PREFIXES = [
    *("def f():", "import a", "import a, b", "x: ", "x", "def f", "@a", "if x", "def f():\n  `"),
    *("def f():\n  ", "```", "```a", "f = lambda", "'", '"""', "[END]", "10^", "1", "1e", "$", "\\boxed"),
    *("\\boxed{5\\text{", "\\boxed 1", "answer", "answer $", "\\frac", "A", "A is", "not", "a", "A\n"),
]  # fmt: skip
RUNS = [
    *(" ", "\t", "\n", "`", ",", ", ", ",  b ", "(", ")", "[", "{", "}", "\\", "\\'", "'", '"', "a", "m"),
    *(": ", ",\\!234", "{,}234", "\\(", "answer\\(", "```x", "#"),
]  # fmt: skip
TEXTS = [(piece, "", piece, "") for piece in PIECES] + [
    (f"{prefix}{run}…!", prefix, run, "!") for prefix in PREFIXES for run in RUNS
]
"""How a text is called, what it begins with, what is repeated, and what it ends with."""

Reading = Callable[[str], object]


def readings() -> dict[str, Reading]:
    """Every extractor of the registry, once, and every normaliser."""
    found: dict[str, Reading] = {}
    for task in TASKS.values():
        for extract in (task.extract, task.plain):
            found[getattr(extract, "__name__", str(extract))] = extract
    for normaliser in (written_number, normal_answer, normal_number, normal_latex, normal_code):
        found[normaliser.__name__] = normaliser
    found["program_in"] = program_in
    found["written_program"] = lambda text: written_program(text, STUB)
    return found


def milliseconds(read: Reading, text: str) -> float:
    """The best of two, in time of this process alone, since machines are shared."""
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        read(text)
        best = min(best, (time.process_time() - start) * 1000)
    return best


def _text(prefix: str, run: str, end: str, length: int) -> str:
    return (prefix + run * (length // len(run) + 1))[:length] + end


def measure(read: Reading) -> list[tuple[float, float, str]]:
    """Time, ratio to half the text, and the text, slowest first."""
    rows = []
    for name, *parts in TEXTS:
        whole, half = (
            milliseconds(read, _text(*parts, length)) for length in (LENGTH, LENGTH // 2)
        )
        rows.append((whole, whole / max(half, 1e-3), name))
    return sorted(rows, reverse=True)


def main() -> None:
    """Print a table: one line for each reading, or for each reading and text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="Every text, not only the slowest.")
    args = parser.parse_args()
    print("| reading | text | ms for 100,000 characters | against half of it | |")
    print("|---|---|---|---|---|")
    for name, read in readings().items():
        limit = PROGRAM_LIMIT_MS if name in ("program_in", "written_program") else LIMIT_MS
        for took, ratio, piece in measure(read)[: None if args.all else 1]:
            mark = "!" if took > limit else ""
            print(f"| {name} | `{piece!r}` | {took:.1f} | {ratio:.1f} | {mark} |", flush=True)


if __name__ == "__main__":
    main()
