"""The plain (the paper's) readings: find an answer's normal form and its characters in a text.

Pure functions of the text. They run at every denoising step, on text that is still half
noise, so they must be total (any string gives a candidate or None, never an error) and linear in
its length. The careful readings know more about how models write; each has its own file.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from c4.tasks.task import Candidate

BROKEN = "\N{REPLACEMENT CHARACTER}"
"""Replacement for an incomplete character; its missing bytes may make it any character."""

LETTER = re.compile(r"(?<![\w'’])[A-M](?![\w'’])")
NUMBER_CHARACTERS = "$0123456789.,"
DIGITS = "0123456789"
NUMBER = re.compile(r"-?[$0-9.,]+")
"""A possible number: it is one only if it holds a digit."""
BOXED = re.compile(r"\\boxed\s*\{")
BRACE = re.compile(r"[{}]")
FRACTION = re.compile(r"\\[dt]?frac(?![a-zA-Z])")
BRACKET_OR_LINE_END = re.compile(r"[()\[\]{}\n]")
FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]", re.MULTILINE)
TOP_LEVEL = re.compile(r"^\S", re.MULTILINE)
FENCE = re.compile(r"^```.*\n?", re.MULTILINE)
NO_DIGIT = re.compile(r"[^0-9]*")
THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d*)?")
PLAIN_NUMBER = re.compile(r"(-?)(\d*)(?:\.(\d*))?")
# A double backslash is a line break, not half of a spacing command.
LATEX_NOISE = re.compile(r"\\(?:left|right|q?quad)(?![a-zA-Z])|(?<!\\)\\[!,;: ]|[\s$~]")

MOST_PARSES = 6
"""Maximum parses from one start; each error shortens the program to the lines before it."""
LONGEST = 30_000
"""Maximum characters of an answer that are read; no benchmark's program comes near it."""
FENCED = re.compile(r"^```[^\n]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"\s*(?:def|async def|class|import|from)\b|\s*@")


def first_letter(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The first capital A to M that stands alone."""
    match = LETTER.search(text)
    if match is None:
        return None
    end = match.end()
    return Candidate(
        match[0], match.start(), end, conclusive=text[end : end + 1] not in ("", BROKEN)
    )


def numbers_in(text: str) -> Iterator[str]:
    """Every number of a text, as it is written there."""
    return (found for found in NUMBER.findall(text) if not NO_DIGIT.fullmatch(found))


def last_number(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The last number, currency signs and separators allowed inside it."""
    digit = max(map(text.rfind, DIGITS))
    if digit < 0:
        return None
    start = len(text[:digit].rstrip(NUMBER_CHARACTERS))
    start -= text[start - 1 : start] == "-"
    end = len(text) - len(text[digit:].lstrip(NUMBER_CHARACTERS))
    # At the start of the text, more digits or the sign may still come before it.
    return Candidate(normal_number(text[start:end]), start, end, conclusive=start > 0)


def last_boxed(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    r"""The contents of the last `\boxed{…}` whose braces balance; else the last number."""
    boxes = list(BOXED.finditer(text))
    closing = closing_braces(text) if boxes else {}
    for match in reversed(boxes):
        end = closing.get(match.end() - 1)
        value = "" if end is None else normal_latex(text[match.end() : end])
        if end is not None and value:  # an empty box holds no answer
            return Candidate(value, match.end(), end, conclusive=True)
    found = last_number(text)
    return found and replace(found, conclusive=False)  # a box may come before it


def first_function(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """Everything from the start through the end of the first function's body."""
    head = FUNCTION.search(text)
    if head is None:
        return None
    end, conclusive = len(text), False
    line_end = text.find("\n", signature_end(text, head.end()))
    if line_end >= 0 and (after := TOP_LEVEL.search(text, line_end + 1)):
        end, conclusive = after.start(), after[0] != BROKEN
    end = len(text[:end].rstrip())
    return Candidate(normal_code(text[:end]), 0, end, conclusive)


def normal_number(text: str) -> str:
    """Normalise a number, `$1,234.50.` to `1234.5`; other text only loses `$` and final `.,`."""
    bare = text.replace("$", "").rstrip(".,")
    if THOUSANDS.fullmatch(bare):
        bare = bare.replace(",", "")
    number = PLAIN_NUMBER.fullmatch(bare)
    if number is None:
        return bare
    sign, whole, decimals = number[1], number[2].lstrip("0") or "0", (number[3] or "").rstrip("0")
    if whole == "0" and not decimals:
        return "0"
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"


def normal_latex(text: str) -> str:
    r"""Drop spacing, `\left`, `\right` and `$`; write `\frac65` as `\frac{6}{5}`."""
    bare = LATEX_NOISE.sub("", text).rstrip(".")
    bare = braced_fractions(bare)
    is_number = NUMBER.fullmatch(bare) is not None and not NO_DIGIT.fullmatch(bare)
    return normal_number(bare) if is_number else bare


def normal_code(text: str) -> str:
    """Code without fence lines and trailing blanks."""
    lines = FENCE.sub("", text).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def closing_braces(text: str) -> dict[int, int]:
    """Position of the closing brace by that of its opening brace; unclosed braces have no entry."""
    closing, opened = {}, []
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()
    return closing


def signature_end(text: str, start: int) -> int:
    """End of a function's signature, where its brackets close; it may span several lines."""
    depth = 0
    for mark in BRACKET_OR_LINE_END.finditer(text, start):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth == 0 and mark[0] in ")\n":
            return mark.start()
    return len(text)


def braced_fractions(text: str) -> str:
    """Put both arguments of every fraction in braces; an argument is one character or a group."""
    if not FRACTION.search(text):
        return text
    closing = closing_braces(text)
    edits: list[tuple[int, int, str]] = []
    limits = [len(text)]  # a fraction inside an argument cannot reach out of it
    for head in FRACTION.finditer(text):
        while head.start() >= limits[-1] and len(limits) > 1:
            limits.pop()
        first = _argument(text, head.end(), limits[-1], closing)
        second = first and _argument(text, first[1], limits[-1], closing)
        if not first or not second:
            continue
        edits.append((*head.span(), r"\frac"))
        for start, end in (second, first):  # the second ends last, so its limit lies below
            if text[start] == "{":
                limits.append(end - 1)
            else:
                edits.append((start, end, "{" + text[start] + "}"))
    pieces, at = [], 0  # no two edits overlap
    for start, end, written in sorted(edits):
        pieces += [text[at:start], written]
        at = end
    return "".join([*pieces, text[at:]])


def _argument(text: str, start: int, limit: int, closing: dict[int, int]) -> tuple[int, int] | None:
    """Where the LaTeX argument at `start` begins and ends, its braces included."""
    if start >= limit or text[start] in "}\\":
        return None
    if text[start] != "{":
        return start, start + 1
    return (start, closing[start] + 1) if start in closing else None


def program_in(text: str) -> str:
    """The program in an answer: the lines that are Python in the first fenced block or the text.

    It may be longer than the part that an exit gate watches: it includes helpers and constants.
    """
    text = text[:LONGEST]
    fenced = FENCED.search(text)
    lines = (fenced[1] if fenced else text).splitlines()
    first = next((i for i, line in enumerate(lines) if STATEMENT.match(line)), len(lines))
    # Try from the start of the text, then from the first line that must be code.
    programs = (longest_program(lines[start:]) for start in (0, first))
    return next(filter(_defines_something, programs), "")


def _defines_something(program: str) -> bool:
    """Whether the source is a program and not prose that happens to be Python."""
    body = parsed(program).body
    prose = body and isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Constant)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not prose and any(isinstance(statement, definitions) for statement in body)


def longest_program(lines: list[str]) -> str:
    """Return as many leading lines as parse together, without their common indentation."""
    count = len(lines)
    for _ in range(MOST_PARSES):
        program = textwrap.dedent("\n".join(lines[:count]))
        try:
            parsed(program)
        except SyntaxError as error:
            # Later lines cannot repair a line that is in error.
            count = min(count - 1, (error.lineno or 1) - 1)
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return program
    return ""


def parsed(program: str) -> ast.Module:
    """The syntax tree of a program, without Python's warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as "invalid escape sequence"
        return ast.parse(program)
