"""`c4 view`."""

import os
import webbrowser
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli.complete import complete_gate, run_folders
from c4.cli.options import (
    LOCAL_PLACE,
    JsonOption,
    ReadingOptions,
    RecordedModelOption,
    RecordedTasksOption,
    UnsafeOption,
    parse_any_place,
    takes_options,
)
from c4.cli.output import say, say_json
from c4.cli.progress import status
from c4.errors import ConfigError
from c4.errors.text import counted

if TYPE_CHECKING:
    from c4.view import Viewer

HELP = """See decodes happen, and why gates stop them, in a browser.

The page shows the text, confidence, answer and every gate's exit at each step; moving a gate's
parameters asks the gate itself. It is served on this machine alone until Ctrl-C. With --html, it is
written as one file that opens from disk without c4 and without sliders.

Serving needs: pip install 'c4-dlm[view]'; --html does not.

Examples:

    c4 view

    c4 view demo-out/runs --task gsm8k --port 8044 --no-browser

    c4 view runs --html look.html --trajectory 41 --trajectory 52

    c4 view runs/model=tiny/task=math/method=baseline --html math.html --n 20
"""


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Options for the output of the page: a file, or a browser."""

    page: Annotated[
        Path | None,
        typer.Option("--html", **LOCAL_PLACE, help="Write one file instead of serving a page."),
    ] = None
    trajectory: Annotated[
        list[int] | None,
        typer.Option(help="With --html: a trajectory by number; may be given several times."),
    ] = None
    n: Annotated[
        int | None, typer.Option(min=1, help="With --html: the first n trajectories of each run.")
    ] = None
    host: Annotated[
        str | None,
        typer.Option(help="Listen on this address; opening the page then requires its token."),
    ] = None
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on. [default: a free one]")
    ] = 0
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = (
        False
    )


@takes_options()
def view_command(
    *,
    runs: Annotated[
        PurePath,
        typer.Argument(
            parser=parse_any_place,
            metavar="[RUNS]",
            help="Folder that holds runs, or one run.",
            autocompletion=run_folders,
        ),
    ] = Path("runs"),
    shown: PageOptions,
    task: RecordedTasksOption = None,
    model: RecordedModelOption = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            autocompletion=complete_gate,
            help="A gate besides c4's own, as in `c4 replay`; may be repeated.",
        ),
    ] = None,
    answers: ReadingOptions,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    from c4.gates.registry import GATES
    from c4.view import Viewer, write_page
    from c4.view.menu import GateMenu
    from c4.view.page import choose_trajectories

    if shown.page is None and (shown.trajectory or shown.n):
        raise ConfigError("--trajectory and --n choose what --html writes; give --html FILE too")
    with status(f"looking for runs below {runs}"):
        viewer = Viewer(
            runs,
            tasks=task or (),
            model=model,
            gates=GateMenu(tuple(dict.fromkeys([*GATES, *(gate or ())]))),
            reading=answers.choose(),
            unsafe_code=unsafe_code,
        )
    if shown.page is None:
        serve(viewer, shown, as_json=as_json)
        return
    keys = choose_trajectories(viewer, shown.trajectory or (), shown.n)
    told = counted(len(keys), "trajectory")
    with status(f"writing {told}"):
        write_page(shown.page, viewer, keys)
    size = shown.page.stat().st_size
    if as_json:
        say_json({"out": shown.page, "n": len(keys), "bytes": size})
    else:
        say(f"{shown.page}: {told}, {size:,} bytes")


def serve(viewer: "Viewer", options: PageOptions, *, as_json: bool) -> None:
    """Serve the page until Ctrl-C."""
    try:
        from c4.view.server import Server
    except ImportError as error:
        raise ConfigError(
            f"serving the viewer needs {error.name}: pip install 'c4-dlm[view]'; or write a page "
            "with: c4 view --html look.html"
        ) from error
    server = Server(viewer, options.host, options.port)
    remote = "SSH_CONNECTION" in os.environ
    if as_json:
        say_json({"address": server.address, "port": server.port})
    else:
        say(f"open {server.address}")
    if remote:
        say(tunnel_advice(server.port), err=as_json)
    elif not options.no_browser:
        webbrowser.open(server.address)
    say("Ctrl-C ends it", err=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        say("stopped", err=True)


def tunnel_advice(port: int) -> str:
    """Return the ssh command to type on the user's own machine if c4 runs on a remote one."""
    user = os.environ.get("USER", "")
    here = os.environ["SSH_CONNECTION"].split()[2:3]
    place = "@".join(filter(None, [user, *here]))
    return f"on your own machine: ssh -L {port}:127.0.0.1:{port} {place}"
