"""Programs that answer with objects which lie."""

from hostile._program import Control, Hostile, Kind


def object_of(
    name: str,
    body: str,
    base: str = "",
    tests: str = "assert f(2) == 4",
    made: str = "Yes()",
    works: bool = True,
    right: str = "2 * n",
) -> Hostile:
    """A program that answers with an object of its own class, where `right` would be right."""
    program = f"class Yes({base}):\n    {body}\ndef f(n): return {made}\n"
    control = Control.ONE_PROCESS if works else Control.NONE
    return Hostile(Kind.OBJECTS, name, program, tests, f"def f(n): return {right}", control=control)


EQUAL = "__eq__ = lambda self, other: True; __hash__ = object.__hash__"
LYING_OBJECTS = [
    object_of("equal to everything", EQUAL),
    object_of("equal, and of another class", f"{EQUAL}; __class__ = int"),
    object_of("never unequal", "__ne__ = lambda self, other: False",
              tests="assert not (f(2) != 4)"),
    object_of("a number equal to everything", EQUAL, "int", made="Yes(7)"),
    object_of("a float equal to everything", EQUAL, "float", made="Yes(7)"),
    object_of("a text equal to everything", EQUAL, "str", made="Yes('7')"),
    object_of("bytes equal to everything", EQUAL, "bytes", made="Yes(b'7')"),
    object_of("a list equal to everything", EQUAL, "list", made="Yes([7])"),
    object_of("a tuple equal to everything", EQUAL, "tuple", made="Yes([7])"),
    object_of("a dict equal to everything", EQUAL, "dict", made="Yes({7: 7})"),
    object_of("a set equal to everything", EQUAL, "set", made="Yes({7})"),
    object_of("inside a list", EQUAL, tests="assert [f(2)] == [4]"),
    object_of("inside its own list", EQUAL, made="[Yes()]", right="[2 * n]",
              tests="assert f(2) == [4]"),
    object_of("as a key", "__eq__ = lambda self, other: True; __hash__ = lambda self: hash(4)",
              made="{Yes(): 1}", right="{2 * n: 1}", tests="assert f(2) == {4: 1}"),
    object_of("found in a set", "__eq__ = lambda self, other: True; __hash__ = lambda s: hash(4)",
              tests="assert f(2) in {4}"),
    object_of("equal on the right", EQUAL, tests="assert 4 == f(2)"),
    object_of("smaller than everything", "__lt__ = __le__ = lambda self, other: True",
              tests="assert f(2) < 5 and f(2) <= 4"),
    object_of("its difference is nothing", "__sub__ = lambda self, other: 0",
              tests="assert abs(f(2) - 4) < 1e-6"),
    object_of("its amount is nothing", "__sub__ = lambda s, o: s; __abs__ = lambda s: 0",
              tests="assert abs(f(2) - 4) < 1e-6"),
    object_of("close to everything", "__float__ = lambda self: 4.0",
              tests="import math\nassert math.isclose(f(2), 4)"),
    object_of("an index", "__index__ = lambda self: 4", tests="assert '01234'[f(2)] == '4'"),
    object_of("a length", "__len__ = lambda self: 4", right="'a' * 2 * n",
              tests="assert len(f(2)) == 4"),
    object_of("contains everything", "__contains__ = lambda self, x: True",
              right="[2 * n]", tests="assert 4 in f(2)"),
    object_of("a text when printed", "__str__ = __repr__ = lambda self: '4'",
              tests="assert str(f(2)) == '4'"),
    object_of("a format", "__format__ = lambda self, spec: '4'",
              tests="assert f'{f(2)}' == '4'"),
    object_of("false when asked", "__bool__ = lambda self: False", right="[]",
              tests="assert not f(2)"),
    object_of("any attribute", "__getattr__ = lambda self, name: lambda *a: True",
              tests="assert f(2).__eq__(4) is True", works=False),
    object_of("a number that is another", "__int__ = lambda self: 4", "int", made="Yes(7)",
              tests="assert int(f(2)) == 4"),
    object_of("a list that lies about its items",
              "__iter__ = lambda self: iter([4])", "list", made="Yes([7])",
              tests="assert f(2) == [4] and f(3) == [6]", works=False, right="[2 * n]"),
    object_of("a list longer than it is", "__len__ = lambda self: 1", "list", made="Yes()",
              right="[2 * n]", tests="assert len(f(2)) == 1"),
    object_of("an instance of everything",
              "__class__ = property(lambda self: int)",
              tests="assert isinstance(f(2), int)"),
    object_of("a number of the library", "__str__ = lambda self: 'sNaN'",
              made="type('Decimal', (Yes,), {})()", works=False),
    object_of("not a number", "pass", made="float('nan')",
              tests="assert not f(2) < 4 and not f(2) > 4 and f(2) == 4", works=False),
    Hostile(Kind.OBJECTS, "empties what it is given",
            "def f(x):\n    x.clear()\n    return []", "x = [2, 1]\nassert f(x) == sorted(x)",
            "def f(x): return sorted(x)", control=Control.ONE_PROCESS),
    Hostile(Kind.OBJECTS, "rewrites what it is compared with",
            "def f(x):\n    x[:] = [7]\n    return [7]", "x = [4]\nassert f(x) == x and x == [4]",
            "def f(x): return list(x)"),
    Hostile(Kind.OBJECTS, "rewrites by a reference it kept",
            "kept = []\ndef f(x):\n    kept.append(x)\n    for k in kept: k[:] = [7]\n"
            "    return [7]",
            "x = [4]\nf(x)\nassert f([5]) == [5] and x == [4]", "def f(x): return list(x)"),
]  # fmt: skip
