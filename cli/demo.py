"""`c4 demo`."""

import json
import shlex
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from c4.cli.options import LOCAL_PLACE, JsonOption
from c4.cli.output import results_aside, say, say_json
from c4.cli.progress import status
from c4.errors.system import require_writable_folder

if TYPE_CHECKING:
    from c4.analysis import Library
    from c4.figures.page import Look

HELP = """Show everything c4 does, on the model that ships with it.

The demo records an evaluation set of three tasks and the calibration pool, replays every gate,
calibrates, runs C4 live against full decoding and, on one task, with two other values of H, and
times the methods. All tables and figures are collected in one page, which shows its first figures
after the first recording, beside a page that shows single decodes step by step. Each step is a c4
command and is printed before it runs. A second call reuses what has been recorded.

Examples:

    c4 demo

    c4 demo --n 8 --pool 8 --out /tmp/look
"""

SWEPT = "gsm8k"
"""The task on which C4 is also run with other values of H."""
TIMED = ("baseline", "prophet", "sched", "cvee", "c4")
"""The methods that are timed."""
FORMATS = ("pdf", "png")
"""The formats of the figures; the page shows PNG."""
SHOWN = 5
"""Number of examples on the viewer's page besides the one that the link opens."""
TITLE = "c4: when may a diffusion language model stop?"
INTRO = (
    "These results were recorded, replayed and run live with the small model that ships with c4, "
    "on problems that c4 generates. They are not LLaDA's numbers."
)
PLAN = (
    "This takes five to ten minutes on two cores and decodes about {count} short texts. The first "
    "figures are in {page} within two minutes, and the page grows from there."
)
FIRST = 8
"""Number of examples that the first figures are drawn from."""
FIRST_FIGURES = ("stabilization", "phase-diagram", "trace", "text")
"""Figures that can be drawn after the first recording."""


def demo_command(
    out: Annotated[
        Path, typer.Option(**LOCAL_PLACE, help="Folder for everything that is made.")
    ] = Path("demo-out"),
    n: Annotated[int, typer.Option(min=1, help="Number of evaluation examples per task.")] = 20,
    pool: Annotated[
        int, typer.Option(min=1, max=40, help="Number of calibration examples per task.")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    require_writable_folder(out)
    # With --json, stdout holds the demo's own result only; the commands print to stderr.
    with results_aside() if as_json else nullcontext():
        page = show_everything(out, n, pool)
    if as_json:
        say_json({"out": page, "runs": out / "runs", "figures": out / "figures"})
    else:
        say(f"\nopen {page}\nsee single decodes step by step: c4 view {out / 'runs'}")


def show_everything(out: Path, n: int, pool: int) -> Path:
    """Run all steps of the demo; return the page that shows the results."""
    from c4.replay.pools import POOL_TASKS
    from c4.store.timings import read_timings

    tasks = ["mmlu", SWEPT, find_code_task() or "svamp"]
    page = out / "index.html"
    count = 6 * n + len(POOL_TASKS) * pool + 2 * n
    say(PLAN.format(count=count, page=page), err=True)
    first, *others = demo_commands(out, tasks, n, pool)
    run_command(first)
    if not page.exists():  # a page of an earlier call shows more
        draw_first(out, page)
    say(f"\nthe first figures: open {page}", err=True)
    for arguments in others:
        run_command(arguments)
    timings = read_timings(out / "runs").to_pylist()
    if not {json.loads(row["identity"])["task"] for row in timings} >= set(tasks):
        few = ["--n", str(min(n, 3)), "--warmups", "1", "--passes", "2", "--out", f"{out}/runs"]
        run_command(["bench", *repeated("--method", TIMED), *repeated("--task", tasks), *few])
    draw_everything(out, page)
    return page


def demo_commands(out: Path, tasks: Sequence[str], n: int, pool: int) -> list[list[str]]:
    """Return the demo's commands in order, as a user would type them."""
    from c4.gates.registry import GATES
    from c4.replay.pools import POOL_TASKS

    into, below = ["--out", f"{out}/runs"], ["--runs", f"{out}/runs"]
    examples, first = ["--n", str(n), *into], ["--n", str(min(n, FIRST)), *into]
    pooled = ["--skip", "0", "--n", str(pool), *into]
    gates = [name for name in GATES if name != "progress"]  # the paper gives it no setting
    chosen = repeated("--task", tasks)
    frozen = ["--pool", str(pool), "--out", f"{out}/runs/calibration.json"]
    methods = repeated("--method", ("baseline", "c4"))
    return [
        ["record", "--task", tasks[0], *first],
        *(["record", "--task", task, *examples] for task in tasks),
        *(["record", "--task", task, *pooled] for task in POOL_TASKS),
        ["replay", *below, *chosen, *repeated("--gate", gates)],
        ["calibrate", *below, "--gamma", "2", *frozen],
        ["run", *methods, "--cells", *chosen, *examples],
        *(
            ["run", "--method", "c4", "--set", f"H={hole}", "--task", SWEPT, *examples]
            for hole in ("0", "inf")
        ),
        ["report", *below, "main", "paired", "stabilization"],
    ]


def repeated(option: str, values: Iterable[str]) -> list[str]:
    """Return the words that give an option once for each value."""
    return [word for value in values for word in (option, value)]


def find_code_task() -> str | None:
    """Return `humaneval` if this machine can isolate model-written programs, else None."""
    from c4.errors import SandboxError
    from c4.tasks import TASKS
    from c4.tasks.grading import check_can_grade

    try:
        check_can_grade(TASKS["humaneval"], unsafe_code=False)
    except SandboxError as error:
        say(f"no code task in this demo: {error}", err=True)
        return None
    return "humaneval"


def run_command(arguments: list[str]) -> None:
    """Print a command and run it in this process, so that torch is loaded only once."""
    from typer.main import get_command

    from c4.cli.app import app

    say(f"\n$ c4 {shlex.join(arguments)}", err=True)
    if code := get_command(app).main(arguments, prog_name="c4", standalone_mode=False):
        raise typer.Exit(code)


def draw_first(out: Path, page: Path) -> None:
    """Draw the figures of one recording, on a page that says that more will follow."""
    from c4.analysis import Library
    from c4.figures import draw_figures
    from c4.figures.gallery import choose_figures, choose_formats
    from c4.figures.page import write_page

    with status("drawing the first figures") as note:
        library, kinds = Library(out / "runs", note=note), choose_figures(FIRST_FIGURES)
        formats = choose_formats(["png"])
        drawings = draw_figures(kinds, library, out / "figures", formats, note)
    unfinished = "The demo is still running. Reload this page to see more."
    write_page(page, TITLE, INTRO, drawings=drawings, unfinished=unfinished)


def draw_everything(out: Path, page: Path) -> None:
    """Draw every figure that has data, and write the pages that show them."""
    from c4.analysis import Library, make_report
    from c4.analysis.tables import REPORT_GATES
    from c4.figures import Width, draw_figures
    from c4.figures.gallery import choose_figures, choose_formats
    from c4.figures.page import write_page

    kinds, png = choose_figures(["all"]), choose_formats(["png"])
    with status("drawing") as note:
        calibrations = [out / "runs" / "calibration.json"]
        library = Library(out / "runs", calibrations=calibrations, note=note)
        drawings = draw_figures(kinds, library, out / "figures", choose_formats(FORMATS), note)
        phone = out / "figures" / "phone"
        narrow = draw_figures(kinds, library, phone, png, note, Width.COLUMN)
        every_gate = Library(out / "runs", gates=REPORT_GATES, calibrations=calibrations, note=note)
        tables = make_report(["all"], every_gate, paper=False)
    looks = write_looks(out, library)
    write_page(page, TITLE, INTRO, drawings=drawings, tables=tables, narrow=narrow, looks=looks)


def write_looks(out: Path, library: "Library") -> "list[Look]":
    """Write the viewer's page, and return links into it with captions."""
    from c4.figures.page import Look, tell_example

    if library.telling is None:
        return []
    run, index = library.telling
    later = [number for number in run.indices if number > index]
    chosen = repeated("--trajectory", map(str, [index, *later[:SHOWN]]))
    view = out / "view.html"
    run_command(["view", f"{out}/runs", "--html", str(view), *chosen])
    says = tell_example(library.texts) or "One decode, step by step."
    exits = library.texts.filter(method="cvee")["step"].to_list()
    key = "/".join(run.folder.parts[len(out.parts) + 1 :])
    step = exits[0] if exits else 1
    link = f"{view.name}#{urlencode({'run': key, 't': index, 'step': step})}"
    return [Look("One decode, step by step", says, link)]
