"""The way that a command takes through the package: modules in order of entry, functions, depth.

    python benchmarks/walks.py record --task mmlu --n 2
    python benchmarks/walks.py replay --gate cvee
    python benchmarks/walks.py --hops replay --gate cvee    # and the list of modules

Runs the command in this process and counts the named functions of c4 that it enters, once each,
the modules that they stand in, the deepest nesting, and the modules that were imported. What runs
while a module is imported does not count. A reader who follows the command sees the modules in
the list.
"""

import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from c4.cli import main

UNNAMED = {"<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>", "<setcomp>"}


class Walk:
    """Functions of c4 in order of their first call."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, str] = {}
        self.depth = self.deepest = self.importing = 0

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Called by the interpreter at every call and return."""
        if event not in {"call", "return"}:
            return
        change = 1 if event == "call" else -1
        if frame.f_code.co_name == "<module>":
            self.importing += change
        module = frame.f_globals.get("__name__", "")
        if self.importing or module.partition(".")[0] != "c4" or frame.f_code.co_name in UNNAMED:
            return
        self.depth += change
        self.deepest = max(self.deepest, self.depth)
        self.functions.setdefault(frame.f_code, module)


def walk() -> None:
    arguments = sys.argv[1:]
    hops = arguments[:1] == ["--hops"]
    sys.argv = ["c4", *arguments[hops:]]
    seen, output = Walk(), os.dup(1)
    os._exit = sys.exit  # type: ignore[assignment]  # the command would end this process
    threading.setprofile(seen.note)
    sys.setprofile(seen.note)
    try:
        main()
    except SystemExit as done:
        if done.code:
            raise
    finally:
        sys.setprofile(None)
    modules = list(dict.fromkeys(seen.functions.values()))
    imported = [name for name in sys.modules if name.partition(".")[0] == "c4"]
    lines = [
        f"{len(seen.functions)} functions in {len(modules)} modules, {seen.deepest} deep; "
        f"{len(imported)} modules of c4 imported",
        *(modules if hops else []),
    ]
    os.write(output, ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    walk()
