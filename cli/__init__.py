"""The `c4` command: parses its arguments, calls one function and prints the result."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """Entry point of the console script."""
    try:
        from c4.cli.app import main as run
    except KeyboardInterrupt:  # Ctrl-C during the imports, which take seconds
        raise SystemExit(INTERRUPTED) from None
    run()


__all__ = ["INTERRUPTED", "main"]
