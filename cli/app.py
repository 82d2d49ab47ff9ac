"""The `c4` command: logging, error messages and the subcommands."""

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
"""Exit codes: the reader closed the output early; an error was reported."""
SIGNALLED = 128
"""Added to a signal's number to form the exit code, as shells do."""
USAGE_ERROR: Any = typer.BadParameter.__base__
"""The exception that typer raises for an invalid command line; the class has no public name."""
RESUMABLE = ("record", "run", "models", "demo", "push", "pull")
"""Commands that keep finished work and continue from it when they are given again."""


class C4Group(TyperGroup):
    """Command group that prints expected errors without a traceback."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command; usage errors are printed in the same form as other errors."""
        standalone = options.pop("standalone_mode", True)
        run: Any = super().main
        if not standalone:
            return run(*args, standalone_mode=False, **options)
        try:
            sys.exit(run(*args, standalone_mode=False, **options))
        except USAGE_ERROR as error:
            if message := error.format_message():  # empty if the help has been printed instead
                if context := error.ctx:
                    hint = f"Try '{context.command_path} --help' for help."
                    say(f"{context.get_usage()}\n{hint}", err=True)
                complain(message)
            sys.exit(BAD_INPUT)
        except BrokenPipeError:
            sys.exit(NOBODY_READS)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[WORDS] = list(args)  # workers repeat the command with them
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
            complain("out of memory; close other programs, or reduce the request")
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
    # The hub's client would print its warnings a second time with a handler of its own.
    logging.getLogger("huggingface_hub").addHandler = lambda hdlr: None  # type: ignore[method-assign]
    logging.captureWarnings(True)  # print Python's warnings like log messages


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
    signal.signal(signal.SIGTERM, stop)  # else a worker's claims are held until they expire
    try:
        app(prog_name="c4", args=sys.argv[1:])
    except SystemExit as done:
        leave(done)


def stop(number: int, _: object) -> NoReturn:
    """Turn a signal into `SystemExit`, so that cleanup code releases claims."""
    raise SystemExit(SIGNALLED + number)


def leave(done: SystemExit) -> NoReturn:
    """End the process at once with the exit code in `done`.

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
