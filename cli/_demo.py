"""`c4 demo`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from c4.cli._calibrate import POOL_TASKS
from c4.cli._output import say
from c4.cli._places import LOCAL_PLACE
from c4.cli._progress import status
from c4.errors.system import require_writable_folder
from c4.gates.kinds import GATES

HELP = """Show everything c4 does, on the model that ships with it.

The demo records the calibration pool and an evaluation set of three tasks, replays every gate,
calibrates, runs C4 live against full decoding and, on one task, with two other values of H. It then
collects all tables and figures in one page. Each step is a c4 command and is printed before it
runs. A second call reuses what has been recorded.

Examples:

    c4 demo

    c4 demo --n 8 --pool 8 --out /tmp/look
"""

SWEPT = "gsm8k"
"""The task on which C4 is also run with other values of H."""
TITLE = "c4: when may a diffusion language model stop?"


def demo_command(
    out: Annotated[
        Path, typer.Option(**LOCAL_PLACE, help="Folder for everything that is made.")
    ] = Path("demo-out"),
    n: Annotated[int, typer.Option(min=1, help="Number of evaluation examples per task.")] = 20,
    pool: Annotated[
        int, typer.Option(min=1, max=40, help="Number of calibration examples per task.")
    ] = 20,
) -> None:
    require_writable_folder(out)
    tasks = ["mmlu", SWEPT, _code_task() or "svamp"]
    for arguments in demo_commands(out, tasks, n, pool):
        say(f"\n$ c4 {shlex.join(arguments)}", err=True)
        _run(arguments)
    say(f"\nopen {_draw_everything(out)}")


def demo_commands(out: Path, tasks: Sequence[str], n: int, pool: int) -> list[list[str]]:
    """The commands that a user would type, in order."""
    runs = ["--runs", str(out / "runs")]
    chosen = [word for task in tasks for word in ("--task", task)]
    gates = [name for name in GATES if name != "progress"]  # it has no setting of the paper's
    calibration = str(out / "runs" / "calibration.json")
    examples = ["--n", str(n), "--out", str(out / "runs")]
    record = [
        ["record", "--task", task, "--skip", "0", "--n", str(pool), "--out", str(out / "runs")]
        for task in POOL_TASKS
    ]
    record += [["record", "--task", task, *examples] for task in tasks]
    methods = ["--method", "baseline", "--method", "c4"]
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


def _code_task() -> str | None:
    """HumanEval if this machine can isolate model-written programs, else None."""
    from c4.errors import SandboxError
    from c4.tasks import get_task
    from c4.tasks.grading import check_can_grade

    try:
        check_can_grade(get_task("humaneval"), unsafe_code=False)
    except SandboxError as error:
        say(f"no code task in this demo: {error}", err=True)
        return None
    return "humaneval"


def _run(arguments: list[str]) -> None:
    """Run a command inside this process, so that torch is loaded only once."""
    from typer.main import get_command

    from c4.cli._app import app

    code = get_command(app).main(arguments, prog_name="c4", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _draw_everything(out: Path) -> Path:
    """Draw every figure there is data for, and the page that shows them."""
    from c4.analysis import Library, make_report
    from c4.analysis.tables import REPORT_GATES
    from c4.figures import draw_figures
    from c4.figures.gallery import Format, choose_figures
    from c4.figures.page import write_page

    with status("drawing") as note:
        calibrations = [out / "runs" / "calibration.json"]
        library = Library(out / "runs", calibrations=calibrations, note=note)
        formats = [Format.PDF, Format.PNG]
        drawings = draw_figures(choose_figures(["all"]), library, out / "figures", formats, note)
        every_gate = Library(out / "runs", gates=REPORT_GATES, calibrations=calibrations, note=note)
        tables = make_report(["all"], every_gate, paper=False)
    intro = (
        "These results were recorded, replayed and run live with the small model that ships with "
        "c4, on problems that c4 generates. They are not LLaDA's numbers."
    )
    page = out / "index.html"
    write_page(page, TITLE, intro, drawings, tables)
    return page
