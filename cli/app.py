"""The root of the command: logging, errors, and the commands themselves."""

import logging
import os
import signal
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from c4.cli import (
    INTERRUPTED,
    bench,
    calibrate,
    demo,
    exchange,
    figures,
    grade,
    models,
    plugins,
    record,
    replay,
    report,
    run,
    runs,
    tasks,
    verify,
    view,
)
from c4.cli.engines import WORDS
from c4.cli.output import close_streams, complain, log_handler, open_streams, say
from c4.errors import C4Error
from c4.errors.system import explain

NOBODY_READS, BAD_INPUT = 1, 2
"""Exit codes besides 0: the reader of the output closed it, an error that was said."""
SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""
USAGE_ERROR: Any = typer.BadParameter.__base__
"""What typer raises for a command line that it cannot read; it gives the class no public name."""
RESUMABLE = ("record", "run", "models", "demo", "push", "pull")
"""Commands that keep what they have finished and can continue from there."""


class C4Group(TyperGroup):
    """Prints errors that a user can act on without a traceback."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command, and print usage errors as all other errors are."""
        standalone = options.pop("standalone_mode", True)
        run: Any = super().main
        if not standalone:
            return run(*args, standalone_mode=False, **options)
        try:
            sys.exit(run(*args, standalone_mode=False, **options))
        except USAGE_ERROR as error:
            if message := error.format_message():  # else the help has been printed instead
                if context := error.ctx:
                    hint = f"Try '{context.command_path} --help' for help."
                    say(f"{context.get_usage()}\n{hint}", err=True)
                complain(message)
            sys.exit(BAD_INPUT)
        except BrokenPipeError:
            sys.exit(NOBODY_READS)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[WORDS] = list(args)  # workers are given them again
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # as in `c4 runs | head -1`
            raise typer.Exit(NOBODY_READS) from None
        except (C4Error, OSError) as error:
            complain(explain(error) if isinstance(error, OSError) else str(error))
            raise typer.Exit(BAD_INPUT) from error
        except MemoryError as error:
            complain("memory ran out; close some programs, or ask for less")
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt:
            advice = (
                "; nothing finished is lost: give the same command (without --fresh) to continue"
                if ctx.invoked_subcommand in RESUMABLE
                else ""
            )
            say(f"interrupted{advice}", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=C4Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Record, replay and calibrate early exit in masked diffusion language models.",
)


def show_version(asked: bool) -> None:
    if asked:
        say(f"c4 {version('c4-dlm')}")
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
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=logging.WARNING, handlers=[log_handler()], force=True)
    logging.getLogger("c4").setLevel(level)
    # The hub's client would print its warnings a second time, beside those printed here.
    logging.getLogger("huggingface_hub").addHandler = lambda hdlr: None  # type: ignore[method-assign]
    logging.captureWarnings(True)  # what Python warns of is printed as all else is


app.command("record", help=record.HELP)(record.record_command)
app.command("run", help=run.HELP)(run.run_command)
app.command("bench", help=bench.HELP)(bench.bench_command)
app.command("replay", help=replay.HELP)(replay.replay_command)
app.command("calibrate", help=calibrate.HELP)(calibrate.calibrate_command)
app.command("verify", help=verify.HELP)(verify.verify_command)
app.command("report", help=report.HELP)(report.report_command)
app.command("figures", help=figures.HELP)(figures.figures_command)
app.command("view", help=view.HELP)(view.view_command)
app.command("demo", help=demo.HELP)(demo.demo_command)
app.command("grade", help=grade.HELP)(grade.grade_command)
app.command("runs", help=runs.HELP)(runs.runs_command)
app.command("import", help=exchange.IMPORT_HELP)(exchange.import_command)
app.command("export", help=exchange.EXPORT_HELP)(exchange.export_command)
app.command("push", help=exchange.PUSH_HELP)(exchange.push_command)
app.command("pull", help=exchange.PULL_HELP)(exchange.pull_command)
app.command("tasks")(tasks.tasks_command)
app.add_typer(models.app, name="models")
app.add_typer(plugins.app, name="plugins")


def main() -> None:
    """Entry point of the console script."""
    open_streams()
    signal.signal(signal.SIGTERM, stop)  # or the claims of a worker would be held until they expire
    try:
        app(prog_name="c4", args=sys.argv[1:])
    except SystemExit as done:
        leave(done)


def stop(number: int, _: object) -> NoReturn:
    """End as a signal demands, after giving back what is held."""
    raise SystemExit(SIGNALLED + number)


def leave(done: SystemExit) -> NoReturn:
    """End the process at once with the exit code it asks for.

    Threads of Arrow and torch are sometimes still alive while the interpreter shuts down, and the
    process then aborts with another code although all its work is done.
    """
    if not isinstance(done.code, int | None):
        raise done
    logging.shutdown()
    code, trouble = done.code or 0, close_streams()
    if trouble is not None and not isinstance(trouble, BrokenPipeError):
        with suppress(OSError):
            complain(f"the output could not be written: {explain(trouble)}")
        code = code or BAD_INPUT
    os._exit(code or (NOBODY_READS if trouble else 0))
