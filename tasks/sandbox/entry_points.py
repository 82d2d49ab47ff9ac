"""Resolve names in a program's tests: from the tests' own environment or from the program.

The tests' environment is what they define and import, the preamble, Python's builtins, and the
imports of the reference program (tests written with it may rely on them). From the program, tests
take its entry points and nothing else: they never see its own `math` or `abs`.
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

    __test__ = False  # keeps pytest from collecting it

    entry_points: frozenset[str]
    """Names that tests take from the program. If there are none, the tests test nothing."""
    imports: str
    """Import statements that the tests lack; to be put before them."""


def names_of_tests(tests: str, preamble: str = "", reference: str = "") -> TestNames:
    """Resolve the names that tests use and that neither they nor the preamble define.

    Entry points are the names that the reference defines. If it defines none of them, they are all
    names that are neither built in nor modules of the standard library.
    """
    try:
        free = _free_names(tests) - _bound(preamble)
    except (SyntaxError, ValueError):
        return TestNames(frozenset(), "")  # running the tests reports the error
    entry_points = free & _bound(reference, imported=False)
    if entry_points:
        imports = _imports(reference)
    else:
        # A single free name must be the program's, or the tests would test nothing.
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
    """Names that a module defines at its top level; none if it is not valid Python."""
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
    """The import statement for each name that a reference program imports."""
    found = {}
    for node in ast.walk(ast.parse(reference)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = f"{origin}import {ast.unparse(alias)}"
    return found


def _statements(names: frozenset[str], imports: dict[str, str]) -> str:
    """Import statements for names that tests need; the reference's star import if it has one."""
    lines = [imports["*"]] if "*" in imports and names - imports.keys() else []
    for name in sorted(names):
        if name in imports:
            lines.append(imports[name])
        elif name in sys.stdlib_module_names:
            lines.append(f"import {name}")
    return "".join(f"{line}\n" for line in lines)
