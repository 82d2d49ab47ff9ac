"""Verification: compare replay with live decoding, and batched with unbatched decoding."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from c4.errors import RunError
from c4.gates.candidates import CandidateReader, filled_predictions
from c4.gates.gate import Gate
from c4.gates.live import LiveGate
from c4.gates.signals import NONE
from c4.gates.steps import ExitGate
from c4.replay.exits import exits
from c4.replay.grader import ReplayGrader
from c4.store.rows import Row
from c4.store.runs import Run

Live = Callable[[Row, ExitGate], Row]
"""Function that decodes a recorded prompt again under a gate; see `Recording.decode_again`."""


@dataclass(frozen=True)
class Check:
    """Comparison of a live and a replayed decode of one trajectory under one gate."""

    trajectory: int
    gate: str
    replayed_steps: int
    live_steps: int
    tokens_equal: bool
    grades_equal: bool | None
    """None if the machine failed to grade one of them."""

    @property
    def agrees(self) -> bool:
        """Whether steps, tokens and grades are equal; the grade is ignored if not gradable."""
        same_steps = self.replayed_steps == self.live_steps
        return same_steps and self.tokens_equal and self.grades_equal is not False


def verify(
    run: Run, gates: Mapping[str, Gate], live: Live, *, unsafe_code: bool = False
) -> Iterator[Check]:
    """Compare exit step, all tokens after the final fill, and grade, for each gate."""
    reader = CandidateReader(run.task, run.vocabulary, run.shape.length, run.reading)
    grader = ReplayGrader(run, unsafe_code)
    for part, _, stops in exits(run, gates):
        for i, recorded in enumerate(run.read(part)):
            filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
            for name, gate in gates.items():
                row = recorded.row
                decoded = live(row, LiveGate(gate, run.shape, reader, row.example.choices))
                steps = int(stops[name][i]) or row.steps
                replayed = filled[steps - 1].tolist()
                same = decoded.final_ids == replayed
                grades = [grader.grade(row, ids) for ids in (replayed, decoded.final_ids)]
                gradable = all(grade.correct is not None for grade in grades)
                equal = grades[0] == grades[1] if gradable else None
                yield Check(row.trajectory, name, steps, decoded.steps, same, equal)


FULL = "full decode"
"""Used in place of a gate name for the decode without a gate."""


@dataclass(frozen=True)
class Differences:
    """Number of trajectories that differ between batched and unbatched decoding, under one gate."""

    task: str
    batch: int
    gate: str
    n: int
    other_tokens: int
    """Trajectories with at least one different final token."""
    other_exits: int
    """Trajectories that end at a different step."""
    other_answers: int
    """Trajectories with a different final answer."""


Outcome = tuple[int, list[int], str | None]
"""Steps, final tokens and answer of a decode."""


def compare_batches(alone: Run, together: Run, gates: Mapping[str, Gate]) -> list[Differences]:
    """Count differences between two recordings of the same examples, per gate and without one."""
    one, other = (dict(_outcomes(run, gates)) for run in (alone, together))
    if one.keys() != other.keys():
        raise RunError(f"{alone.folder} and {together.folder} do not hold the same examples")
    rows = []
    for gate in (FULL, *gates):
        pairs = [(one[key], other[key]) for key in one if key[1] == gate]
        rows.append(
            Differences(
                task=together.task_name,
                batch=together.manifest.identity["batch"],
                gate=gate,
                n=len(pairs),
                other_exits=sum(a[0] != b[0] for a, b in pairs),
                other_tokens=sum(a[1] != b[1] for a, b in pairs),
                other_answers=sum(a[2] != b[2] for a, b in pairs),
            )
        )
    return rows


def _outcomes(run: Run, gates: Mapping[str, Gate]) -> Iterator[tuple[tuple[int, str], Outcome]]:
    """Yield the outcome of every trajectory without a gate and under each gate."""
    for part, signals, stops in exits(run, gates):
        never = np.zeros(len(signals), dtype=np.int32)
        for i, (row, cells) in enumerate((found.row, found.cells) for found in run.read(part)):
            filled = filled_predictions(cells.token, cells.masked)
            for gate, its_stops in {FULL: never, **stops}.items():
                steps = int(its_stops[i]) or row.steps
                number = int(signals.signals.answer[i, steps - 1])
                answer = None if number == NONE else signals.candidates[i][number]
                yield (row.trajectory, gate), (steps, filled[steps - 1].tolist(), answer)
