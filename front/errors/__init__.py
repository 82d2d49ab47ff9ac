"""Errors that a user may see: every package raises these, and `cli` prints them."""

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class C4Error(Exception):
    """An error that a user can act on. Only its message is printed, without a traceback."""


class ConfigError(C4Error):
    """A parameter or a combination of parameters is invalid."""


class DataError(C4Error):
    """Examples are missing, unreadable or not in the expected format."""


class ModelError(C4Error):
    """A checkpoint cannot be found, or cannot be loaded without its own code."""


class SandboxError(C4Error):
    """Model-written code cannot be isolated on this machine."""


class RunError(C4Error):
    """A recording is missing, damaged, or not the requested one."""


class NotReplayable(C4Error):  # noqa: N818 - the name is the message
    """A method changes the steps of a decode, so a recording cannot be replayed under it."""


LONGEST_NAME = 80
"""Maximum number of characters of a name in an error message."""


def shortened(name: str) -> str:
    """Shorten a very long name for an error message."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


RAISED = (Exception, SystemExit)
"""Exceptions from foreign code that are reported as error messages."""


def failure(error: BaseException) -> str:
    """Describe a failure of foreign code: `ValueError: no luck (my_gates.py, line 12)`.

    The line is the last one in the user's own code, not in c4 or in a library that the user calls.
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
    """Convert exceptions of foreign code in the block to an error that names the code."""
    try:
        yield
    except (C4Error, MemoryError):
        raise
    except RAISED as error:
        raise kind(f"{what}: {failure(error)}") from error


NOT_USERS = ("c4.", "importlib", "functools")
"""Prefixes of modules whose frames are not the user's code."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known names, ignoring case; empty if none is near."""
    names = {known_name.casefold(): known_name for known_name in known}
    near = difflib.get_close_matches(name.casefold(), names, n=3)
    return f"did you mean {' or '.join(names[match] for match in near)}?" if near else ""


def unknown_name(kind: str, name: str, known: Iterable[str], also: str = "") -> ConfigError:
    """Make an error for an unknown name that lists the nearest known names, or else all."""
    names = list(known)
    there = did_you_mean(name, names) or f"there are {', '.join(names) or 'none'}"
    return ConfigError(f"no {kind} named {shortened(name)!r}; {there}{also and f' ({also})'}")
