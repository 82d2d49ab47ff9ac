"""Extractors: find the answer in a text, as a normal form and a character span.

Pure functions of the text. They run at every denoising step, on text that is still half
noise, so they must be total: any string gives a candidate or None, never an error.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from c4.tasks._task import Candidate

BROKEN = "\N{REPLACEMENT CHARACTER}"
"""What half a character decodes to. The rest of it may turn it into anything."""

LETTER = re.compile(r"(?<![\w'’])[A-M](?![\w'’])")
NUMBER = re.compile(r"-?[$0-9.,]*[0-9][$0-9.,]*")
BOXED = re.compile(r"\\boxed\s*\{")
FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]", re.MULTILINE)
TOP_LEVEL = re.compile(r"^\S", re.MULTILINE)
FENCE = re.compile(r"^```.*\n?", re.MULTILINE)
THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d*)?")
PLAIN_NUMBER = re.compile(r"(-?)(\d*)(?:\.(\d*))?")
# A double backslash is a line break, not half of a spacing command.
LATEX_NOISE = re.compile(r"\\(?:left|right|q?quad)(?![a-zA-Z])|(?<!\\)\\[!,;: ]|[\s$~]")


def first_letter(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The first capital A to M that stands alone."""
    match = LETTER.search(text)
    if match is None:
        return None
    end = match.end()
    return Candidate(match[0], match.start(), end, settled=text[end : end + 1] not in ("", BROKEN))


def last_number(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The last number, currency signs and separators allowed inside it."""
    matches = list(NUMBER.finditer(text))
    if not matches:
        return None
    last = matches[-1]
    # At the very front, more of the number, or its sign, may come before it.
    return Candidate(normal_number(last[0]), last.start(), last.end(), settled=last.start() > 0)


def last_boxed(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    r"""The contents of the last `\boxed{…}` whose braces balance; else the last number."""
    for match in reversed(list(BOXED.finditer(text))):
        end = _closing_brace(text, match.end())
        value = "" if end is None else normal_latex(text[match.end() : end])
        if end is not None and value:  # an empty box holds no answer
            return Candidate(value, match.end(), end, settled=True)
    found = last_number(text)
    return found and replace(found, settled=False)  # a box may come before it


def first_function(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """Everything from the start through the end of the first function's body."""
    head = FUNCTION.search(text)
    if head is None:
        return None
    end, settled = len(text), False
    line_end = text.find("\n", _signature_end(text, head.end()))
    if line_end >= 0 and (after := TOP_LEVEL.search(text, line_end + 1)):
        end, settled = after.start(), after[0] != BROKEN
    end = len(text[:end].rstrip())
    return Candidate(normal_code(text[:end]), 0, end, settled)


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
    bare = _braced_fractions(bare)
    is_number = NUMBER.fullmatch(bare) is not None
    return normal_number(bare) if is_number else bare


def normal_code(text: str) -> str:
    """Code without fence lines and trailing blanks."""
    lines = FENCE.sub("", text).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _signature_end(text: str, start: int) -> int:
    """Where the brackets of a function's head close; a head may run over several lines."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0 and text[i] in ")\n":
            return i
    return len(text)


def _closing_brace(text: str, start: int) -> int | None:
    """Where the brace opened just before `start` closes."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    return None


def _braced_fractions(text: str) -> str:
    """Every fraction with both arguments in braces. Arguments are one character or a group."""
    pieces = []
    at = 0
    for head in re.finditer(r"\\[dt]?frac(?![a-zA-Z])", text):
        if head.start() < at:
            continue  # inside an argument already taken whole
        first = _argument(text, head.end())
        second = first and _argument(text, first[1])
        if not first or not second:
            continue
        pieces += [text[at : head.start()], r"\frac"]
        pieces += ["{" + _braced_fractions(argument) + "}" for argument, _ in (first, second)]
        at = second[1]
    return "".join([*pieces, text[at:]])


def _argument(text: str, start: int) -> tuple[str, int] | None:
    """The LaTeX argument at `start` and where it ends."""
    if start >= len(text) or text[start] in "}\\":
        return None
    if text[start] != "{":
        return text[start], start + 1
    end = _closing_brace(text, start + 1)
    return None if end is None else (text[start + 1 : end], end + 1)
