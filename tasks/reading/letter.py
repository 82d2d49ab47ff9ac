"""The careful reading of letter answers: the example's choice that a text decides for.

Every stand-alone letter that the example offers is ranked by the few words around it: it may be an
article, a pronoun or a choice that the text rules out; it may be mentioned, lead the text, or be
stated as the answer. The best rank wins. Windows around a letter have a fixed size and the number
of judged letters is limited, so the time is linear in any text.
"""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

from c4.tasks.task import LETTERS, Candidate

WINDOW = 100
"""Characters before and after a letter that determine its rank."""
MOST_JUDGED = 60
"""Maximum number of letters judged at each end of a text; a text with more is noise."""


class Rank(IntEnum):
    """Role of a letter in its text, from no evidence for an answer to the strongest."""

    NOT_AN_ANSWER = 0  # an article, a pronoun, a choice that is ruled out or left open
    DOUBTFUL = 1  # part of a name, asked about, supposed, or an item of the list of choices
    MENTIONED = 2
    LEADING = 3  # the text begins with it, or sets it apart
    PRAISED = 4  # "C is plausible"; it may be said of several
    STATED = 5  # "the answer is C", "C is correct"


def _words(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# -- What stands around a letter -------------------------------------------------------------------

MENTION = re.compile(r"(?<!\w)_{0,3}([A-M])(?=_{0,3}(?!\w))")
LOWER_CASE = re.compile(r"(?<![\w.])([a-m])(?=[\"'’”*_`\])}$]*(?:[).:,;\]}](?!\w)|\s*(?:\Z|\n)))")
FONT = r"\\(?:text|math|operatorname|fbox|boxed|rm|bf)[a-z]{0,4}"
OPENING = rf"(?:[\s\"'‘’“”`*_(\[{{<$#>|]|{FONT}|\\[(\[])*"
CLOSING = r"[\"'’”`)\]}*_$]*"
NAMED = _words("options?", "choices?", "answers?", "letters?", "statements?", "alternatives?")

SUBJECT = _words(
    r"answers?", r"ans\.?", "solution", "response", "selection", "pick", "guess", "conclusion",
    "key", "options?", "choices?", "letter", "statement", "alternative", "one", "correct", "right",
    "verdict", "result", "final",
)  # fmt: skip
LINK = _words(
    r"\b(?:is|are|was|were|would|will|must|should|could|can|might|may|has|have|to|be|been|seems?",
    "appears?|looks?|like|therefore|thus|hence|then|so|indeed|clearly|definitely|certainly",
    "probably|likely|most|obviously|simply|just|actually|still|here|given|as|follows|by|the",
    "this|that|question|problem|for|of|correct|right|best|final|one|option|choice|letter|answer",
    r"number|labell?ed|marked|called|i|think|believe|say|it|above|below|option)\b",
    r"['’]s\b",
    r"[\s:=\-–—→>,*_\"“”'‘’`\])}|#$(\[{<]",
    FONT,
    r"\\[(\[]",
)
IS = r"(?:\b(?:is|are|was|be|as)\b|['’]s\b|[:=\-–—→>\n|\]])"
STATED_BEFORE = _compile(rf"\b{SUBJECT}(?P<link>{LINK}*)\Z")
LINKED = _compile(IS)
CONCLUDED = _compile(
    r"(?:\b(?:choos(?:e|ing)|chose|pick(?:ing|ed)?|select(?:s|ed|ing)?|go(?:ing)? (?:with|for)"
    r"|opt(?:ing)? for|vot(?:e|ing) for|settl(?:e|ing) on|conclude|it(?:['’]s| is| must be"
    r"| has to be| should be| would be| can only be)|that(?:['’]s| is)|leav(?:es|ing)"
    r"(?: us)?(?: with)?|must be|has to be|points? to|corresponds to|matches|therefore|thus|hence"
    r"|so|means|i\.e\.|but|only|namely)\b|=>|→|####|\\boxed|\\fbox|<answer>|\bgot\b)"
    rf"{LINK}*\Z"
)
GOOD = _words(
    "true", "accurate", "appropriate", "plausible", "valid", "logical", "sensible", "choice",
    "option", "one", "well", "sense", "good", "most",
)  # fmt: skip
CHOSEN = _words(
    "correct", "right", "best", "answers?", "solution", "winner", "better",
    rf"(?:the|my|our)\s+(?:(?:most|only|single)\s+)?(?:{GOOD}\s+)?{GOOD}",
)  # fmt: skip
"""Praise that only one choice can get."""
SAID_OF_IT = (
    rf"{CLOSING}\s*(?:\([^()\n]{{0,40}}\)\s*)?(?:,\s*)?(?:it\s+)?"
    r"(?:is|are|seems?|looks?|appears?|would be|must be|has to be|should be|fits?|works?|makes"
    r"|being|sounds?)\s+(?:to be\s+)?(?:(?:the|clearly|definitely|likely|probably|obviously|indeed"
    r"|a|my|our|only|single|that|most|very)\s+)*?"
)
MORE_OF_A_WORD = r"\b(?![ -](?:known|out|about|in that|that|for a|candidate|distractor)\b)"
"""Excludes phrases that are no praise, such as `better known` and `right about`."""
PRAISED = _compile(rf"{SAID_OF_IT}{GOOD}{MORE_OF_A_WORD}")
CHOSEN_BEHIND = _compile(rf"{SAID_OF_IT}{CHOSEN}{MORE_OF_A_WORD}")
CONCEDED = _compile(rf"\b(?:while|although|though|even if)\s+(?:(?:the|{NAMED})\s+)*[\"'‘“(\[*]*\Z")
"""Words before a letter that concede a point: praise of it is not the verdict."""
BETWEEN = _compile(r"\b(?:between|among|amongst)\b[^.,;\n]{0,20}\Z")
"""Words before letters in a row that make them alternatives."""
TICK = re.compile(r"[^\w\n]{0,4}[✓✔✅☑]")
TICKED = _compile(TICK.pattern + r"|[\s\-–—:(]*\b(?:correct|right|yes)\b(?! answers?\b)")
BAD = _words(
    "incorrect", "wrong", "false", "eliminated", "excluded", "ruled out", "rejected", "discarded",
    "dismissed", "impossible", "implausible", "unlikely", "invalid", "irrelevant", "untrue",
    "right out", "inaccurate", "unrelated", r"nonsens\w*", "absurd", "unsupported", "misleading",
    "improbable", r"distractors?", "mistaken", "inappropriate", "unreasonable", "out", "less",
    "too", "bad", "illogical", "contradicted", "tempting", "refuted", "ineligible", "nonexistent",
)  # fmt: skip
NO = _words(
    "not", "never", "cannot", r"\w+n[’']t", "does not", "do not", "did not", "fails?",
    "contradicts?", "lacks?", "misses", "ignores?", "confuses?",
)  # fmt: skip
ADVERBS = r"(?:(?:also|clearly|both|all|definitely|obviously|simply|probably|just|very|quite|an?"
ADVERBS += r"|certainly|therefore|thus|the|completely|totally|factually|each|equally|more)\s+)*"
VERBS = r"(?:(?:is|are|was|were|seems?|looks?|appears?|would|could|can|might|must|should|be|being"
VERBS += r"|to|has|have|been|gets?|sounds?)\s+)"
ASIDE = r"(?:\s*\([^()\n]{0,60}\))?"
RULED_OUT_BEHIND = _compile(
    rf"(?:['’]s)?{CLOSING}{ASIDE}(?:\s+{VERBS}*{ADVERBS}(?:{BAD}|cannot|\w+n[’']t|does not|do not"
    rf"|did not|fails?|contradicts?|lacks?)\b|\s+{VERBS}+{ADVERBS}{NO}\b)"
)
CROSSED = _compile(
    r"[.):\-–—=(,\s*\"'’”\]]{0,6}(?:(?:this|that|it|the)\s+)?(?:(?:option|choice|answer|one)\s+)?"
    rf"(?:(?:is|['’]s)\s+)?{ADVERBS}"
    r"(?:(?:incorrect|wrong|eliminated|ruled out|nope|rejected)\b(?!\s*:)"
    r"|not (?:correct|right|true|the|this|it|a good)\b|[✗✘❌×☒])"
)
RULED_OUT_BEFORE = _compile(
    r"(?:\b(?:not|never|neither|nor|without|except|excluding|unlike|than|eliminat\w*|exclud\w*"
    r"|discard\w*|reject\w*|dismiss\w*|disregard\w*|rul(?:e[sd]?|ing) out|cross(?:ed|ing)? out"
    r"|instead of|wrong|incorrect|against|versus|vs\.?|avoid\w*|ignor\w*|beats|cannot|\w+n[’']t"
    r"|over|outperforms|throw(?:ing)? out|remov\w+|strik\w+)\b)"
    rf"(?:[ \t]*\b(?:be|is|are|the|both|either|also|correct|right|simply|just|{NAMED}|because"
    rf"|possibly|out|like)\b|[ \t]*:)*[ \t\"'‘“`*_(\[{{$]*\Z"
)
SUPPOSED = _compile(
    r"(?:\b(?:if|whether|suppos\w+|assum\w+|unless|tempt\w+|initially|at first|first glance)\b"
    r"|\b(?:might|may|could|would|some|many|people|students?|others) (?:\w+ )?(?:say|think|thought"
    r"|choose|pick|select|argue|believe|guess))[^.,;\n]{0,60}\Z"
)
ASKED = re.compile(rf"{CLOSING}\s*\?")
DENIED = _compile(rf"{CLOSING}\s*\?\s*(?:no|nope|not)\b")
AFFIRMED = _compile(rf"{CLOSING}\s*\?\s*(?:yes|correct|right|indeed)\b")
PART_OF_A_NAME = re.compile(r"[+#°]|-\w|\.[A-Z]\b|/[a-z]|['’](?!s\b)\w")
NAMES_BEFORE = re.compile(
    r"(?:°\s?|\b[A-Za-z]\.\s?|\w[-&'’]"
    r"|\b(?:[Vv]itamin|[Pp]lan|[Hh]epatitis|[Tt]ype|[Gg]rade"
    r"|[Gg]roup|[Tt]eam|[Pp]oint|[Ff]igure|[Ss]ection|[Pp]art|[Pp]erson|[Bb]lood|[Pp]hase|[Ss]chedule"
    r"|[Ii]nfluenza|[Mm]ajor|[Mm]inor) )\Z"
)
INITIAL = (re.compile(r"\b[A-Z][a-z]+ \Z"), re.compile(r"\. [A-Z][a-z]"))
NEXT_WORD = re.compile(r"[ \t]+([A-Za-z]+)(?:['’]s)?")
NOT_AFTER_AN_ARTICLE = re.compile(
    "(?:is|are|was|were|be|because|since|as|and|or|but|nor|not|would|will|could|should|must|may"
    "|might|has|had|have|does|did|do|for|in|on|by|with|that|which|it|the|this|so|if|then|when"
    "|whereas|due|here|also|according|from|at|to|vs|versus|over|rather|instead|explanation|reason"
    "|reasoning|justification|rationale|note|cannot)"
)
PRONOUN = re.compile(
    r"['’](?!s\b)[a-z]"
    r"|\s+(?!(?:is|because|since|and|or|rather than|instead of|not|fits|works)\b)[a-z]"
)
LINE_START = re.compile(r"(?:^|\n)[\s\"'‘“`*_(\[\-•>#]*\Z")
LINE_END = re.compile(r"[\s\"'’”`*_)\]}.:]*(?:$|\n)")
TEXT_START = re.compile(rf"{OPENING}(?:[\-•]{OPENING})?\Z")
BOLD = (re.compile(r"\*\*[(\"'\s]*\Z"), re.compile(r"[)\"'.:\s]*\*\*"))
DELIMITER = re.compile(r"[\"'’”`*_]*[.):][\"'’”`*_]*\s*")
JOINED = _compile(
    rf"(?:['’]s)?{CLOSING}{ASIDE}(?:\s*[,;/&]\s*|\s+(?=and\b|n?or\b|vs\b|versus\b))"
    r"(?:(?P<and>and|or|nor|vs\.?|versus)(?:/or)?\s+)?"
    rf"(?:also\s+|both\s+|{NAMED}\s+)*[\"'‘“(\[*]*"
)
OPEN_CHOICE = _compile(r"\b(?:or|vs|versus)\b|/")


# -- The judge -------------------------------------------------------------------------------------


def stated_letter(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """Return the choice last stated, else last praised, else first leading, else first mentioned.

    Never conclusive: a statement may follow.
    """
    offered = LETTERS[: len(choices)] or LETTERS
    best, where = Rank.NOT_AN_ANSWER, -1
    for standing, at in _judged(text, offered, choices):
        if standing > best or standing is best >= Rank.PRAISED:
            best, where = standing, at
    if best < Rank.MENTIONED:
        lower = _lower_case_answer(text, offered)
        where = where if lower < 0 else lower
    return Candidate(text[where].upper(), where, where + 1) if where >= 0 else None


def _judged(text: str, offered: str, choices: Sequence[str]) -> Iterator[tuple[Rank, int]]:
    """Yield the rank and position of every judged letter, in order."""
    places = [found.start(1) for found in MENTION.finditer(text) if found[1] in offered]
    if len(places) > 2 * MOST_JUDGED:
        places = places[:MOST_JUDGED] + places[-MOST_JUDGED:]
    for group in _groups(text, places):
        before = text[max(0, group[0] - WINDOW) : group[0]]
        behind = text[group[-1] + 1 : group[-1] + 1 + WINDOW]
        if len(group) > 1 and _closed_as_a_group(text, group, before, behind):
            continue
        for at in group:
            yield _standing(text, at, choices), at


def _groups(text: str, places: list[int]) -> Iterator[list[int]]:
    """Letters in a row: `A, B and C`."""
    group: list[int] = []
    for at in places:
        is_named = any(text[i] == text[at] for i in group)  # "between A and C, C"
        if group and (is_named or not JOINED.fullmatch(text[group[-1] + 1 : at][:WINDOW])):
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def _closed_as_a_group(text: str, group: list[int], before: str, behind: str) -> bool:
    """Whether letters in a row are ruled out together, or left open: `A or B`."""
    joints = [text[i + 1 : j] for i, j in pairwise(group)]
    if len(group) > 2 or any(map(OPEN_CHOICE.search, joints)) or RULED_OUT_BEHIND.match(behind):
        return True  # three or more are never one answer
    if BETWEEN.search(before):
        return True
    joined = JOINED.fullmatch(joints[-1])
    # Of two letters with a comma, the second may be the answer: "not A, B".
    is_row = before.rstrip().endswith(":") or (joined and joined["and"])
    return bool(is_row and RULED_OUT_BEFORE.search(before))


def _standing(text: str, at: int, choices: Sequence[str]) -> Rank:
    before, behind = text[max(0, at - WINDOW) : at], text[at + 1 : at + 1 + WINDOW]
    letter = text[at]
    rest = _behind_choice(behind, choices[LETTERS.index(letter)] if choices else "")
    said = behind if rest is None else rest
    is_out = any(out.match(said) for out in (RULED_OUT_BEHIND, DENIED, CROSSED))
    is_word = rest is None and _is_a_word(letter, behind)
    if is_word or is_out or RULED_OUT_BEFORE.search(before):
        return Rank.NOT_AN_ANSWER
    if rest is None and AFFIRMED.match(behind):
        return Rank.STATED
    is_open = ASKED.match(behind) or SUPPOSED.search(before) or CONCEDED.search(before)
    if is_open or _is_part_of_a_name(before, behind):
        return Rank.DOUBTFUL
    if _is_stated(before, text_start=at < WINDOW):
        return Rank.STATED
    if (praise := _praise(behind, rest)) is not None:
        return praise
    if _is_list_item(letter, before, behind):
        return Rank.DOUBTFUL
    starts = at < WINDOW and TEXT_START.match(before)
    alone = LINE_START.search(before) and LINE_END.match(behind)
    bold = BOLD[0].search(before) and BOLD[1].match(behind)
    return Rank.LEADING if starts or alone or bold else Rank.MENTIONED


def _behind_choice(behind: str, choice: str) -> str | None:
    """Return the text after a letter and its choice's words; None if the words do not follow."""
    delimiter = DELIMITER.match(behind)
    start = delimiter.end() if delimiter else len(behind) - len(behind.lstrip())
    known = choice.rstrip(".").casefold()
    if known and behind[start:].casefold().startswith(known[: WINDOW // 2]):
        return behind[start + len(known) :]
    return None


def _is_a_word(letter: str, behind: str) -> bool:
    """Whether the letter is the article `A` or the pronoun `I`."""
    if letter == "I":
        return PRONOUN.match(behind) is not None
    if letter != "A" or not (word := NEXT_WORD.match(behind)):
        return False
    follower = word[1]
    is_verb = follower.islower() and follower.endswith("s") and not follower.endswith(("ss", "us"))
    return not is_verb and not NOT_AFTER_AN_ARTICLE.fullmatch(follower.lower())


def _praise(behind: str, rest: str | None) -> Rank | None:
    """Return the rank from praise after a letter, as in `C is correct`; None without praise."""
    said = behind if rest is None else rest
    if rest is not None:
        is_ticked = TICKED.match(rest)
    else:
        delimiter = DELIMITER.match(behind)
        is_ticked = TICKED.match(behind, delimiter.end()) if delimiter else TICK.match(behind)
    if is_ticked or CHOSEN_BEHIND.match(said):
        return Rank.STATED
    return Rank.PRAISED if PRAISED.match(said) else None


def _is_stated(before: str, *, text_start: bool) -> bool:
    """Whether the text before a letter announces an answer."""
    if CONCLUDED.search(before):
        return True
    if found := STATED_BEFORE.search(before):
        begins = text_start and not before[: found.start()].strip(" \n*#_[(<\"'")
        return begins or LINKED.search(before, found.start("link")) is not None
    return False


def _is_part_of_a_name(before: str, behind: str) -> bool:
    if PART_OF_A_NAME.match(behind) or NAMES_BEFORE.search(before):
        return True
    return bool(INITIAL[0].search(before) and INITIAL[1].match(behind))


def _is_list_item(letter: str, before: str, behind: str) -> bool:
    """Whether a letter is in a list of choices: its neighbours begin the lines around it."""
    if not (LINE_START.search(before) and DELIMITER.match(behind)):
        return False
    mark = r"[\s\"'‘“`*_(\[\-•>#]*{}[\"'’”`*_]*[.):]"
    earlier, later = chr(ord(letter) - 1), chr(ord(letter) + 1)
    return bool(
        re.search(r"\n" + mark.format(later), behind)
        or re.search(r"(?:^|\n)" + mark.format(earlier) + r"[^\n]*\n[\W_]*\Z", before)
    )


def _lower_case_answer(text: str, offered: str) -> int:
    """Position of a lower-case letter that is certainly meant as the answer; −1 if none is."""
    found = [
        m.start(1) for m in LOWER_CASE.finditer(text[: 50 * WINDOW]) if m[1].upper() in offered
    ]
    where = -1
    for at in found[:MOST_JUDGED]:
        before, behind = text[max(0, at - WINDOW) : at], text[at + 1 : at + 1 + WINDOW]
        if RULED_OUT_BEFORE.search(before) or RULED_OUT_BEHIND.match(behind):
            continue
        if _is_stated(before, text_start=at < WINDOW):
            return at
        if where < 0 and at < WINDOW and TEXT_START.match(before):
            where = at
    return where
