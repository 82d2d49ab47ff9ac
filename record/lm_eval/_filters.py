"""The harness's filters as extractors, which find an answer and its location in a text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from c4.tasks import Candidate

Span = tuple[int, int]
NOTHING = ("[invalid]", "", "None")
"""Fallback values of filters that mean "no answer found"."""
PICK_AN_ANSWER = ("MajorityVoteFilter", "TakeKFilter")
"""Filters that choose among answers to one prompt; greedy decoding has only one answer."""
HARNESS_FILTERS = "lm_eval.filters."


def cut_at(text: str, until: Sequence[str]) -> str:
    """Cut a text before the first of some stop strings, as the harness expects."""
    ends = (text.find(stop) for stop in until if stop)
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def stops_of(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stop strings of a task or a request."""
    until = kwargs.get("until") or ()
    return (until,) if isinstance(until, str) else tuple(map(str, until))


def apply_filters(filters: Sequence[Any], answers: Sequence[str], doc: Any) -> Any:
    """Apply a pipeline of filters to the answers to one prompt."""
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
    """`lower` or `upper` if an earlier filter changes the text to that case."""

    def locate(self, text: str) -> Span | None:
        """Return the span of a text that the filter selects; None if there is no match."""
        matches = list(re.finditer(self.pattern, recased(text, self.case)))
        if not -len(matches) <= self.group_select < len(matches):
            return None
        match = matches[self.group_select]
        groups = range(1, match.re.groups + 1)
        # The whole match if the pattern has no groups, else the first non-empty group.
        spans = [match.span(i) for i in groups if match.group(i)] if groups else [match.span()]
        return strip(text, spans[0]) if spans else None


def recased(text: str, case: str) -> str:
    """Change the case of a text letter by letter, so that offsets stay the same."""
    if not case:
        return text
    letters = ((letter, letter.lower() if case == "lower" else letter.upper()) for letter in text)
    return "".join(new if len(new) == 1 else old for old, new in letters)


def strip(text: str, span: Span) -> Span:
    """Shrink a span to exclude the white space at its ends."""
    start, end = span
    found = text[start:end]
    start += len(found) - len(found.lstrip())
    return start, start + len(found.strip())


@dataclass(frozen=True)
class Strip:
    """A filter that strips white space from both ends."""

    def locate(self, text: str) -> Span:
        """Return the span of the stripped text."""
        return strip(text, (0, len(text)))


@dataclass(frozen=True)
class FilterExtractor:
    """Extracts an answer as one of a task's filters does.

    Its repr contains everything that the answer depends on, so that signals can be cached.
    """

    task: str
    filter_name: str
    version: str
    """Version of the harness."""
    steps: tuple[str, ...]
    """The pipeline of filters with their settings."""
    until: tuple[str, ...]
    repeats: int
    locating: tuple[Regex | Strip, ...]
    """The filters that locate the answer; empty if gates watch the whole text."""
    filters: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """The harness's own filters, if no document is needed to apply them."""

    @property
    def watches_all(self) -> bool:
        """Whether the answer is the whole text, because no regular expression locates it."""
        return not self.locating

    def __call__(
        self,
        text: str,
        choices: Sequence[str] = (),  # noqa: ARG002 - harness filters do not use them
    ) -> Candidate | None:
        """Return the answer and its span; None if there is no answer."""
        seen = cut_at(text, self.until)
        start, end = 0, len(seen)
        for step in self.locating:
            span = step.locate(seen[start:end])
            if span is None:
                # A fallback such as 0 may be a valid answer, but it has no location in the text.
                said = step.fallback if isinstance(step, Regex) else ""
                return None if said in NOTHING else Candidate(said, 0, 0)
            start, end = start + span[0], start + span[1]
        return Candidate(self._value(seen, seen[start:end]), start, end)

    def _value(self, seen: str, found: str) -> str:
        """Return the answer after all filters, for example in lower case."""
        if self.watches_all or not self.filters:
            return found
        made = apply_filters(self.filters, [seen] * self.repeats, {})
        while isinstance(made, list | tuple) and made:
            made = made[0]
        return str(made)


def read_filter(
    name: str, ensemble: Any, *, until: tuple[str, ...], repeats: int, version: str
) -> FilterExtractor:
    """Make the extractor for one of a task's filter pipelines."""
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
    """Return the leading filters that select a part of the text, up to the last `Regex`."""
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
