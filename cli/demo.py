"""`c4 demo`."""

import json
import shlex
from collections.abc import Sequence
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
SHOWN = 5
"""Numbers of examples that the viewer's page holds, besides the one that is told."""
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
"""Examples that the first figures are drawn from."""
FIRST_FIGURES = ("stabilization", "phase-diagram", "trace", "text")
"""What can be drawn after the first recording."""


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
    # What the commands print is the demo's result only where somebody reads along.
    with results_aside() if as_json else nullcontext():
        page = show_everything(out, n, pool)
    if as_json:
        say_json({"out": page, "runs": out / "runs", "figures": out / "figures"})
    else:
        say(f"\nopen {page}\nsee single decodes step by step: c4 view {out / 'runs'}")


def show_everything(out: Path, n: int, pool: int) -> Path:
    """Record, replay, calibrate, run, time and draw; returns the page that shows it all."""
    from c4.replay.pools import POOL_TASKS

    tasks = ["mmlu", SWEPT, _code_task() or "svamp"]
    page = out / "index.html"
    count = 6 * n + len(POOL_TASKS) * pool + 2 * n
    say(PLAN.format(count=count, page=page), err=True)
    first, *others = demo_commands(out, tasks, n, pool)
    _run(first)
    _draw_first(out, page)
    say(f"\nthe first figures: open {page}", err=True)
    for arguments in others:
        _run(arguments)
    if not _is_timed(out, tasks):
        _run(bench_command(out, tasks, n))
    _draw_everything(out, page)
    return page


def demo_commands(out: Path, tasks: Sequence[str], n: int, pool: int) -> list[list[str]]:
    """The commands that a user would type, in order."""
    from c4.gates.registry import GATES
    from c4.replay.pools import POOL_TASKS

    runs = ["--runs", str(out / "runs")]
    chosen = [word for task in tasks for word in ("--task", task)]
    gates = [name for name in GATES if name != "progress"]  # it has no setting of the paper's
    calibration = str(out / "runs" / "calibration.json")
    examples = ["--n", str(n), "--out", str(out / "runs")]
    first = ["--n", str(min(n, FIRST)), "--out", str(out / "runs")]
    record = [["record", "--task", tasks[0], *first]]
    record += [["record", "--task", task, *examples] for task in tasks]
    record += [
        ["record", "--task", task, "--skip", "0", "--n", str(pool), "--out", str(out / "runs")]
        for task in POOL_TASKS
    ]
    methods = ["--method", "baseline", "--method", "c4", "--cells"]
    sweep = [
        ["run", "--method", "c4", "--set", f"H={hole}", "--task", SWEPT, *examples]
        for hole in ("0", "inf")
    ]
    return [
        *record,
        ["replay", *runs, *chosen, *(word for gate in gates for word in ("--gate", gate))],
        ["calibrate", *runs, "--gamma", "2", "--pool", str(pool), "--out", calibration],
        ["run", *methods, *chosen, *examples],
        *sweep,
        ["report", *runs, "main", "paired", "stabilization"],
    ]


def bench_command(out: Path, tasks: Sequence[str], n: int) -> list[str]:
    """The command that fills the columns of speed; it times some of the examples, or all n."""
    chosen = [word for task in tasks for word in ("--task", task)]
    methods = [word for name in TIMED for word in ("--method", name)]
    few = ["--n", str(min(n, 3)), "--warmups", "1", "--passes", "2"]
    return ["bench", *methods, *chosen, *few, "--out", str(out / "runs")]


def _is_timed(out: Path, tasks: Sequence[str]) -> bool:
    """Whether an earlier call has timed every task: a clock's answer is never the same twice."""
    from c4.store.timings import read_timings

    timings = read_timings(out / "runs").to_pylist()
    timed = {json.loads(row["identity"])["task"] for row in timings}
    return timed >= set(tasks)


def _code_task() -> str | None:
    """HumanEval if this machine can isolate model-written programs, else None."""
    from c4.errors import SandboxError
    from c4.tasks import TASKS
    from c4.tasks.grading import check_can_grade

    try:
        check_can_grade(TASKS["humaneval"], unsafe_code=False)
    except SandboxError as error:
        say(f"no code task in this demo: {error}", err=True)
        return None
    return "humaneval"


def _run(arguments: list[str]) -> None:
    """Print a command, and run it inside this process, so that torch is loaded only once."""
    from typer.main import get_command

    from c4.cli.app import app

    say(f"\n$ c4 {shlex.join(arguments)}", err=True)
    code = get_command(app).main(arguments, prog_name="c4", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _draw_first(out: Path, page: Path) -> None:
    """Draw what one recording can tell, and a page that says that more is to come."""
    from c4.analysis import Library
    from c4.figures import draw_figures
    from c4.figures.gallery import Format, choose_figures
    from c4.figures.page import Page, write_page

    if page.exists():  # of an earlier call, which had more to show
        return
    with status("drawing the first figures") as note:
        library = Library(out / "runs", note=note)
        kinds = choose_figures(FIRST_FIGURES)
        drawings = draw_figures(kinds, library, out / "figures", [Format.PNG], note)
    unfinished = "The demo is still running. Reload this page to see more."
    write_page(page, Page(title=TITLE, intro=INTRO, drawings=drawings, unfinished=unfinished))


def _draw_everything(out: Path, page: Path) -> None:
    """Draw every figure there is data for, and the pages that show them."""
    from c4.analysis import Library, make_report
    from c4.analysis.tables import REPORT_GATES
    from c4.figures import Width, draw_figures
    from c4.figures.gallery import Format, choose_figures
    from c4.figures.page import Page, write_page

    kinds = choose_figures(["all"])
    with status("drawing") as note:
        calibrations = [out / "runs" / "calibration.json"]
        library = Library(out / "runs", calibrations=calibrations, note=note)
        formats = [Format.PDF, Format.PNG]
        drawings = draw_figures(kinds, library, out / "figures", formats, note)
        phone = out / "figures" / "phone"
        narrow = draw_figures(kinds, library, phone, [Format.PNG], note, Width.COLUMN)
        every_gate = Library(out / "runs", gates=REPORT_GATES, calibrations=calibrations, note=note)
        tables = make_report(["all"], every_gate, paper=False)
    looks = _write_looks(out, library)
    shown = Page(
        title=TITLE, intro=INTRO, drawings=drawings, tables=tables, narrow=narrow, looks=looks
    )
    write_page(page, shown)


def _write_looks(out: Path, library: "Library") -> "list[Look]":
    """Write the viewer's page, and say what to look at in it."""
    from c4.figures.page import Look, tell_example

    if library.telling is None:
        return []
    run, index = library.telling
    later = [number for number in run.indices if number > index]
    chosen = [word for t in [index, *later[:SHOWN]] for word in ("--trajectory", str(t))]
    view = out / "view.html"
    _run(["view", str(out / "runs"), "--html", str(view), *chosen])
    key = "/".join(run.folder.parts[len(out.parts) + 1 :])
    says = tell_example(library.texts) or "One decode, step by step."
    exits = library.texts.filter(method="cvee")["step"].to_list()
    step = exits[0] if exits else 1
    link = f"{view.name}#{urlencode({'run': key, 't': index, 'step': step})}"
    return [Look("One decode, step by step", says, link)]
