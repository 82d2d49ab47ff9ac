"""The harness's filters as extractors: what they find in a text, and where it stands."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from c4.tasks import Candidate

Span = tuple[int, int]
NOTHING = ("[invalid]", "")
"""Fallbacks of filters that mean that no answer was found."""


def cut_at(text: str, until: Sequence[str]) -> str:
    """A text up to the first of some stop strings, as the harness wants it."""
    ends = (text.find(stop) for stop in until if stop)
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def stops_of(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The stop strings that a task or a request asks for."""
    until = kwargs.get("until") or ()
    return (until,) if isinstance(until, str) else tuple(map(str, until))


@dataclass(frozen=True)
class Regex:
    """A filter that takes one match of a regular expression."""

    pattern: str
    group_select: int
    fallback: str

    def locate(self, text: str) -> Span | None:
        """The characters that the filter returns of a text; None if nothing matches."""
        matches = list(re.finditer(self.pattern, text))
        if not -len(matches) <= self.group_select < len(matches):
            return None
        match = matches[self.group_select]
        groups = range(1, (match.re.groups or 0) + 1)
        # Without groups it is the whole match; of several groups, the first that says something.
        spans = [match.span(i) for i in groups if match.group(i)] if groups else [match.span()]
        if not spans:
            return None
        start, end = spans[0]
        found = text[start:end]
        inside = found.strip()
        start += len(found) - len(found.lstrip())
        return start, start + len(inside)


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
    regex: Regex | None
    """The filter that picks the answer; None where gates watch the whole text."""

    def __call__(
        self,
        text: str,
        choices: Sequence[str] = (),  # noqa: ARG002 - the harness reads without them
    ) -> Candidate | None:
        """The answer, and the characters that hold it."""
        seen = cut_at(text, self.until)
        if self.regex is None:
            return Candidate(seen, 0, len(seen))
        span = self.regex.locate(seen)
        if span is not None:
            return Candidate(seen[slice(*span)], *span)
        # A task may count its fallback as an answer, such as 0; it stands nowhere in the text.
        said = self.regex.fallback
        return None if said in NOTHING else Candidate(said, 0, 0)


def read_filter(task: Any, name: str, ensemble: Any, version: str) -> FilterExtractor:
    """The extractor that reads as one pipeline of a task's filters does."""
    made = [make() for make in ensemble.filters]
    return FilterExtractor(
        task=name,
        filter_name=str(ensemble.name),
        version=version,
        steps=tuple(f"{type(one).__name__}({_settings(one)})" for one in made),
        until=stops_of(task.config.generation_kwargs or {}),
        repeats=max(1, int(task.config.repeats or 1)),
        regex=_regex(made),
    )


def _settings(one: Any) -> str:
    plain = {k: v for k, v in vars(one).items() if isinstance(v, str | int | float | bool)}
    return ", ".join(f"{name}={plain[name]!r}" for name in sorted(plain))


def _regex(made: Sequence[Any]) -> Regex | None:
    """The regular expression of a pipeline, if it looks at the text as it is."""
    others = [one for one in made if type(one).__name__ != "TakeFirstFilter"]
    if not others or type(others[0]).__name__ != "RegexFilter":
        return None
    first = others[0]
    return Regex(str(first.regex_pattern), int(first.group_select), str(first.fallback))
