"""What a hostile program is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from string import Template

from c4.tasks.sandbox.run import RunEnd

TESTS = "assert double(2) == 4\nassert double(21) == 42\n"
HONEST = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return n\n"
Ends = frozenset[RunEnd]
"""How a run may end."""
NOT_PASSED = frozenset({RunEnd.FAILED, RunEnd.CRASHED, RunEnd.TIMEOUT, RunEnd.LIMIT})
PASSED = frozenset({RunEnd.PASSED})
CLOCK, LIMIT = frozenset({RunEnd.TIMEOUT}), frozenset({RunEnd.LIMIT})
CRASH = frozenset({RunEnd.CRASHED})


class Kind(StrEnum):
    """What a hostile program is after."""

    REPORT = "forges the report"
    NAMES = "redefines names of the tests"
    OBJECTS = "answers with lying objects"
    THEFT = "looks for the expected answer"
    EXHAUSTION = "uses everything up"
    ESCAPE = "gets out"
    BLAME = "blames the machine"
    SURVIVAL = "outlives its run"


class Control(StrEnum):
    """How it is shown that an attempt is sound."""

    NONE = "none"
    ONE_PROCESS = "one process"  # it passes where program and tests share a process
    NO_WALL = "no wall"  # it gets out where nothing is isolated
    NO_FILTER = "no filter"  # it passes for a failure of the machine without the program's filter


@dataclass(frozen=True)
class Hostile:
    """One program, its tests, and how its run may end."""

    kind: Kind
    name: str
    program: str
    tests: str = TESTS
    reference: str = HONEST
    """An honest program, which passes the same tests."""
    preamble: str = ""
    ends: Ends = NOT_PASSED
    control: Control = Control.NONE
    slow: bool = False
    """Whether it is only stopped by the clock."""

    def in_world(self, values: Mapping[str, object]) -> "Hostile":
        """The same program, told where the things are that it is after."""
        filled = Template(self.program).safe_substitute(values)
        return Hostile(**{**vars(self), "program": filled})
