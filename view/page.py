"""The static files of the page, and the page as one file that opens from disk and loads nothing.

In that file, the modules are one script, whose hash is in the page's content security policy, and
arrays are gzip in base64, which browsers decode without a library.
"""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as remember
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Any

from c4.errors import ConfigError
from c4.store.locations import Location
from c4.store.runs import Run
from c4.store.storage import put_file, require_can_put
from c4.tasks import AnswerReading
from c4.view.cohort import cohort_message
from c4.view.listing import Key, describe_row, marks_message
from c4.view.trajectory import trajectory_message
from c4.view.viewer import Viewer

PAGE = "index.html"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w-]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE)
ASSETS = re.compile(r'<link rel="stylesheet"[^>]*>\n<script type="module"[^>]*></script>')
HEIGHT = 900
"""Height of the page in a notebook, in pixels."""
MOST_TRAJECTORIES = 200
"""Most trajectories in one file, because a browser reads all of it before it shows anything."""


@remember
def static_names() -> tuple[str, ...]:
    """Return the names of all static files of the page."""
    names = (entry.name for entry in files("c4.view").joinpath("static").iterdir())
    return tuple(sorted(name for name in names if name.rpartition(".")[2] in KINDS))


@remember
def read_static(name: str) -> tuple[str, str]:
    """Return the text of one static file, and its media type."""
    content = files("c4.view").joinpath("static", name).read_text(encoding="utf-8")
    return content, KINDS[name.rpartition(".")[2]]


@remember
def bundle_modules() -> str:
    """Return the page's modules as one script, each module after those that it imports.

    A module becomes a function that returns its exports. This relies on the form of the modules:
    each import is named and on its own line, and `export` precedes each exported declaration.
    """
    sources = {name: read_static(name)[0] for name in static_names() if name.endswith(".js")}
    needs = {
        name: {needed for _, needed in IMPORT.findall(source)} for name, source in sources.items()
    }
    parts = ['"use strict";', "const c4Modules = {};"]
    for name in TopologicalSorter(needs).static_order():
        exported = ", ".join(EXPORT.findall(sources[name]))
        body = EXPORT.sub("", IMPORT.sub(r'const { \1 } = c4Modules["\2"];', sources[name]))
        parts.append(f'c4Modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();')
    return "\n".join(parts)


def write_page(path: Path, viewer: Viewer, keys: Sequence[Key]) -> None:
    """Write the page with some trajectories to a file."""
    require_can_put(path)
    put_file(path, make_page(viewer, keys).encode())


def choose_trajectories(viewer: Viewer, numbers: Sequence[int], n: int | None) -> list[Key]:
    """Choose trajectories for a page: those of every run with these numbers, at most n each.

    Without numbers, any trajectory qualifies. More than `MOST_TRAJECTORIES` in total are refused.
    """
    found = []
    for cache in viewer.runs.values():
        wanted = [index for index in cache.indices if not numbers or index in numbers]
        found += [(cache.key, index) for index in wanted[:n]]
    if not found:
        asked = ", ".join(map(str, numbers))
        raise ConfigError(f"no run below {viewer.root} has trajectory {asked}; see: c4 view")
    if len(found) > MOST_TRAJECTORIES:
        raise ConfigError(
            f"{len(found)} trajectories are too many for one page; give --trajectory, a smaller "
            "--n, --task or the folder of one run"
        )
    return found


def make_page(viewer: Viewer, keys: Sequence[Key]) -> str:
    """Return the page as HTML."""
    script, style = bundle_modules(), read_static("app.css")[0]
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    # Base64 and escaped JSON contain nothing that could close the script element.
    data = json.dumps(page_data(viewer, keys)).replace("<", "\\u003c")
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


def page_data(viewer: Viewer, keys: Sequence[Key]) -> dict[str, Any]:
    """Return all data that the page would otherwise request from a server."""
    runs = [cache for key, cache in viewer.runs.items() if key in {run for run, _ in keys}]
    described = viewer.describe()
    described["runs"] = [cache.describe() for cache in runs]
    recorded = [cache for cache in runs if cache.run.has_cells]
    packed = {}
    for run, t in keys:
        message = trajectory_message(viewer.cache(run), t, viewer.menu, {})
        packed[f"{run}#{t}"] = base64.b64encode(gzip.compress(message, 9, mtime=0)).decode()
    return {
        "overview": described,
        "rows": [describe_row(viewer, key) for key in keys],
        "marks": marks_message(viewer, keys, {}),
        "cohorts": {
            cache.key: cohort_message(viewer.cohort(cache), viewer.menu.names, {}, with_points=True)
            for cache in recorded
        },
        "trajectories": packed,
    }


@dataclass(frozen=True)
class NotebookPage:
    """A page that a notebook shows in its output."""

    page: str

    def _repr_html_(self) -> str:
        # Without allow-same-origin, the page cannot reach the notebook around it.
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {HEIGHT}px; border: 1px solid #8884"></iframe>'
        )


def show(run: Run | Location | str, *trajectories: int, n: int | None = None) -> NotebookPage:
    """Return a notebook page with some trajectories of a run, by default the first 20."""
    folder = run.folder if isinstance(run, Run) else run
    reading: AnswerReading | None = run.reading if isinstance(run, Run) else None
    viewer = Viewer(folder, reading=reading)
    most = n or (None if trajectories else 20)
    return NotebookPage(make_page(viewer, choose_trajectories(viewer, trajectories, most)))
