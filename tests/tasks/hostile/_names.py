"""Programs that redefine names which their tests use."""

from hostile._program import Control, Hostile, Kind

TWICE = "def f(n):\n    return 2 * n\n"
SAME = "def f(n):\n    return n\n"
HELPERS = "import math\ndef error(a, b):\n    return a - b\n"


def lie(name: str, what: str, tests: str, preamble: str = "", works: bool = True) -> Hostile:
    """A program with a wrong `f`, and a lie that makes the tests agree with it."""
    control = Control.ONE_PROCESS if works else Control.NONE
    program = f"{SAME}{what}\n"
    return Hostile(Kind.NAMES, name, program, tests, TWICE, preamble, control=control)


REDEFINED = [
    lie("abs", "def abs(x): return 0", "assert abs(f(2) - 4) < 1e-6"),
    lie("sum", "def sum(x): return 12", "assert sum([f(2), f(4)]) == 12"),
    lie("len", "def len(x): return 4", "assert len('x' * f(2)) == 4"),
    lie("sorted", "def sorted(x): return [4, 8]", "assert sorted([f(4), f(2)]) == [4, 8]"),
    lie("set", "def set(x): return 0", "assert set([f(2)]) == set([4])"),
    lie("all", "def all(x): return True", "assert all(f(n) == 2 * n for n in (2, 3))"),
    lie("any", "def any(x): return False", "assert not any(f(n) != 2 * n for n in (2, 3))"),
    lie("round", "def round(*x): return 4", "assert round(f(2), 3) == 4"),
    lie("isinstance", "isinstance = lambda *a: True", "assert isinstance(f(2) - 4 or '', str)"),
    lie("range", "def range(*x): return ()", "for n in range(2, 4): assert f(n) == 2 * n"),
    lie("zip", "def zip(*x): return ()", "for n, m in zip([2], [4]): assert f(n) == m"),
    lie("float", "class float:\n    def __new__(cls, x): return 4", "assert float(f(2)) == 4.0"),
    lie("AssertionError", "class AssertionError(Exception): pass",
        "try: assert f(2) == 4\nexcept AssertionError: raise SystemError", works=False),
    lie("a builtin patched", "import builtins; builtins.abs = lambda x: 0",
        "assert abs(f(2) - 4) < 1e-6"),
    lie("all builtins replaced", "__builtins__ = {'abs': lambda x: 0}",
        "assert abs(f(2) - 4) < 1e-6", works=False),
    lie("a module not imported", "class math:\n    isclose = lambda a, b: True",
        "assert math.isclose(f(2), 4)"),
    lie("a module not imported, patched", "import math; math.isclose = lambda a, b: True",
        "assert math.isclose(f(2), 4)"),
    lie("a module imported", "import math; math.isclose = lambda a, b: True",
        "import math\nassert math.isclose(f(2), 4)"),
    lie("a module replaced",
        "import sys, types\n"
        "fake = types.ModuleType('math'); fake.isclose = lambda a, b: True\n"
        "sys.modules['math'] = fake", "import math\nassert math.isclose(f(2), 4)"),
    lie("a module written beside",
        "open('helper.py', 'w').write('def close(a, b): return True')\n"
        "open('statistics.py', 'w').write('def mean(x): return 4')\n"
        "import sys; sys.path.insert(0, '.')",
        "import statistics\nassert statistics.mean([f(2), f(2)]) == 4"),
    lie("an import hook",
        "import importlib.machinery, sys, types\n"
        "class Hook:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return importlib.machinery.ModuleSpec(name, self)\n"
        "    def create_module(self, spec):\n"
        "        fake = types.ModuleType(spec.name); fake.mean = lambda x: 4; return fake\n"
        "    def exec_module(self, module): pass\n"
        "sys.modules.pop('statistics', None); sys.meta_path.insert(0, Hook())",
        "import statistics\nassert statistics.mean([f(2), f(2)]) == 4"),
    lie("__import__", "import builtins\n"
        "class Fake: mean = staticmethod(lambda x: 4)\n"
        "builtins.__import__ = lambda *a, **k: Fake",
        "import statistics\nassert statistics.mean([f(2), f(2)]) == 4"),
    lie("a helper of the preamble", "def error(a, b): return 0",
        "assert error(f(2), 4) == 0", HELPERS),
    lie("a module of the preamble", "math.isclose = lambda a, b: True",
        "assert math.isclose(f(2), 4)", HELPERS),
    lie("a constant of the preamble", "LIMIT = 99",
        "assert abs(f(2) - 4) < LIMIT", "LIMIT = 1e-6\n"),
    lie("a helper of the tests", "def close(a, b): return True",
        "def close(a, b): return a == b\nassert close(f(2), 4)", works=False),
    lie("the tests' function", "def check(g): return None",
        "def check(g): assert g(2) == 4\ncheck(f)", works=False),
    lie("a function of the preamble's", "def close(a, b): return True",
        "assert close(f(2), 4)", "from math import isclose as close\n"),
    lie("a module's own class", "import decimal\ndecimal.Decimal = lambda x: 0",
        "from decimal import Decimal\nassert Decimal(f(2)) == Decimal(4)"),
    lie("small numbers in memory",
        "import ctypes, sys\n"
        "ctypes.c_int32.from_address(id(2) + int.__basicsize__).value = 4",
        "assert f(2) == 4", works=False),
]  # fmt: skip
