import pytest

from c4.tasks.reading.plain import program_in

CODE = "import math\n\ndef f(x):\n    return math.sqrt(x)"
HELPERS = "def g(x):\n    return x\n\ndef f(x):\n    return g(x)"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (CODE, CODE),
        (HELPERS, HELPERS),
        (f"```python\n{CODE}\n```\nDone", CODE),
        (f"Here is the function:\n```python\n{CODE}\n```", CODE),
        (f"Here is the function:\n\n{CODE}\n\nIt takes the root.", CODE),
        (f"```\n{CODE}", CODE),
        (" def f(x):\n     return x", "def f(x):\n    return x"),
        (f"{CODE}\ndef broken(", CODE),
        (f"LIMIT = 256\n{HELPERS}", f"LIMIT = 256\n{HELPERS}"),
        (f"Sure\n{CODE}", CODE),
        ("no code here", ""),
        ("", ""),
    ],
)
def test_the_program_is_found_and_prose_is_cut(text, program):
    assert program_in(text).rstrip() == program
