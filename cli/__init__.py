"""The `c4` command: parse, call one function, print."""

from c4.cli._app import main

__all__ = ["main"]
