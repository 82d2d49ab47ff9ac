"""Rows of the trajectories table and of the results of a live run."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from c4.record._format import LIVE
from c4.tasks import Example


class OfAProblem:
    """A row that holds its problem."""

    prompt: str
    target: str
    preamble: str
    tests: str

    @property
    def example(self) -> Example:
        """The problem, as graders want it."""
        return Example(self.prompt, self.target, self.preamble, self.tests)


@dataclass(frozen=True, kw_only=True)
class TrajectoryRow(OfAProblem):
    """Everything about a decode but its cells. Fields are the columns of `TRAJECTORIES`."""

    trajectory: int
    source_row: int
    prompt: str
    prompt_ids: list[int]
    target: str
    preamble: str
    tests: str
    final_ids: list[int]
    text: str
    answer: str | None
    correct: bool | None
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
    length: int
    steps: int
    block: int
    forward_passes: int
    final_ids: list[int]
    text: str
    answer: str | None
    correct: bool | None
    tokens_before_end: int
    wall_seconds: float


def live_row(row: TrajectoryRow, facts: LiveFacts) -> dict[str, Any]:
    """A row of `LIVE`."""
    both = asdict(row) | asdict(facts)
    return {name: both[name] for name in LIVE.names}
