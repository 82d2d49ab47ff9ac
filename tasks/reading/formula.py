r"""The careful reading of boxed answers: cheap normalisation of forms that are certainly equal.

Units, fonts, spacing and sizes are dropped; `a/b`, `\frac ab` and, between whole numbers, their
decimal are one form, as are `x^{5}` and `x^5`, `\sqrt2` and `\sqrt{2}`, `x=5` and `5`. Forms
that need algebra (`2x+1` and `1+2x`) stay different; the grader `math-verify` compares those.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from c4.tasks.reading.number import last_written_number, written_number
from c4.tasks.reading.plain import braced_fractions, closing_braces, normal_latex
from c4.tasks.task import Candidate

LONGEST = 600
"""Maximum characters of an answer that is analysed; a longer one gets the plain normal form."""
MOST_DECIMALS = 30
MOST_BOXES = 200
"""Maximum number of boxes tried, from the last; a text with more empty ones is noise."""

BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?:\s*(?P<brace>\{)|(?![a-zA-Z])\s*(?=\S))")
BARE_BOX = re.compile(r"-?(?:\\[a-zA-Z]+|[0-9][0-9.,]*[0-9]|[0-9a-zA-Z])")
MATH_AFTER_ANSWER = re.compile(
    r"\banswer\b(?:[^.$\n\\]|\\(?!\()){0,40}+(?:\$|\\\()((?:[^$\n\\]|\\(?![()])){1,200}+)(?:\$|\\\))"
)

UNICODE = str.maketrans(
    {"π": r"\pi ", "∞": r"\infty ", "−": "-", "–": "-", "≤": r"\leq ", "≥": r"\geq ", "∪": r"\cup ",
     "±": r"\pm ", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "°": r"^\circ ", "²": "^2",
     "³": "^3", "θ": r"\theta ", "∈": r"\in "}
)  # fmt: skip
TEXT_ROOT = re.compile(r"√\s*([0-9]+|[a-z])|(?<![\\a-zA-Z])(?:sqrt|√)\s*\(([^()]*)\)")
MATRIX = re.compile(r"(?<=begin\{)bmatrix|(?<=end\{)bmatrix")
LAST_LINE_BREAK = re.compile(r"\\\\\s*(?=\\end)")
CONTINUED = re.compile(r"\\cfrac(?![a-zA-Z])")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+|\s+|.", re.DOTALL)
SILENT = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|(?:display|text|script)style|(?:no)?limits|q?quad|rm|bf|it"
    r"|bfseries|thinspace|enspace|nobreak|mathstrut|phantom|[,!;:> ()\[\]$%])|[$%~\s]+"
)
FONTS = re.compile(
    r"\\(?:[mh]box|text(?:rm|bf|it|normal|sf|tt)?|math(?:rm|bf|it|sf|normal)|bm|boldsymbol"
    r"|operatorname|emph|boxed|fbox)"
)
ALIASES = {
    r"\le": r"\leq", r"\ge": r"\geq", r"\ne": r"\neq", r"\lt": "<", r"\gt": ">", r"\lbrace": r"\{",
    r"\rbrace": r"\}", r"\lbrack": "[", r"\rbrack": "]", r"\vert": "|", r"\mid": "|", r"\ast": "*",
    r"\degree": r"^\circ", r"\dots": r"\ldots", r"\cdots": r"\ldots",
}  # fmt: skip
PRODUCTS = frozenset([r"\cdot", r"\times", "*"])
# Cents are not in the list: `dollars` is dropped as `$` is, and 5 cents are not 5 dollars.
UNIT_WORD = (
    r"(?:units?|inch(?:es)?|in|feet|foot|ft|yards?|yds?|miles?|mi|mph|mm|cm|dm|km|kg|mg|lbs?|oz"
    r"|m(?:et(?:er|re)s?)?|(?:centi|milli|kilo)met(?:er|re)s?|(?:milli|kilo)?grams?|g|pounds?|ounces?"
    r"|lit(?:er|re)s?|ml|gallons?|degrees?|deg|dollars?|percent|hours?|hrs?|h|minutes?|mins?"
    r"|seconds?|secs?|s|days?|weeks?|months?|years?|people|students?|ways?|times|points?|sides?|cubes?"
    r"|radians?|square|sq\.?|cubic|cu\.?|per|/|\.)"
)
MOST_UNITS = 6
"""Maximum words in one unit; `mm` may be two, so a long row would make the pattern backtrack."""
UNITS = re.compile(rf"{UNIT_WORD}{{1,{MOST_UNITS}}}(?:\^?[23])?")
BARE_UNITS = re.compile(
    r"(?<=[0-9})])\s*(?:(?:square|cubic|sq\.?|cu\.?)\s+)?(?!(?:m|g|h|s|in)\b)(?!/|\.)"
    rf"(?:{UNIT_WORD}\s?){{1,4}}(?:\^\{{?[23]\}}?)?\.?\s*\Z"
)
UNIT = "\0"
RAISED_UNIT = re.compile(UNIT + r"(?:\^(?:\{[^{}]*\}|.))?")
DEGREES = re.compile(r"\^\\circ ?")
NAMED_VALUE = re.compile(
    r"(?:[a-zA-Z]|\\[a-zA-Z]+|[a-zA-Z]\([a-zA-Z]\)|\([a-zA-Z](?:,[a-zA-Z])+\)|[a-zA-Z]_(?:\w|\{\w+\}))"
    r"(?:=|\\in ?)(?=.)"
)
LETTER_CHOICE = re.compile(r"\(([A-M])\)")
WORD = re.compile(r"[A-Za-z]{3,}")
SUM = re.compile(r"(?<=.)[+-]|\\pm|\\mp|,|=|<|>")
ATOM = re.compile(r"[0-9]+(?:\.[0-9]+)?|[a-zA-Z]|\\[a-zA-Z]+|\\sqrt\{[^{}]*\}")
WHOLE = re.compile(r"[0-9]+")
DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
RATIO = re.compile(r"(-?)(?P<open>\()?(-?[0-9]+)/(?:([0-9]+)|\((-?[0-9]+)\))(?(open)\))")
LIST_COMMA = re.compile(r",(?:\s|~|\\ |\\q?quad(?![a-zA-Z]))+")


@dataclass(frozen=True)
class Ratio:
    """A fraction whose written form depends on its neighbours."""

    above: str
    below: str


def last_box(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    r"""Contents of the last closed box, else the formula after `answer`, else the last number.

    A box is `\boxed{…}`, `\boxed g` or `\fbox{…}`.
    """
    boxes = list(BOX.finditer(text))
    closing = closing_braces(text) if boxes else {}
    for match in boxes[:-MOST_BOXES:-1]:
        if match["brace"]:
            start, end = match.end(), closing.get(match.end() - 1, 0)
        else:
            bare = BARE_BOX.match(text, match.end())
            start, end = bare.span() if bare else (0, 0)
        if value := normal_answer(text[start:end]) if end else "":  # an empty box has no answer
            return Candidate(value, start, end, conclusive=True)
    if announced := list(MATH_AFTER_ANSWER.finditer(text)):
        value = normal_answer(announced[-1][1])
        if value:
            return Candidate(value, *announced[-1].span(1))
    found = last_written_number(text)
    return found and replace(found, conclusive=False)  # a box may come before it


def normal_answer(latex: str) -> str:
    """The normal form of an answer, shared by answers that are certainly equal."""
    if len(latex) > LONGEST:
        return normal_latex(latex)
    numbers = [_normal_item(part) for part in LIST_COMMA.split(latex.strip(" $"))]
    if len(numbers) < 2 or not all(map(DECIMAL.fullmatch, numbers)):
        return _normal_item(latex)
    joined = ",".join(numbers)  # `1, 200` is not `1,200`
    return joined if written_number(joined) == joined else ", ".join(numbers)


def _normal_item(latex: str) -> str:
    text = TEXT_ROOT.sub(lambda m: rf"\sqrt{{{m[1] or m[2]}}}", latex).translate(UNICODE)
    text = LAST_LINE_BREAK.sub("", MATRIX.sub("pmatrix", CONTINUED.sub(r"\\frac", text)))
    text = BARE_UNITS.sub("", text.replace(r"\!", "").rstrip(" $.,"))
    text = re.sub(r"(\\[dt]?frac)\s+|(?<=\})\s+(?=\{)", r"\1", text)  # may hide an argument
    text = _rewritten(braced_fractions(text))
    text = DEGREES.sub("", RAISED_UNIT.sub("", text)).rstrip(".,").removeprefix("+")
    text = _without_names(text)
    if letter := LETTER_CHOICE.fullmatch(text):
        return letter[1]
    if WORD.fullmatch(text):
        return text.lower()
    if ratio := RATIO.fullmatch(text):
        return _normal_ratio(text, ratio)
    return written_number(text) if text[-1:].isdigit() else text


def _without_names(text: str) -> str:
    """Reduce `x=5` to `5` and `x=1,x=2` to `1,2`; values of several names keep them."""
    parts = text.split(",") if text.count("=") > 1 else [text]
    named = [NAMED_VALUE.match(part) for part in parts]
    names = {match[0] for match in named if match}
    if not all(named) or len(names) > 1 or text.count("=") > len(parts):
        return text
    return ",".join(part[match.end() :] for part, match in zip(parts, named, strict=True) if match)


def _normal_ratio(text: str, ratio: re.Match[str]) -> str:
    """A ratio of whole numbers in lowest terms, or as a decimal if that terminates."""
    below = int(ratio[4] or ratio[5])
    if below == 0:
        return text
    value = Fraction(int(ratio[3]), below) * (-1 if ratio[1] else 1)
    places = next((n for n in range(MOST_DECIMALS) if 10**n % value.denominator == 0), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    scaled = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return written_number(
        f"{sign}{scaled[: len(scaled) - places]}.{scaled[len(scaled) - places :]}"
    )


# -- Rewriting, group by group ---------------------------------------------------------------------

Item = str | Ratio


def _rewritten(text: str) -> str:
    """Normalise the tokens in one pass, innermost groups first; unmatched braces stay."""
    frames: list[list[Item]] = [[]]
    for token in TOKEN.findall(text):
        match token:
            case "{":
                frames.append([])
            case "}" if len(frames) > 1:
                _close(frames.pop(), frames[-1])
            case _ if not SILENT.fullmatch(token):
                _append(frames[-1], ALIASES.get(token, token))
    while len(frames) > 1:  # never closed
        frame = frames.pop()
        frames[-1] += ["{", *frame]
    whole = _joined(frames[0])
    is_group = len(frames[0]) == 1 and whole[:1] == "{" and whole[-1:] == "}"
    return whole[1:-1] if is_group else whole


def _append(frame: list[Item], token: str) -> None:
    """Append a token to a group; arguments of roots and powers get one form."""
    last = frame[-1] if frame else ""
    is_bare_root = last == r"\sqrt" and len(token) == 1 and token not in ("[", "{", "}")
    is_long_power = last in ("^", "_") and token.isdigit() and len(token) > 1
    frame.append("{" + token + "}" if is_bare_root or is_long_power else token)


def _close(frame: list[Item], outer: list[Item]) -> None:
    """Append a finished group to the group around it."""
    content = _joined(frame)
    last = outer[-1] if outer else ""
    if isinstance(last, str) and FONTS.fullmatch(last):
        outer.pop()
        is_unit = bool(outer) and UNITS.fullmatch(content) is not None
        outer.append(UNIT if is_unit else content)
    elif content == "," and isinstance(last, str) and last.isdigit():
        outer.append(",")
    elif last in ("^", "_") and (len(content) == 1 or re.fullmatch(r"\\[a-zA-Z]+", content)):
        outer.append(content)
    else:
        outer.append("{" + content + "}")
        if len(outer) > 2 and outer[-3] == r"\frac" and isinstance(last, str) and last[:1] == "{":
            outer[-3:] = [Ratio(last[1:-1], content)]  # its second argument was just closed


def _joined(frame: list[Item]) -> str:
    """A group's text."""
    written = ""
    for i, item in enumerate(frame):
        following = frame[i + 1] if i + 1 < len(frame) else ""
        start = following[:1] if isinstance(following, str) else "1"
        if isinstance(item, Ratio):
            written = _with_ratio(written, item, start)
        elif item in PRODUCTS and not (written[-1:].isdigit() and start.isdigit()):
            continue
        else:
            is_command = re.search(r"\\[a-zA-Z]+\Z", written) and item[:1].isalpha()
            written += f" {item}" if is_command else item
    return written


def _with_ratio(written: str, ratio: Ratio, following: str) -> str:
    """Append a fraction to the text as `a/b`, in brackets where that would be ambiguous."""
    mixed = re.search(r"(?<![\w.}/^)])[0-9]+\Z", written)
    if mixed and WHOLE.fullmatch(ratio.above) and WHOLE.fullmatch(ratio.below):
        total = int(mixed[0]) * int(ratio.below) + int(ratio.above)
        return f"{written[: mixed.start()]}{total}/{ratio.below}"
    above = f"({ratio.above})" if SUM.search(ratio.above) else ratio.above
    below = ratio.below if ATOM.fullmatch(ratio.below) else f"({ratio.below})"
    quotient = f"{above}/{below}"
    if written[-1:] in ("^", "_"):
        return f"{written}{{{quotient}}}"
    clashes = written[-1:].isdigit() and above[:1].isdigit()
    if clashes or written[-1:] == "/" or following.isdigit() or following in ("^", "_", "!"):
        return f"{written}({quotient})"
    return written + quotient
