"""Where the names in a program's tests come from: the tests' own world, or the program.

The tests' world is what they define and import, the preamble, Python's builtins, and what the
reference program imports (tests written beside it may lean on that). Of the program they take its
entry points, and nothing else: whatever it calls `math` or `abs` is its own affair.
"""

import ast
import builtins
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass

GIVEN = {*dir(builtins), "__name__", "__doc__"}
"""Names that every module has."""


@dataclass(frozen=True)
class TestNames:
    """How the free names of tests are resolved."""

    __test__ = False  # not a test of pytest's

    entry_points: frozenset[str]
    """What is asked of the program. Where there is none, the tests test nothing."""
    imports: str
    """Statements that the tests lack; to be put before them."""


def names_of_tests(tests: str, preamble: str = "", reference: str = "") -> TestNames:
    """Resolve the names that tests use and that neither they nor the preamble define.

    What the reference defines is the program's to define; without a reference, whatever is neither
    built in nor a module of the standard library.
    """
    try:
        free = _free_names(tests) - _bound(preamble)
    except (SyntaxError, ValueError):
        return TestNames(frozenset(), "")  # running them says what is wrong with them
    entry_points = free & _bound(reference, imported=False)
    if entry_points:
        imports = _imports(reference)
    else:
        # A single name must be the program's, or the tests would test nothing.
        entry_points = free if len(free) == 1 else free - GIVEN - sys.stdlib_module_names
        imports = {}
    return TestNames(entry_points, _statements(free - entry_points - GIVEN, imports))


def _free_names(tests: str) -> frozenset[str]:
    """Names that tests use and do not bind at their top level."""
    table = symtable.symtable(tests, "<tests>", "exec")
    used = {symbol.get_name() for symbol in _global_symbols(table) if symbol.is_referenced()}
    return frozenset(used) - _bound(tests)


def _global_symbols(table: symtable.SymbolTable) -> Iterator[symtable.Symbol]:
    top = table.get_type() == "module"
    yield from (symbol for symbol in table.get_symbols() if top or symbol.is_global())
    for inner in table.get_children():
        yield from _global_symbols(inner)


def _bound(source: str, *, imported: bool = True) -> frozenset[str]:
    """Names that a module defines at its top level; none where it is no Python."""
    try:
        symbols = symtable.symtable(source, "<source>", "exec").get_symbols()
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        symbol.get_name()
        for symbol in symbols
        if symbol.is_assigned() or (imported and symbol.is_imported())
    )


def _imports(reference: str) -> dict[str, str]:
    """The statements by which a reference program imports names, by name."""
    found = {}
    for node in ast.walk(ast.parse(reference)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = f"{origin}import {ast.unparse(alias)}"
    return found


def _statements(names: frozenset[str], imports: dict[str, str]) -> str:
    """Imports of what tests need; all of a module where the reference imports that."""
    lines = [imports["*"]] if "*" in imports and names - imports.keys() else []
    for name in sorted(names):
        if name in imports:
            lines.append(imports[name])
        elif name in sys.stdlib_module_names:
            lines.append(f"import {name}")
    return "".join(f"{line}\n" for line in lines)
