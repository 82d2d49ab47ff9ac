"""The errors that a user may see: every room raises these, and `cli` prints them."""

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class C4Error(Exception):
    """Something a user can act on. Printed as its message, without a traceback."""


class ConfigError(C4Error):
    """A parameter, or a combination of parameters, that makes no sense."""


class DataError(C4Error):
    """Examples that are missing, unreadable or not of the expected form."""


class ModelError(C4Error):
    """A checkpoint that cannot be found, or cannot be loaded without foreign code."""


class SandboxError(C4Error):
    """Model-written code cannot be isolated on this machine."""


class RunError(C4Error):
    """A recording that is missing, damaged, or not the one asked for."""


class NotReplayable(C4Error):  # noqa: N818 - the name is the message
    """A recording cannot answer for a method that changes which steps exist."""


LONGEST_NAME = 80
"""Characters of a name that an error repeats; the rest says nothing more."""


def shortened(name: str) -> str:
    """A name as an error repeats it, cut where it is absurdly long."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


RAISED = (Exception, SystemExit)
"""What code that is not c4's may raise; it is reported as an error message."""


def failure(error: BaseException) -> str:
    """What went wrong in code that is not c4's: `ValueError: no luck (my_gates.py, line 12)`.

    The line is the last one of the user's own: not of c4, nor of a library that the user calls.
    """
    what = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    frames = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_globals.get("__name__", "").startswith(NOT_USERS)
        and not frame.f_code.co_filename.startswith("<")
    ]
    own = [frame for frame in frames if frame[0].parent == frames[0][0].parent]
    if not own or isinstance(error, SyntaxError):
        return what
    return f"{what} ({own[-1][0].name}, line {own[-1][1]})"


@contextmanager
def naming_failures(what: str, kind: type[C4Error] = ConfigError) -> Iterator[None]:
    """Turn what code that is not c4's raises in the block into an error that names the code."""
    try:
        yield
    except (C4Error, MemoryError):
        raise
    except RAISED as error:
        raise kind(f"{what}: {failure(error)}") from error


NOT_USERS = ("c4.", "importlib", "functools")
"""Modules between c4 and a user's code, by the beginning of their names."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the nearest known names, ignoring case; empty if none is near."""
    names = {known_name.casefold(): known_name for known_name in known}
    near = difflib.get_close_matches(name.casefold(), names, n=3)
    return f"did you mean {' or '.join(names[match] for match in near)}?" if near else ""


def unknown_name(kind: str, name: str, known: Iterable[str], also: str = "") -> ConfigError:
    """An error for an unknown name that lists the nearest known names, or else all of them."""
    names = list(known)
    there = did_you_mean(name, names) or f"there are {', '.join(names) or 'none'}"
    return ConfigError(f"no {kind} named {shortened(name)!r}; {there}{also and f' ({also})'}")
