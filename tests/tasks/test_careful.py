"""The careful readings: answers in the dresses that models give them."""

import ast
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.answer_styles import SHIPPED as ROWS
from benchmarks.answer_styles import examples_of, measure, styles_of
from c4.errors import ConfigError
from c4.tasks import TASKS, AnswerReading, Example, Grader, ReadingStyle, grade, read_under
from c4.tasks.grading import check_can_grade
from c4.tasks.problems import problem
from c4.tasks.reading.formula import last_box, normal_answer
from c4.tasks.reading.letter import stated_letter
from c4.tasks.reading.number import last_written_number, written_number
from c4.tasks.reading.plain import first_letter
from c4.tasks.reading.program import written_function, written_program
from c4.tasks.sandbox import math_verify as math_verify_module
from c4.tasks.sandbox.run import can_isolate

CITIES = ("Paris", "London", "Rome", "Berlin")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Eliminate A. C", "C"),
        ("C, not A", "C"),
        ("The answer: option C because A is a trap", "C"),
        ("A. Paris\nB. London\nC. Rome\nD. Berlin\n\nC", "C"),
        ("A: wrong\nB: wrong\nC: right\nD: wrong", "C"),
        ("A student would pick A, but the answer is D", "D"),
        ("A Paris", "A"),
        ("A because it is", "A"),
        ("the answer is c.", "C"),
        ("Incorrect: A, C, D. Correct: B", "B"),
        ("Between A and C, I choose A", "A"),
        ("The answer is B. A is the best known", "B"),
        ("The answer is B. A is plausible, too.", "B"),
        ("While A is right about the date, B.", "B"),
        ("B is correct, although A is right in that it is large", "B"),
        ("A is plausible but B is the most plausible", "B"),
        ("B is the most plausible. A is plausible", "B"),
        ("A is possible, but B is better.", "B"),
        (r"\boxed{C}. A is valid as well", "C"),
        ("A seems plausible", "A"),
    ],
)
def test_a_letter_is_the_choice_that_the_text_decides_for(text, letter):
    found = stated_letter(text, CITIES)
    assert (found.value, text[found.start : found.end].upper()) == (letter, letter)


SHIPPED = [
    name for name in TASKS if TASKS[name].family != "code" and (ROWS / f"{name}.jsonl").exists()
]


@pytest.mark.parametrize("name", SHIPPED)
def test_answers_are_read_in_every_style_that_the_docs_list(name):
    """docs/answers.md has the table over all rows."""
    examples = examples_of(TASKS[name], ROWS, 4)
    for label, style in styles_of(TASKS[name]).items():
        cell = measure(TASKS[name], examples, style)["careful"]
        assert (cell.right, cell.wrong) == (cell.n, cell.n_wrong), label


@pytest.mark.parametrize(
    "text",
    ["A careful reading…", "I am not sure", "A is wrong", "not B", "E", "M. Paris", "a dog", ""],
)
def test_articles_pronouns_ruled_out_and_unoffered_letters_are_no_answer(text):
    assert stated_letter(text, CITIES) is None


@pytest.mark.parametrize("task", ["mmlu", "arc_c", "hellaswag", "winogrande", "piqa", "truthfulqa"])
def test_on_embedded_answers_both_readings_agree(task):
    for i in range(60):
        made = problem(task, i)
        example = TASKS[task].read(made.row)
        for text in (f"{example.target}. {made.solution}", f"{example.target}.", example.target):
            careful, plain = stated_letter(text, example.choices), first_letter(text)
            assert (
                (careful.value, careful.start) == (plain.value, plain.start) == (example.target, 0)
            )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12 - 5", "5"),
        ("12 − 5", "5"),
        ("list:\n- 5", "5"),
        (r"2.5 \times 10^{-2}", "0.025"),
        ("3×10⁵", "300000"),
        (r"\boxed{\$18.90}", "18.9"),
        ("25\\%", "25"),
        ("Rs.500", "500"),
        ("version 1.2.3", "1.2.3"),
    ],
)
def test_a_number_is_read_in_any_dress(text, value):
    assert last_written_number(text).value == value
    assert written_number(value) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x=5", "5"),
        (r"864 \mbox{ inches}^2", "864"),
        ("40_{9}", "40_9"),
        (r"137\frac12", "275/2"),
        (r"11\sqrt2", r"11 \sqrt{2}"),
        (r"\displaystyle \dfrac{3}{4}", r"\frac34"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
        (r"\text{(C)}", "C"),
        (r"-\frac{\pi}{6}", r"-\pi/6"),
        (r"\frac{1+\sqrt5}{2}", r"(1+\sqrt{5})/2"),
        (r"x \in [-2,7]", "[-2,7]"),
        ("x=1, x=2", "1,2"),
        ("1, 2", "1,2"),
        ("1,200, 5", "1200,5"),
        ("(1, 200)", "(1,200)"),
        ("1, 200", "1,~200"),
        ("-(1/2)", "-0.5"),
        (r"5\text{ square feet per hour}", "5"),
    ],
)
def test_what_is_certainly_equal_has_one_normal_form(one, other):
    assert normal_answer(one) == normal_answer(other)
    assert normal_answer(normal_answer(one)) == normal_answer(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(3,4]", "(3,4)"),
        ("1/3", "0.333"),
        (r"2\frac{1}{2}", "21/2"),
        (r"\frac{1}{2}x", r"\frac{1}{2x}"),
        (r"\frac12 3", "1/23"),
        (r"x^\frac12", r"\frac{x}{2}"),
        ("5m", "5"),
        ("1,2", "12"),
        ("40_9", "409"),
        ("x=1,y=2", "y=1,x=2"),
        ("1, 200", "1200"),
        ("1, 200", "1,200"),
        ("-1, 200, 300", "-1200300"),
        (r"5\text{ cents}", r"5\text{ dollars}"),
        ("5 cents", r"\$5"),
        ("(1/2", "1/2"),
        ("1/2)", "1/2"),
        ("-(1/2", "-1/2"),
    ],
)
def test_what_may_differ_keeps_its_form(one, other):
    assert normal_answer(one) != normal_answer(other)


@pytest.mark.parametrize(
    ("text", "value"), [(r"\boxed g", "g"), (r"\fbox{5}", "5"), (r"\boxed 42.", "42")]
)
def test_a_box_needs_no_braces(text, value):
    assert last_box(text).value == value


CODE = "import math\n\ndef f(x):\n    if x > 4:\n        return math.sqrt(x)\n    return 0"
BODY = "    if x > 4:\n        return math.sqrt(x)\n    return 0"
ASKED = Example(
    "Complete.\nimport math\n\ndef f(x):\n    '''A root.'''", CODE, "import math\n", "check(f)\n"
)


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        f"```python\n{CODE}```",
        f"{CODE}\n```\nThis is it.",
        f"```python\n{CODE}\n``` as asked",
        f"```python {CODE}\n```",
        f"```bash\npip install x\n```\n```python\n{CODE}\n```",
        f"```python\ndef f(x):\n```\nIn full:\n```python\n{CODE}\n```",
        f"from the text we know:\n{CODE}\n\nIt's done (see above.",
        f"import nothing more.\n{CODE}",
        f" {CODE}",
        "```python\nimport math\n```\nThen\n```python\n" + CODE.partition("\n\n")[2] + "\n```",
        f"[BEGIN]\n{CODE}\n[DONE]",
        ">>> import math\n>>> def f(x):\n" + "\n".join(f"... {line}" for line in BODY.split("\n")),
        "import math\nf = lambda x: math.sqrt(x) if x > 4 else 0",
        BODY,
        BODY.lstrip(),
        f"```python\n{BODY}\n```",
        f"{CODE}\n\nprint(f())\nassert f(1) == 7",
        CODE.replace("    ", "\t"),
        f"{CODE}\n\ndef broken(",
        "class Solution:\n    def f(self, x):\n        return x ** 0.5 if x > 4 else 0",
    ],
)
def test_the_program_is_found_in_every_wrapping(text):
    program = written_program(text, ASKED)
    names: dict = {}
    exec(compile(f"import math\n{program}", "<reference>", "exec"), names)
    assert (names["f"](9), names["f"](1)) == (3, 0)
    assert written_function(text) is not None


def function_in(text):
    """The function `f` of the program that is found in a text, ready to be called."""
    names: dict = {}
    exec(compile(written_program(text, ASKED), "<reference>", "exec"), names)
    return names["f"]


@pytest.mark.parametrize(
    "written",
    [
        "'<s>' + x + '</s>'",
        "'<code>' + x",
        "x + '[DONE]'",
        '"\u00a0" + x',
        r"'\'<pre>\'' + x",
        "'''\n<code>\n''' + x",
        "''.join([PYTHON])",
    ],
)
def test_strings_keep_what_looks_like_a_wrapping(written):
    found = function_in(f"PYTHON = 'py'\ndef f(x):\n    return {written}")
    assert found("a") == eval(written, {"x": "a", "PYTHON": "py"})


@pytest.mark.parametrize(
    "text",
    [
        "<code>def f(x):\u00a0return 'x'</code> as asked",
        "Here's <code>def f(x):\u00a0return 'x'</code>",
        "def f(x):\n\u00a0\u00a0return 'x'</s>",
        "\\begin{verbatim}\ndef f(x):\n  return 'x'\n\\end{verbatim}",
        "def f(x):\r    return 'x'\r[DONE]",
    ],
)
def test_wrappings_outside_of_strings_are_taken_off(text):
    assert function_in(text)(1) == "x"


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x\n(1,\n 2)",
        "N = 1; N\ndef f(x):\n    return x * N",
        "def f(x):\n    return x * K\nK = 1; print(f(1 / 0))",
        "def f(x):\n    return x * K\né = 'é'; print(f(1 / 0)); K = 1; é",
        "def f(x):\n    return x * K\nK = 1; \\\nprint(f(1 / 0))",
        "def f(x):\n    return x\nassert (f(1)\n    == 2); y = 1  # so",
        "```\nK = 1; print(f(0))\n```\n```\ndef f(x):\n    return x * K\n```",
        "```\n@known\n@g(1)\ndef f(x): ...\n```\n```\ndef f(x):\n    return x\n```",
    ],
)
def test_a_demonstration_is_cut_out_and_nothing_else(text):
    assert function_in(text)(7) == 7


WRONG, RIGHT = "def f(x):\n    return 'wrong'", "def f(x):\n    return 'right'"


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{WRONG}\n```\nThat is wrong. Corrected:\n```\n{RIGHT}\n```",
        f"```\n{WRONG}\n```\nThat is wrong. Corrected:\n```\n{RIGHT}",
        f"{WRONG}\n\nThat is wrong (see it. Corrected:\n\n{RIGHT}\n\nDone, isn't it?",
        f"```\n{WRONG}\n\n{RIGHT}\n```",
        f"```\n{WRONG}\n```\n```\n{RIGHT}\n```\nIts signature:\n```\ndef f(x): ...\n```",
        f"```\n{RIGHT}\n```\nOnce more:\n```\ndef f(x):\n    y = 1\n    if (",  # cut off
        f"{RIGHT}\n\nOnce more (it's short:\n\ndef f(x):\n    y = 1\n    if (",
        f"{RIGHT}\n\nFor three (it's easy:\n\nf = 3",
    ],
)
def test_of_two_versions_the_last_that_is_complete_counts(text):
    assert function_in(text)(1) == "right"


def test_what_is_no_program_gives_none():
    assert written_program("no code here", ASKED) == ""
    assert written_function("no code here") is None


def test_a_signature_is_not_what_a_gate_watches():
    text = f"```python\ndef f(x):\n    ...\n```\n```python\n{CODE}\n```\nDone"
    assert written_function(text).value.endswith("return 0")


def parsed_lengths(text):
    """How long each source is that the parser is given for an answer."""
    lengths, parse = [], ast.parse

    def counted(source):
        lengths.append(len(source))
        return parse(source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", counted)
        written_program(text, ASKED)
    return lengths


PARTS = [
    "@a\n",
    "def f(\n",
    "def f(x):\n    y = 1\n",
    "return x\n",
    "(",
    "x = 1\n",
    "    y\n",
    "```\n",
]
PARTS += ["'", "f = lambda x: x\n", "It's so.\n", "<code>", "'</s>'\n"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PARTS)), st.sampled_from([1, 3, 500]))
def test_an_answer_is_parsed_as_often_as_the_docs_say(pieces, times):
    lengths = parsed_lengths("".join(pieces)[:60] * times)
    assert len(lengths) <= 14
    assert sum(lengths) <= 150_000


def test_the_number_of_parses_is_reached():
    text = "def f(x):\n    y = 1\n" + "It's so.\nreturn x\n" * 40
    blocks = "".join(f"```\n{text}{i}\n```\n" for i in range(20))
    assert len(parsed_lengths(blocks)) == 14


HARD_RUNS = [
    *(("import a", ",  b "), ("import a, b", " "), ("x: ", " "), ("if x", ": "), ("def f", " ")),
    *(("def f():", " "), ("def f():\n  `", "`"), ("def f():\n", "` "), ("```", "a"), ("", "```x")),
    *(("'", "\\'"), ("", "'" * 4 + "\n"), ("```a", " "), ("[END]", " "), ("@a", "."), ("", "<s")),
    *(("10^", " "), ("1", ",\\!234"), ("1", "\\;234"), ("1", " "), ("1", "{,}234"), ("10", "\t")),
    *(("\\boxed{5\\text{", "m"), ("\\boxed", " "), ("", "answer\\("), ("answer $", "\\(")),
    *(("A", " "), ("A\n", "\n"), ("The answer", " is"), ("not", " "), ("a", ")"), ("", "A ")),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "run"), HARD_RUNS)
def test_no_text_is_read_in_very_many_ways(prefix, run):
    """A pattern that tries a text's parts in many ways would need minutes or years for these."""
    text = prefix + run * (100_000 // len(run)) + "!"
    for name in ("mmlu", "gsm8k", "math", "humaneval"):
        TASKS[name].extract(text, CITIES)
    for whole in (text, text[:590] + "!}"):  # formulas are taken apart up to a length
        assert isinstance(written_number(whole), str)
        assert isinstance(normal_answer(whole.removeprefix("\\boxed{")), str)
    written_program(text, ASKED)


HARD = [
    "\\boxed{",
    "\\frac{",
    "(",
    "{",
    "\\",
    ".",
    "1",
    ",",
    "'",
    "A or ",
    "```\n",
    "@a\n",
    "def f(\n",
]
HARD += [
    "not A ",
    "\\text{",
    "- ",
    "1e9",
    "10^",
    "x=",
    "```python",
    ">>> ",
    "answer is ",
    "A\n",
    "I ",
]
texts = st.lists(
    st.one_of(st.sampled_from(HARD), st.text(string.printable + "é−×漢", max_size=4)), max_size=10
).map("".join)


@pytest.mark.parametrize("style", ReadingStyle)
@pytest.mark.parametrize("name", ["mmlu", "gsm8k", "math", "humaneval"])
@given(text=texts, times=st.sampled_from([1, 2, 500]))
def test_every_reading_is_total_and_its_span_lies_in_the_text(name, style, text, times):
    text = (text * times)[:5000]
    found = read_under(TASKS[name], style).extract(text, CITIES)
    if found is not None:
        assert found.value
        assert 0 <= found.start < found.end <= len(text)
    assert isinstance(normal_answer(text), str)
    assert isinstance(written_number(text), str)


@given(st.text("0123456789.,-−$e{}\\!^ ×", max_size=12))
def test_numbers_keep_their_normal_form(text):
    once = written_number(text)
    assert written_number(once) == once or not once.lstrip("-").replace(".", "").isdigit()


def test_five_hundred_nested_fractions_are_read():
    nested = r"\frac{" * 500 + "1" + "}{2}" * 500
    for style in ReadingStyle:
        assert read_under(TASKS["math"], style).extract(rf"\boxed{{{nested}}}") is not None


def test_the_plain_reading_can_be_graded_by():
    example = Example("", "C", choices=CITIES)
    text = "I think the answer is C."
    assert grade(TASKS["mmlu"], example, text).correct
    assert grade(TASKS["mmlu"], example, text, AnswerReading(ReadingStyle.PLAIN)).answer == "I"


def test_math_verify_is_refused_where_it_has_nothing_to_compare():
    with pytest.raises(ConfigError, match="mmlu does not answer with"):
        check_can_grade(TASKS["mmlu"], AnswerReading(grader=Grader.MATH_VERIFY))


def test_math_verify_that_is_not_installed_says_what_to_type(monkeypatch):
    monkeypatch.setattr(math_verify_module, "PACKAGES", ("no_such_package",))
    math_verify_module.libraries.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install 'c4-dlm\[math\]'"):
        check_can_grade(TASKS["math"], AnswerReading(grader=Grader.MATH_VERIFY))
    math_verify_module.libraries.cache_clear()


@pytest.mark.skipif(not can_isolate(), reason="cannot isolate model-written code")
def test_math_verify_sees_through_algebra():
    pytest.importorskip("math_verify", reason="needs pip install 'c4-dlm[math]'")
    example = Example("", "2x+1")
    for text, correct in ((r"\boxed{1+2x}", True), (r"\boxed{1+3x}", False)):
        given = grade(TASKS["math"], example, text, AnswerReading(grader=Grader.MATH_VERIFY))
        assert given.correct is correct
