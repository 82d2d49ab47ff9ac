r"""The careful reading of numbers: the last one, in any notation that models and LaTeX use.

Unlike the plain reading, it takes `1,14,200`, `1{,}234`, `1,\!234`, `−5`, `1.2e3` and
`3 \times 10^5` as one number each, and skips digits of a word or a unit (`cm^2`).
"""

import re
from collections.abc import Sequence

from c4.tasks.reading.plain import DIGITS, THOUSANDS, normal_number
from c4.tasks.task import Candidate

MINUS = "-−–"
MOST_PASSED_OVER = 50
"""Maximum number of matches inside words that are skipped before the last match is taken."""
FARTHEST = 10_000
"""Characters that are read before and after a text's last digit."""
MOST_ZEROS = 300
"""The largest power of ten that is written out."""

# Repeats are possessive (`++`), so no text makes these patterns backtrack over many splits.
GROUP = r"(?:\{,\}|,?\\[!,;: ]\s?|[\u00a0\u2009\u202f])"
TIMES = r"\s*+(?:\\times|\\cdot|[×·*x⋅])\s*+"
POWER = r"10\s*+(?:\^\s*+(?:\{{\s*+)?+|\*\*\s*+)(?P<{0}>[-−+]?[0-9]{{1,4}}(?![0-9]))\}}?"
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
SMALL_POWER = r"10(?P<{0}>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,4}})"
NUMBER = re.compile(
    rf"(?P<sign>[{MINUS}]\s?)?(?P<currency>(?:\\?[$€£₹])\s?(?P<inner>[{MINUS}])?)?"
    rf"(?:(?P<power>{POWER.format('only')}|{SMALL_POWER.format('small')})"
    rf"|(?P<digits>[$0-9.,]++(?:{GROUP}(?=[0-9]{{3}}(?![0-9]))[$0-9.,]++)*+)"
    rf"(?:[eE](?P<e>[-−+]?[0-9]{{1,4}})(?![0-9A-Za-z])"
    rf"|{TIMES}(?:{POWER.format('times')}|{SMALL_POWER.format('tiny')}))?)"
)
GROUPS = re.compile(GROUP)
INDIAN = re.compile(r"-?\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d*)?")
DIGIT = re.compile(r"[0-9]")
DECIMAL = re.compile(r"(-?)([0-9]*)(?:\.([0-9]*))?")
OPERAND = re.compile(r"[\w)\]}%!²³°]")
"""Character directly before a dash that makes it an operator and not a sign: `12–5`."""
BEFORE_A_SIGN = re.compile(
    r"(?:[=:({\[,<>≈≤≥+*/×]|\b(?:is|was|be|equals?|are|gets?|gives?|by|to|of|at|or|and|than)) ?\Z"
)
"""Text after which a minus with a space is a sign; elsewhere it subtracts, or is a bullet."""
GLUED = re.compile(r"(?:[^\W\d_]|[^\W\d][\^_]\{?|\}\^\{?)\Z")
WIDEST_GAP = 12
"""Characters before a minus that are searched for the operand it subtracts from."""
FREE = re.compile(r"(?:[A-Za-z=()|\"“”]|[^\\][:;])\s*\Z")
r"""Text before a number that is not part of it and does not make its minus a subtraction. A colon
may be half of a LaTeX space, `1\: 234`."""


def last_written_number(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """The last number that is not part of a word or of a unit; if all are, the last one."""
    last_digit = max(map(text.rfind, DIGITS))
    if last_digit < 0:
        return None
    offset = max(0, last_digit - FARTHEST)
    text = text[offset : last_digit + FARTHEST]
    found = [match for match in NUMBER.finditer(text) if DIGIT.search(match["digits"] or "1")]
    if not found:
        return None
    free = (match for match in found[:-MOST_PASSED_OVER:-1] if not _is_part_of_a_word(text, match))
    chosen = next(free, None)
    if chosen is None:
        start, value = _signed(text, found[-1])
        return Candidate(value, start + offset, found[-1].end() + offset)
    start, value = _signed(text, chosen)
    # Conclusive if no text before these characters could make it another number.
    before, sign = text[max(0, start - 8) : start], chosen["sign"] or ""
    may_be_exponent = bool(sign) and before[-1:] in ("e", "E")  # the end of "1.5e-5"
    is_whole = chosen["power"] is None and len(sign) < 2 and not may_be_exponent
    conclusive = chosen is found[-1] and is_whole and FREE.search(before) is not None
    return Candidate(value, start + offset, chosen.end() + offset, conclusive)


def written_number(text: str) -> str:
    """The normal form of a text that is one number; any other text in its plain normal form."""
    match = NUMBER.fullmatch(text.strip().removesuffix("%").removesuffix("\\").strip())
    if match is None or not DIGIT.search(match["digits"] or "1"):
        return normal_number(text)
    return _value(match, negative=bool(match["sign"] or match["inner"]))


def _is_part_of_a_word(text: str, match: re.Match[str]) -> bool:
    """Whether the digits touch a letter or are its index or power: `x2`, `cm^2`, `A_1`."""
    if match["sign"] or match["currency"] or match[0][0] == ".":
        return False
    return GLUED.search(text[max(0, match.start() - 3) : match.start()]) is not None


def _signed(text: str, match: re.Match[str]) -> tuple[int, str]:
    """Return the number's start and value; its minus may be a subtraction or a bullet instead."""
    start, sign = match.start(), match["sign"] or ""
    before = text[max(0, start - WIDEST_GAP) : start]
    if len(sign) == 1:
        negative = sign == "-" or not OPERAND.search(before[-1:])  # "-" as in the plain reading
    else:
        negative = bool(sign) and BEFORE_A_SIGN.search(before) is not None
    value = _value(match, negative=negative or match["inner"] is not None)
    if match[0][0] == "." and text[start - 1 : start].isalpha():
        value = normal_number(match[0].lstrip("."))  # "Rs.500"
    return start if negative else start + len(sign), value


def _value(match: re.Match[str], *, negative: bool) -> str:
    sign = "-" if negative else ""
    if match["power"]:
        return _shifted(sign + "1", match["only"] or match["small"])
    digits = GROUPS.sub("", match["digits"]).replace("$", "").rstrip(".,")
    if INDIAN.fullmatch(digits):
        digits = digits.replace(",", "")
    exponent = match["e"] or match["times"] or match["tiny"]
    return _shifted(sign + digits, exponent) if exponent else normal_number(sign + digits)


def _shifted(number: str, exponent: str) -> str:
    """A number times a power of ten, written out."""
    if THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    power = int(exponent.translate(SUPERSCRIPTS).replace("−", "-"))
    parts = DECIMAL.fullmatch(number)
    if parts is None or abs(power) > MOST_ZEROS:
        return f"{number}e{power}"
    sign, whole, decimals = parts[1], parts[2], parts[3] or ""
    if power >= 0:
        decimals = decimals.ljust(power, "0")
        return normal_number(f"{sign}{whole}{decimals[:power]}.{decimals[power:]}")
    whole = whole.rjust(-power, "0")
    return normal_number(f"{sign}{whole[:power]}.{whole[power:]}{decimals}")
