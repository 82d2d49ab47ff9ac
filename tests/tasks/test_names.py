"""Where the names in tests come from."""

import pytest

from c4.tasks.sandbox.entry_points import names_of_tests


@pytest.mark.parametrize(
    ("tests", "reference", "entry_points", "imports"),
    {
        "the function asked for": ("assert f(2) == 4", "def f(n): return 2 * n", {"f"}, ""),
        "called by a name of the tests": (
            "def check(g):\n    assert g(2) == 4\ncheck(f)", "def f(n): return 2 * n", {"f"}, "",
        ),
        "a builtin beside it": ("assert abs(f(2)) == 4", "def f(n): return 2 * n", {"f"}, ""),
        "a builtin's name": ("assert abs(sum(3)) == 4", "def sum(n): return n", {"sum"}, ""),
        "a module's name": ("assert copy(3) == 4", "def copy(n): return n", {"copy"}, ""),
        "a class beside it": (
            "assert f(Pair(1, 2)) == 3", "class Pair: ...\ndef f(p): ...", {"Pair", "f"}, "",
        ),
        "an import of their own": (
            "import math\nassert math.pi < f(4)", "def f(n): ...", {"f"}, "",
        ),
        "an import of the reference": (
            "assert isclose(f(2), 4)", "from math import isclose\ndef f(n): ...",
            {"f"}, "from math import isclose\n",
        ),
        "an import under another name": (
            "assert m.isclose(f(2), 4)", "import math as m\ndef f(n): ...",
            {"f"}, "import math as m\n",
        ),
        "all of a module": (
            "assert sqrt(f(2)) == 2", "from math import *\ndef f(n): ...",
            {"f"}, "from math import *\n",
        ),
        "a module that nobody imports": (
            "assert math.isclose(f(2), 4)", "def f(n): ...", {"f"}, "import math\n",
        ),
        "inside a function and a comprehension": (
            "def check():\n    assert all(f(n) == [m for m in range(n)] for n in (1, 2))\ncheck()",
            "def f(n): ...", {"f"}, "",
        ),
        "helpers of the reference that tests do not name": (
            "assert f(2) == 4", "def g(n): ...\ndef f(n): return g(n)", {"f"}, "",
        ),
        "no reference, one name": ("assert sum(3, 4) == 12", "", {"sum"}, ""),
        "no reference": ("assert abs(f(2) - math.pi) < 1", "", {"f"}, "import math\n"),
        "a reference that is no program": ("assert f(2) == 4", "so there (", {"f"}, ""),
        "a reference that imports what it is asked for": (
            "assert gcd(4, 6) == 2", "from math import gcd", {"gcd"}, "",
        ),
    }.values(),
)  # fmt: skip
def test_only_entry_points_are_asked_of_the_program(tests, reference, entry_points, imports):
    names = names_of_tests(tests, reference=reference)
    assert names.entry_points == entry_points
    assert names.imports == imports


def test_what_the_preamble_defines_is_not_asked_of_the_program():
    preamble = "import math\ndef helper(n):\n    return n\n"
    reference = f"{preamble}def f(n):\n    return helper(n)\n"
    names = names_of_tests("assert math.isclose(helper(f(2)), 2)", preamble, reference)
    assert names.entry_points == {"f"}
    assert names.imports == ""


def test_tests_that_name_only_builtins_ask_nothing_of_the_program():
    assert names_of_tests("assert abs(sum([3, -4])) == 1").entry_points == set()


def test_broken_tests_are_left_to_say_so_themselves():
    assert names_of_tests("assert f(2) ==", reference="def f(n): ...").entry_points == set()
