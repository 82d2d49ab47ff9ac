"""Rows of the trajectories table and of the results of a live run."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from c4.record._format import LIVE
from c4.tasks import Example


class OfAProblem:
    """A row that holds its problem, and perhaps a grade."""

    prompt: str
    target: str
    preamble: str
    tests: str
    choices: list[str]
    correct: bool | None
    style: str | None

    @property
    def example(self) -> Example:
        """The problem, as graders want it."""
        choices = tuple(self.choices)
        return Example(self.prompt, self.target, self.preamble, self.tests, choices)

    @property
    def never_graded(self) -> bool:
        """Whether nobody ever graded it, under any reading."""
        return self.style is None

    @property
    def graded_otherwise(self) -> bool:
        """Whether it was graded, but not under the reading that its run was opened with."""
        return self.correct is None and not self.never_graded


@dataclass(frozen=True, kw_only=True)
class TrajectoryRow(OfAProblem):
    """Everything about a decode but its cells. Fields are the columns of `TRAJECTORIES`.

    The columns with defaults are not in recordings of format 1.
    """

    trajectory: int
    source_row: int
    prompt: str
    prompt_ids: list[int]
    target: str
    preamble: str
    tests: str
    choices: list[str] = field(default_factory=list)
    final_ids: list[int]
    text: str
    answer: str | None
    correct: bool | None
    style: str | None = None
    ending: str | None = None
    length: int
    steps: int
    block: int
    forward_passes: int
    tokens_before_end: int
    wall_seconds: float

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "TrajectoryRow":
        return cls(**json.loads(data))


@dataclass(frozen=True, kw_only=True)
class LiveFacts:
    """What only a live decode knows about itself."""

    block_passes: list[int]
    block_seconds: list[float]
    exit_step: int | None
    exit_reason: str
    committed_by: list[int]
    commit_step: list[int]
    revoked: int

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "LiveFacts":
        return cls(**json.loads(data))


@dataclass(frozen=True, kw_only=True)
class LiveRow(LiveFacts, OfAProblem):
    """One example of a live run. Fields are the columns of `LIVE`."""

    trajectory: int
    source_row: int
    prompt: str
    target: str
    preamble: str
    tests: str
    choices: list[str]
    length: int
    steps: int
    block: int
    forward_passes: int
    final_ids: list[int]
    text: str
    answer: str | None
    correct: bool | None
    style: str | None
    ending: str | None
    tokens_before_end: int
    wall_seconds: float


def live_row(row: TrajectoryRow, facts: LiveFacts) -> dict[str, Any]:
    """A row of `LIVE`."""
    both = asdict(row) | asdict(facts)
    return {name: both[name] for name in LIVE.names}
