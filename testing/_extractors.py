"""The contract of an extractor."""

from collections.abc import Iterator, Sequence
from typing import Any

from c4.errors import RAISED, failure
from c4.tasks import Candidate, ReadingStyle
from c4.tasks.answers import EXTRACTORS
from c4.tasks.extractors import REGISTRY, Finder, as_finder, find_style
from c4.tasks.task import Extractor
from c4.testing._contract import require

NOISE = (
    *("", " ", "no answer here", "A", "I think (B) is right.", "12", "x = 3.5, so 1,234 in all"),
    *(r"\boxed{7}", r"\boxed{", "def f(x):\n    return x", "```python\ndef", "漢字 ½ −3", "\n\n\n"),
)
"""Texts that an extractor meets on the way: a model writes anything before it is done."""
GOLD = ("12", "1,234.5", "B", r"\frac{1}{2}")
"""Gold answers that a normal form may meet."""
OFFERED = ("no", "yes")


def check_extractor(extractor: Extractor | Finder | str) -> None:
    """Check an extractor: a name as commands take it, a function, or a `c4.tasks.Finder`.

    It must read any text without failing, read it alike when asked again, with choices and without,
    and return a `Candidate` whose place lies in the text, or None.

    Raises:
        BrokenPlugin: says what is broken.
    """
    called = getattr(extractor, "__name__", type(extractor).__name__)
    name = extractor if isinstance(extractor, str) else called
    require("extractor", name, _findings(extractor))


def _findings(extractor: Any) -> Iterator[str]:
    if isinstance(extractor, Finder) and extractor.normal is not None:
        yield from _misnamed(extractor.normal)
    for extract in _functions(extractor):
        for choices in ((), OFFERED):
            yield from misreadings("it", extract, NOISE, choices)


def _misnamed(normal: Any) -> Iterator[str]:
    """What a normal form does wrong with some gold answers."""
    for target in GOLD:
        try:
            form = normal(target)
        except RAISED as error:
            yield f"its normal form fails on {target!r}: {failure(error)}"
            continue
        if not isinstance(form, str):
            yield f"its normal form of {target!r} must be a text, not {form!r}"


def _functions(extractor: Any) -> list[Extractor]:
    if not isinstance(extractor, str):
        return [as_finder("it", extractor).find]
    style = find_style(extractor)
    if style in list(ReadingStyle):
        return [
            kind.plain if style == ReadingStyle.PLAIN else kind.extract
            for kind in EXTRACTORS.values()
        ]
    if style in EXTRACTORS:
        return [EXTRACTORS[style].extract]
    return [as_finder(extractor, REGISTRY.behind(style)).find]


def misreadings(
    which: str, extract: Extractor, texts: Sequence[str], choices: Sequence[str]
) -> Iterator[str]:
    """What an extractor does wrong with some texts.

    Args:
        which: what the findings call it.
    """
    for text in texts:
        try:
            found, again = (extract(text, choices) for _ in range(2))
        except RAISED as error:
            yield f"{which} fails on {text!r}: {failure(error)}"
            continue
        if found != again:
            yield f"{which} reads {text!r} differently when it is asked again"
        if found is None:
            continue
        if not isinstance(found, Candidate):
            yield f"{which} must return a c4.tasks.Candidate or None, not {found!r}"
        elif not isinstance(found.value, str) or not 0 <= found.start <= found.end <= len(text):
            yield f"{which} finds {found!r} in {text!r}, which is no text at a place within it"
