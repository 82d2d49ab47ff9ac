"""The harness's filters as extractors: what they find in a text, and where it stands."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from c4.tasks import Candidate

Span = tuple[int, int]
NOTHING = ("[invalid]", "", "None")
"""Fallbacks of filters that mean that no answer was found."""
PICK_AN_ANSWER = ("MajorityVoteFilter", "TakeKFilter")
"""Filters that pick among answers to the same prompt; greedy decoding gives only one."""
HARNESS_FILTERS = "lm_eval.filters."


def cut_at(text: str, until: Sequence[str]) -> str:
    """A text up to the first of some stop strings, as the harness wants it."""
    ends = (text.find(stop) for stop in until if stop)
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def stops_of(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The stop strings that a task or a request asks for."""
    until = kwargs.get("until") or ()
    return (until,) if isinstance(until, str) else tuple(map(str, until))


def apply_filters(filters: Sequence[Any], answers: Sequence[str], doc: Any) -> Any:
    """What a pipeline of filters leaves of the answers to one prompt."""
    filtered: Any = [list(answers)]
    for one in filters:
        filtered = one.apply(filtered, [doc])
    return next(iter(filtered))


@dataclass(frozen=True)
class Regex:
    """A filter that takes one match of a regular expression."""

    pattern: str
    group_select: int
    fallback: str
    case: str = ""
    """`lower` or `upper` if an earlier filter writes the text that way."""

    def locate(self, text: str) -> Span | None:
        """The characters that the filter returns of a text; None if it finds nothing."""
        matches = list(re.finditer(self.pattern, recased(text, self.case)))
        if not -len(matches) <= self.group_select < len(matches):
            return None
        match = matches[self.group_select]
        groups = range(1, match.re.groups + 1)
        # Without groups it is the whole match; of several groups, the first that says something.
        spans = [match.span(i) for i in groups if match.group(i)] if groups else [match.span()]
        return strip(text, spans[0]) if spans else None


def recased(text: str, case: str) -> str:
    """A text in lower or upper case, letter by letter, so that places stay the same."""
    if not case:
        return text
    letters = ((letter, letter.lower() if case == "lower" else letter.upper()) for letter in text)
    return "".join(new if len(new) == 1 else old for old, new in letters)


def strip(text: str, span: Span) -> Span:
    """A span without the white space at its ends."""
    start, end = span
    found = text[start:end]
    start += len(found) - len(found.lstrip())
    return start, start + len(found.strip())


@dataclass(frozen=True)
class Strip:
    """A filter that takes white space off both ends."""

    def locate(self, text: str) -> Span:
        """The characters that are left."""
        return strip(text, (0, len(text)))


@dataclass(frozen=True)
class FilterExtractor:
    """Reads an answer as one of a task's filters does.

    Its repr says everything that the answer depends on, so that signals can be kept.
    """

    task: str
    filter_name: str
    version: str
    """Of the harness."""
    steps: tuple[str, ...]
    """The filters, one after the other, with their settings."""
    until: tuple[str, ...]
    repeats: int
    locating: tuple[Regex | Strip, ...]
    """The filters that pick the answer; empty where gates watch the whole text."""
    filters: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """The harness's own filters, if no document is needed to apply them."""

    @property
    def watches_all(self) -> bool:
        """Whether the answer is the whole text, because no regular expression picks it."""
        return not self.locating

    def __call__(
        self,
        text: str,
        choices: Sequence[str] = (),  # noqa: ARG002 - the harness reads without them
    ) -> Candidate | None:
        """The answer, and the characters that hold it."""
        seen = cut_at(text, self.until)
        start, end = 0, len(seen)
        for step in self.locating:
            span = step.locate(seen[start:end])
            if span is None:
                # A task may count its fallback as an answer, such as 0; it stands nowhere.
                said = step.fallback if isinstance(step, Regex) else ""
                return None if said in NOTHING else Candidate(said, 0, 0)
            start, end = start + span[0], start + span[1]
        return Candidate(self._value(seen, seen[start:end]), start, end)

    def _value(self, seen: str, found: str) -> str:
        """What the filters after the regular expression make of it, such as its lower case."""
        if self.watches_all or not self.filters:
            return found
        made = apply_filters(self.filters, [seen] * self.repeats, {})
        while isinstance(made, list | tuple) and made:
            made = made[0]
        return str(made)


def read_filter(
    name: str, ensemble: Any, *, until: tuple[str, ...], repeats: int, version: str
) -> FilterExtractor:
    """The extractor that reads as one pipeline of a task's filters does."""
    made = tuple(make() for make in ensemble.filters)
    return FilterExtractor(
        task=name,
        filter_name=str(ensemble.name),
        version=version,
        steps=tuple(f"{type(one).__name__}({_settings(one)})" for one in made),
        until=until,
        repeats=repeats,
        locating=_locating(made),
        filters=made if all(map(_needs_no_document, made)) else (),
    )


def _settings(one: Any) -> str:
    plain = {k: v for k, v in vars(one).items() if isinstance(v, str | int | float | bool | dict)}
    return ", ".join(f"{name}={plain[name]!r}" for name in sorted(plain))


def _needs_no_document(one: Any) -> bool:
    is_its_own = type(one).__module__.startswith(HARNESS_FILTERS)
    return is_its_own and type(one).__name__ not in ("CustomFilter", "MultiChoiceRegexFilter")


CASES = {"LowercaseFilter": "lower", "UppercaseFilter": "upper"}


def _locating(made: Sequence[Any]) -> tuple[Regex | Strip, ...]:
    """The filters up to the last regular expression, if each picks a part of the text."""
    found: list[Regex | Strip] = []
    case = ""
    for kind, one in ((type(one).__name__, one) for one in made):
        if kind == "RegexFilter":
            found.append(Regex(one.regex_pattern, int(one.group_select), str(one.fallback), case))
        elif kind == "WhitespaceFilter":
            found.append(Strip())
        elif kind in CASES:
            case = CASES[kind]
        elif kind not in PICK_AN_ANSWER:
            break
    while found and isinstance(found[-1], Strip):
        found.pop()
    return tuple(found)
