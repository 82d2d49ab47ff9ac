"""What a broken plug-in is told."""

from collections.abc import Iterable

from c4.errors import C4Error


class BrokenPlugin(C4Error):  # noqa: N818 - the name is the message
    """An object that does not keep the contract of its kind."""


def require(kind: str, name: str, findings: Iterable[str]) -> None:
    """Raise what was found; what the object's own code raises on the way is a finding too."""
    found: list[str] = []
    try:
        found.extend(findings)
    except C4Error as error:
        found.append(str(error))
    if found:
        lines = "\n".join(f"- {finding}" for finding in dict.fromkeys(found))
        article = "an" if kind[0] in "aeiou" else "a"
        raise BrokenPlugin(f"{name} breaks the contract of {article} {kind}:\n{lines}")
