"""The plain readings, which are the paper's."""

import pytest

from c4.tasks.reading.plain import (
    first_function,
    first_letter,
    last_boxed,
    last_number,
    normal_latex,
    normal_number,
    program_in,
)


@pytest.mark.parametrize(
    ("text", "value", "held_by"),
    [
        ("B", "B", "B"),
        ("The answer is (C).", "C", "C"),
        ("\nD. because", "D", "D"),
        ("Answer: M", "M", "M"),
    ],
)
def test_the_first_letter_that_stands_alone_is_the_answer(text, value, held_by):
    found = first_letter(text)
    assert (found.value, text[found.start : found.end]) == (value, held_by)


@pytest.mark.parametrize("text", ["", "Because", "b", "N", "I'm not sure", "x_A_y", "A1", "DNA"])
def test_letters_inside_words_or_beyond_m_are_no_answer(text):
    assert first_letter(text) is None


@pytest.mark.parametrize(
    ("text", "value", "held_by"),
    [
        ("He pays $1,234.50.", "1234.5", "$1,234.50."),
        ("5 + 7 = 12", "12", "12"),
        ("It falls by -3", "-3", "-3"),
        ("18.00 dollars", "18", "18.00"),
        ("#### 0", "0", "0"),
        ("about 007", "7", "007"),
        ("7 ... or so...", "7", "7"),
        ("version 1.2.3", "1.2.3", "1.2.3"),
        ("either 1,2", "1,2", "1,2"),
        ("1234567890123456789012345678901", "1234567890123456789012345678901", None),
    ],
)
def test_the_last_number_is_found_and_loses_its_dress(text, value, held_by):
    found = last_number(text)
    assert (found.value, text[found.start : found.end]) == (value, held_by or text)


def test_text_without_digits_holds_no_number():
    assert last_number("$ , . - none") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"so \boxed{42}.", "42"),
        (r"\boxed{1} then \boxed{\frac{3}{4}}", r"\frac{3}{4}"),
        (r"\boxed{1,234}", "1234"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{2", "2"),
        (r"it is 17", "17"),
        (r"\boxed{\left( 3, \frac{\pi}{2} \right)}", r"(3,\frac{\pi}{2})"),
        (r"\boxed{x \in [-2,7]}", r"x\in[-2,7]"),
        (r"\boxed{} and 5", "5"),
        (r"\boxed{\begin{pmatrix} 1 \\ 2 \end{pmatrix}}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"\boxed{1,2}", "1,2"),
    ],
)
def test_a_boxed_answer_is_the_last_one_that_closes(text, value):
    assert last_boxed(text).value == value


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (r"\frac65", r"\frac{6}{5}"),
        (r"\dfrac{6}5", r"\frac{6}{5}"),
        (r"\tfrac 1{10}", r"\frac{1}{10}"),
        (r"\frac{\frac12}{3}", r"\frac{\frac{1}{2}}{3}"),
        (r"$ 3\!\,\;4 $", "34"),
        (r"\left[0,1\right)", "[0,1)"),
        (r"\leftarrow", r"\leftarrow"),
        (r"\frac", r"\frac"),
        (r"\frac1", r"\frac1"),
        ("10,000", "10000"),
    ],
)
def test_latex_has_one_normal_form(text, normal):
    assert normal_latex(text) == normal


def test_a_normal_form_is_its_own_normal_form():
    for text in (r"\frac65", "1,234.50.", r"\left(1, 2\right)", "-0.0"):
        assert normal_latex(normal_latex(text)) == normal_latex(text)
        assert normal_number(normal_number("1,234.50.")) == "1234.5"


CODE = "import math\n\ndef f(x):\n    if x:\n        return 1\n\n    return math.pi\n"


def test_a_function_reaches_to_the_first_line_in_column_zero_behind_it():
    found = first_function(CODE + "\nprint(f(1))\n")
    assert found.value == CODE.strip()
    assert (CODE + "\nprint(f(1))\n")[: found.end] == CODE.rstrip()


def test_a_head_over_several_lines_is_not_its_own_end():
    code = "def f(\n    a,\n) -> int:\n    return a"
    assert first_function(code + "\n\nDone.").value == code


def test_fences_are_not_code_but_belong_to_the_span():
    text = f"```python\n{CODE}```\nThis function returns a number."
    found = first_function(text)
    assert found.value == CODE.strip()
    assert (found.start, text[: found.end]) == (0, f"```python\n{CODE}".rstrip())


def test_text_without_a_function_is_no_program():
    assert first_function("definitely not") is None


ROOT = "import math\n\ndef f(x):\n    return math.sqrt(x)"
HELPERS = "def g(x):\n    return x\n\ndef f(x):\n    return g(x)"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (ROOT, ROOT),
        (HELPERS, HELPERS),
        (f"```python\n{ROOT}\n```\nDone", ROOT),
        (f"Here is the function:\n```python\n{ROOT}\n```", ROOT),
        (f"Here is the function:\n\n{ROOT}\n\nIt takes the root.", ROOT),
        (f"```\n{ROOT}", ROOT),
        (" def f(x):\n     return x", "def f(x):\n    return x"),
        (f"{ROOT}\ndef broken(", ROOT),
        (f"LIMIT = 256\n{HELPERS}", f"LIMIT = 256\n{HELPERS}"),
        (f"Sure\n{ROOT}", ROOT),
        ("no code here", ""),
        ("", ""),
    ],
)
def test_the_program_is_found_and_prose_is_cut(text, program):
    assert program_in(text).rstrip() == program
