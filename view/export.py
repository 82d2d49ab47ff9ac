"""The same page as one file: it opens from disk, loads nothing, and has every recorded step.

The modules become one script, whose hash the page's policy names; arrays travel as gzip in base64,
which browsers undo by themselves.
"""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from c4.errors import ConfigError
from c4.store.locations import Location
from c4.store.runs import Run
from c4.store.storage import put_file, require_can_put
from c4.tasks import AnswerReading
from c4.view._bundle import bundle_modules
from c4.view._cohort import cohort_message, cohort_of
from c4.view._listing import Key, describe_row, marks_message
from c4.view._static import PAGE, read_static
from c4.view._trajectory import trajectory_message
from c4.view.shelf import Book, Shelf

ASSETS = re.compile(r'<link rel="stylesheet"[^>]*>\n<script type="module"[^>]*></script>')
HEIGHT = 900
"""Pixels that a notebook gives the page."""
MOST_TRAJECTORIES = 200
"""Trajectories that one file may hold: a browser reads all of it before it shows anything."""


def write_page(path: Path, shelf: Shelf, keys: Sequence[Key]) -> None:
    """Write the page with some trajectories to a file."""
    require_can_put(path)
    put_file(path, make_page(shelf, keys).encode())


def choose_trajectories(shelf: Shelf, numbers: Sequence[int], n: int | None) -> list[Key]:
    """The trajectories that a page is to hold: some by number of every run, or the first n each.

    All of them where neither is given and there are few.
    """
    found = [
        (book.key, index) for book in shelf.books.values() for index in _chosen(book, numbers, n)
    ]
    if not found:
        asked = ", ".join(map(str, numbers))
        raise ConfigError(f"no run below {shelf.root} has trajectory {asked}; see: c4 view")
    if len(found) > MOST_TRAJECTORIES:
        raise ConfigError(
            f"{len(found)} trajectories are too many for one page; give --trajectory, a smaller "
            "--n, --task or the folder of one run"
        )
    return found


def _chosen(book: Book, numbers: Sequence[int], n: int | None) -> list[int]:
    wanted = [index for index in book.indices if not numbers or index in numbers]
    return list(islice(wanted, n))


def make_page(shelf: Shelf, keys: Sequence[Key]) -> str:
    """The page as text."""
    script, style = bundle_modules(), read_static("app.css")[0]
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    # Base64 and escaped JSON hold nothing that could close the element.
    data = json.dumps(page_data(shelf, keys)).replace("<", "\\u003c")
    parts = [
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        '<div id="app"></div>',
        "<noscript>This page draws with JavaScript, which is turned off here.</noscript>",
        f'<script type="application/json" id="c4-data">{data}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    head = ASSETS.split(read_static(PAGE)[0])[0]
    return head + "\n".join(parts) + "\n"


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


def page_data(shelf: Shelf, keys: Sequence[Key]) -> dict[str, Any]:
    """Everything that the page would ask a server for."""
    books = [book for key, book in shelf.books.items() if key in {run for run, _ in keys}]
    described = shelf.describe()
    described["runs"] = [book.describe() for book in books]
    recorded = [book for book in books if book.run.has_cells]
    return {
        "shelf": described,
        "rows": [describe_row(shelf, key) for key in keys],
        "marks": marks_message(shelf, keys, {}),
        "cohorts": {book.key: _cohort(shelf, book) for book in recorded},
        "trajectories": {f"{run}#{t}": _packed(shelf, run, t) for run, t in keys},
    }


def _cohort(shelf: Shelf, book: Book) -> dict[str, Any]:
    return cohort_message(cohort_of(shelf, book), shelf.offers.names, {}, with_points=True)


def _packed(shelf: Shelf, run: str, t: int) -> str:
    message = trajectory_message(shelf.book(run), t, shelf.offers, {})
    return base64.b64encode(gzip.compress(message, 9, mtime=0)).decode()


@dataclass(frozen=True)
class NotebookPage:
    """A page that a notebook shows in its output."""

    page: str

    def _repr_html_(self) -> str:
        # Without the right to its own origin, the page cannot reach the notebook around it.
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {HEIGHT}px; border: 1px solid #8884"></iframe>'
        )


def show(run: Run | Location | str, *trajectories: int, n: int | None = None) -> NotebookPage:
    """Some trajectories of a run, or its first 20, as a page inside a notebook."""
    folder = run.folder if isinstance(run, Run) else run
    reading: AnswerReading | None = run.reading if isinstance(run, Run) else None
    shelf = Shelf(folder, reading=reading)
    most = n or (None if trajectories else 20)
    return NotebookPage(make_page(shelf, choose_trajectories(shelf, trajectories, most)))
