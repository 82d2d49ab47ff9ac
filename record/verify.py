"""Verification: a live decode under each gate, compared with the replay of the recording."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from c4.decode.loop import Decoded
from c4.gates.candidates import CandidateReader, filled_predictions
from c4.gates.kinds import OwnGate
from c4.gates.live import LiveGate
from c4.gates.run_signals import load_signals
from c4.replay.decisions import PartExits
from c4.replay.grader import ReplayGrader
from c4.store.rows import Row
from c4.store.runs import Run
from c4.store.views import ExitGate
from c4.tasks import get_task

Live = Callable[[Row, ExitGate], Decoded]
"""Decodes a recorded trajectory's prompt again, under a gate."""


@dataclass(frozen=True)
class Check:
    """One trajectory under one gate, live and replayed."""

    trajectory: int
    gate: str
    replayed_steps: int
    live_steps: int
    tokens_equal: bool
    grades_equal: bool | None
    """None where the machine failed to grade one of them."""

    @property
    def agrees(self) -> bool:
        """Whether nothing differs; what is not gradable differs from nothing."""
        same_steps = self.replayed_steps == self.live_steps
        return same_steps and self.tokens_equal and self.grades_equal is not False


def verify(
    run: Run, gates: Mapping[str, OwnGate], live: Live, *, unsafe_code: bool = False
) -> Iterator[Check]:
    """Compare exit step, every token after the fill and the grade, for each gate."""
    task = get_task(run.task)
    reader = CandidateReader(task, run.vocabulary, run.shape.length, run.reading)
    grader = ReplayGrader(run, unsafe_code)
    for part, signals in zip(run.parts, load_signals(run), strict=True):
        exits = PartExits(gates, signals)
        for i, recorded in enumerate(run.read(part)):
            filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
            for name, gate in gates.items():
                row = recorded.row
                decoded = live(row, LiveGate(gate, run.shape, reader, row.example.choices))
                steps = exits.at(name, i, recorded.cells) or row.steps
                replayed = filled[steps - 1].tolist()
                same = decoded.ids.tolist() == replayed
                grades = [grader.grade(row, ids) for ids in (replayed, decoded.ids.tolist())]
                gradable = all(grade.correct is not None for grade in grades)
                equal = grades[0] == grades[1] if gradable else None
                yield Check(row.trajectory, name, steps, decoded.steps, same, equal)
