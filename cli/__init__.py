"""The `c4` command: parse, call one function, print."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """Entry point of the console script."""
    try:
        from c4.cli.app import main as run
    except KeyboardInterrupt:  # libraries take seconds to import
        raise SystemExit(INTERRUPTED) from None
    run()


__all__ = ["INTERRUPTED", "main"]
