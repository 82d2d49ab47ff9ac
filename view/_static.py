"""The files of the page, which come with the package."""

from functools import cache
from importlib.resources import files

PAGE = "index.html"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


@cache
def static_names() -> tuple[str, ...]:
    """The names of all files of the page."""
    names = (entry.name for entry in files("c4.view").joinpath("static").iterdir())
    return tuple(sorted(name for name in names if name.rpartition(".")[2] in KINDS))


@cache
def read_static(name: str) -> tuple[str, str]:
    """The text of one file of the page, and its media type."""
    content = files("c4.view").joinpath("static", name).read_text(encoding="utf-8")
    return content, KINDS[name.rpartition(".")[2]]
