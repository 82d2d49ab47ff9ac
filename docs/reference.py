"""Make docs/cli.md and docs/api.md from the code.

    python docs/reference.py            # write both pages
    python docs/reference.py --check    # exit code 1 if they are not what the code says

A test holds the pages to what this makes.
"""

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from typer.main import get_command

from c4.cli.app import app

DOCS = Path(__file__).parent
ROOMS = (
    "tasks",
    "models",
    "store",
    "gates",
    "decode",
    "record",
    "replay",
    "analysis",
    "figures",
    "view",
)
FRONT = "front"
"""The folder of the package `c4` itself."""
NOTE = "<!-- Made by `python docs/reference.py`; edit the code instead. -->"


EXIT_CODES = """\
Every command ends with one of these exit codes. Errors are one message on stderr that begins with
`error:` and says what to do.

| exit code | meaning |
|---:|---|
| 0 | done |
| 1 | the reader of the output closed it, as in `c4 runs \\| head -1` |
| 2 | an error: nothing that was finished is lost |
| 130 | interrupted by Ctrl-C; commands that record go on from there |"""


def cli_page() -> str:
    """Every command with its help and its options."""
    lines = [NOTE, "", "# Commands", "", "`c4 COMMAND --help` says the same in the terminal."]
    lines += ["", EXIT_CODES]
    for name, command in commands(get_command(app)):
        lines += ["", f"## `c4 {name}`", "", help_text(command), "", *option_table(command)]
    return "\n".join(lines) + "\n"


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The commands of a group and of the groups in it, by their full names."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield f"{prefix}{name}", command
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def help_text(command: Any) -> str:
    """A command's help, its examples as one block of code."""
    text, _, examples = inspect.cleandoc(command.help or "").partition("Examples:\n")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    block = ["", "```", *lines, "```"] if lines else []
    return "\n".join([text.strip(), *block])


def option_table(command: Any) -> list[str]:
    rows = []
    for option in command.params:
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        if isinstance(option, click.Argument) or option.param_type_name == "argument":
            names = f"`{option.name.upper()}`"
        if option.name != "help":
            rows.append(f"| {names} | {(getattr(option, 'help', None) or '').strip()} |")
    return ["| option | meaning |", "|---|---|", *rows] if rows else []


def api_page() -> str:
    """The names that every room offers to users, with the first line of their docstrings."""
    lines = [
        NOTE,
        "",
        "# Python",
        "",
        "These are the names that each room offers. Other names are internal and may change.",
    ]
    for package in ("c4", *(f"c4.{room}" for room in ROOMS), "c4.analysis.exchange", "c4.lm_eval"):
        module = import_module(package)
        lines += ["", f"## `{package}`", "", inspect.cleandoc(module.__doc__ or ""), ""]
        lines += ["| name | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {first_line(module, name)} |" for name in module.__all__]
    return "\n".join(lines) + "\n"


def first_line(module: Any, name: str) -> str:
    """The first line of a name's docstring; that of a constant is the string below it."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        text = inspect.getdoc(value) or ""
    else:
        text = constant_docs()[name]
    return text.partition("\n")[0].replace("|", "\\|")


@cache
def constant_docs() -> dict[str, str]:
    """The string below the definition of every constant that has one."""
    found = {}
    for path in sorted(
        path for room in (FRONT, *ROOMS) for path in (DOCS.parent / room).rglob("*.py")
    ):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, after in pairwise(body):
            match node, after:
                case ast.AnnAssign(target=target), ast.Expr(value=ast.Constant(value=str(text))):
                    found[ast.unparse(target)] = text
                case ast.Assign(targets=[target]), ast.Expr(value=ast.Constant(value=str(text))):
                    found[ast.unparse(target)] = text
    return found


PAGES = {"cli.md": cli_page, "api.md": api_page}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if given.check:
            stale += [name] if not path.exists() or path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"not what the code says: {', '.join(stale)}; run python docs/reference.py")


if __name__ == "__main__":
    main()
