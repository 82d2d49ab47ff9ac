"""Rendering of untrusted Jinja templates, from data or a checkpoint, in a child process.

A template is an untrusted program. One child process renders all of them, in Jinja's sandbox and
with limits on time and memory; if a template exceeds them, the system ends the child, and the next
template gets a new one.
"""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from c4.errors import ConfigError

CHILD = Path(__file__).with_name("child.py")
CPU_SECONDS = 2.0
WALL_SECONDS = 15.0
"""Longer than the CPU time, because the child may have to wait for a CPU on a busy machine."""
TOO_MUCH = "it takes more than 2 seconds, 1 GB of memory or 1,000,000 characters to render"


class RenderError(ConfigError):
    """A template cannot be rendered; the message gives the reason but not the template."""


class LimitError(RenderError):
    """A template exceeds the limits on time, memory or characters."""


def render(template: str, variables: Mapping[str, Any], kind: Literal["chat", "prompt"]) -> str:
    """Render a template and return its text.

    Args:
        variables: variables of the template; values without a JSON type become texts.
        kind: the Jinja environment: `chat` as in transformers, `prompt` as in tasks.
    """
    clocks = {"cpu_seconds": CPU_SECONDS, "wall_seconds": WALL_SECONDS}
    request = {"template": template, "variables": variables, "kind": kind, **clocks}
    with _LOCK:
        answer = _ask(json.dumps(request, default=str))
    if "limit" in answer:
        raise LimitError(TOO_MUCH)
    if "error" in answer:
        raise RenderError(answer["error"])
    return answer["text"]


_LOCK = Lock()
_children: list[subprocess.Popen[str]] = []
"""The running child process, if one was started."""


def _ask(request: str) -> dict[str, str]:
    child = _children[0] if _children else _start()
    assert child.stdin and child.stdout  # noqa: S101, PT018 - both are pipes
    line = ""
    try:
        child.stdin.write(request + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
    except BrokenPipeError:
        pass  # reported below, by the child's exit code
    finally:
        code = 0 if line else _stop()  # after Ctrl-C, a late answer must not count for the next
    if code > 0 or (not line and code == 0):
        raise RenderError(f"the process that renders templates ended with status {code}")
    answer: dict[str, str] = json.loads(line) if line else {"limit": "ended by the system"}
    return answer


def _start() -> subprocess.Popen[str]:
    # The child imports jinja2 from this process's paths, but nothing from the current folder.
    paths = os.pathsep.join(path for path in sys.path if path)
    child = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-P", str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": paths},
    )
    _children.append(child)
    return child


@atexit.register
def _stop() -> int:
    """End the child, if there is one, and return its exit code."""
    if not _children:
        return 0
    child = _children.pop()
    with suppress(BrokenPipeError):
        child.communicate()  # closes the input, so that the child ends
    return child.returncode
