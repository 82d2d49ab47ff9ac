"""One row of the trajectories table."""

import json
from dataclasses import asdict, dataclass

from c4.tasks import Example


@dataclass(frozen=True, kw_only=True)
class TrajectoryRow:
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

    @property
    def example(self) -> Example:
        """The problem, as graders want it."""
        return Example(self.prompt, self.target, self.preamble, self.tests)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "TrajectoryRow":
        return cls(**json.loads(data))
