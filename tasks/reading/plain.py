"""The plain readings, the paper's: find the answer in a text, as a normal form and its characters.

Pure functions of the text. They run at every denoising step, on text that is still half
noise, so they must be total (any string gives a candidate or None, never an error) and linear in
its length. The careful readings, which know more of how models write, are in `_careful_….py`.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from c4.tasks.task import Candidate

BROKEN = "\N{REPLACEMENT CHARACTER}"
"""What half a character decodes to. The rest of it may turn it into anything."""

LETTER = re.compile(r"(?<![\w'’])[A-M](?![\w'’])")
NUMBER_CHARACTERS = "$0123456789.,"
DIGITS = "0123456789"
NUMBER = re.compile(r"-?[$0-9.,]+")
"""What may be a number: it is one only if it holds a digit."""
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
"""How often one start is parsed; each error shortens the program to the lines before it."""
LONGEST = 30_000
"""Characters of an answer that are looked at; no benchmark's program comes near."""
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
    """Every number of a text, in its dress."""
    return (found for found in NUMBER.findall(text) if not NO_DIGIT.fullmatch(found))


def last_number(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The last number, currency signs and separators allowed inside it."""
    digit = max(map(text.rfind, DIGITS))
    if digit < 0:
        return None
    start = len(text[:digit].rstrip(NUMBER_CHARACTERS))
    start -= text[start - 1 : start] == "-"
    end = len(text) - len(text[digit:].lstrip(NUMBER_CHARACTERS))
    # At the very front, more of the number, or its sign, may come before it.
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
    """`$1,234.50.` becomes `1234.5`; what is not one number stays as it is, but for its dress."""
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
    r"""Spacing, `\left`/`\right` and `$` dropped, `\frac65` written `\frac{6}{5}`."""
    bare = LATEX_NOISE.sub("", text).rstrip(".")
    bare = braced_fractions(bare)
    is_number = NUMBER.fullmatch(bare) is not None and not NO_DIGIT.fullmatch(bare)
    return normal_number(bare) if is_number else bare


def normal_code(text: str) -> str:
    """Code without fence lines and trailing blanks."""
    lines = FENCE.sub("", text).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def closing_braces(text: str) -> dict[int, int]:
    """Where each opening brace is closed; those that never are have no entry."""
    closing, opened = {}, []
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()
    return closing


def signature_end(text: str, start: int) -> int:
    """Where the brackets of a function's head close; a head may run over several lines."""
    depth = 0
    for mark in BRACKET_OR_LINE_END.finditer(text, start):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth == 0 and mark[0] in ")\n":
            return mark.start()
    return len(text)


def braced_fractions(text: str) -> str:
    """Every fraction with both arguments in braces. Arguments are one character or a group."""
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
    body = parsed(program).body
    prose = body and isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Constant)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not prose and any(isinstance(statement, definitions) for statement in body)


def longest_program(lines: list[str]) -> str:
    """As many lines as are Python together, common indentation removed."""
    count = len(lines)
    for _ in range(MOST_PARSES):
        program = textwrap.dedent("\n".join(lines[:count]))
        try:
            parsed(program)
        except SyntaxError as error:
            # A line that is in error is so whatever follows it.
            count = min(count - 1, (error.lineno or 1) - 1)
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return program
    return ""


def parsed(program: str) -> ast.Module:
    """The syntax tree of a program, without Python's warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" is the model's affair
        return ast.parse(program)
