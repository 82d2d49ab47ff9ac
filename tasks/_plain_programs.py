"""The plain reading of programs: the first fenced block, or what is Python from its start."""

import ast
import re
import textwrap
import warnings

MOST_PARSES = 6
"""How often one start is parsed; each error shortens the program to the lines before it."""
LONGEST = 30_000
"""Characters of an answer that are looked at; no benchmark's program comes near."""
FENCED = re.compile(r"^```[^\n]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"\s*(?:def|async def|class|import|from)\b|\s*@")


def program_in(text: str) -> str:
    """The program in an answer: the first fenced block, or what is Python; prose is cut.

    Longer than what an exit gate watches: a program may bring helpers and constants.
    """
    text = text[:LONGEST]
    fenced = FENCED.search(text)
    lines = (fenced[1] if fenced else text).splitlines()
    first = next((i for i, line in enumerate(lines) if STATEMENT.match(line)), len(lines))
    # From the start, if it is code from the start; else from the first line that must be code.
    programs = (longest_program(lines[start:]) for start in (0, first))
    return next(filter(_defines_something, programs), "")


def _defines_something(program: str) -> bool:
    """Whether it is a program rather than a word that happens to be Python."""
    body = _parsed(program).body
    prose = body and isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Constant)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not prose and any(isinstance(statement, definitions) for statement in body)


def longest_program(lines: list[str]) -> str:
    """As many lines as are Python together, common indentation removed."""
    count = len(lines)
    for _ in range(MOST_PARSES):
        program = textwrap.dedent("\n".join(lines[:count]))
        try:
            _parsed(program)
        except SyntaxError as error:
            # A line that is in error is so whatever follows it.
            count = min(count - 1, (error.lineno or 1) - 1)
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return program
    return ""


def _parsed(program: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" is the model's affair
        return ast.parse(program)
