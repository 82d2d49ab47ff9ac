"""The root of the command: logging, errors, and the commands themselves."""

import logging
import os
import sys
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from rich.logging import RichHandler
from typer.core import TyperGroup

from c4.cli import (
    _bench,
    _calibrate,
    _demo,
    _figures,
    _grade,
    _models,
    _record,
    _replay,
    _report,
    _run,
    _runs,
    _tasks,
    _verify,
)
from c4.cli._progress import console
from c4.errors import C4Error

RESUMABLE = ("record", "run", "models", "demo")
"""Commands that keep what they finished and go on from there."""


class C4Group(TyperGroup):
    """Prints what a user can act on without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (C4Error, OSError) as error:
            typer.secho(f"error: {error}", err=True, fg=typer.colors.RED)
            raise typer.Exit(2) from error
        except KeyboardInterrupt:
            advice = (
                "; nothing finished is lost: give the same command (without --fresh) to go on"
                if ctx.invoked_subcommand in RESUMABLE
                else ""
            )
            typer.secho(f"interrupted{advice}", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=C4Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Record, replay and calibrate early exit in masked diffusion language models.",
)


def show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"c4 {version('c4-dlm')}")
        raise typer.Exit()


@app.callback()
def configure(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done.")] = False,
) -> None:
    handler = RichHandler(console=console, show_path=False, show_time=False)
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler], force=True)
    logging.getLogger("c4").setLevel(level)


app.command("record", help=_record.HELP)(_record.record_command)
app.command("run", help=_run.HELP)(_run.run_command)
app.command("bench", help=_bench.HELP)(_bench.bench_command)
app.command("replay", help=_replay.HELP)(_replay.replay_command)
app.command("calibrate", help=_calibrate.HELP)(_calibrate.calibrate_command)
app.command("verify", help=_verify.HELP)(_verify.verify_command)
app.command("report", help=_report.HELP)(_report.report_command)
app.command("figures", help=_figures.HELP)(_figures.figures_command)
app.command("demo", help=_demo.HELP)(_demo.demo_command)
app.command("grade", help=_grade.HELP)(_grade.grade_command)
app.command("runs", help=_runs.HELP)(_runs.runs_command)
app.command("tasks")(_tasks.tasks_command)
app.add_typer(_models.app, name="models")


def main() -> None:
    """Entry point of the console script."""
    try:
        app(prog_name="c4", args=sys.argv[1:])
    except SystemExit as done:
        leave(done)


def leave(done: SystemExit) -> NoReturn:
    """End the process with the code it asks for.

    Threads of Arrow and torch are now and then still alive when the interpreter takes itself down,
    and the process then aborts with another code after all work is done. So it is left at once.
    """
    if not isinstance(done.code, int | None):
        raise done
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(done.code or 0)
