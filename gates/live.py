"""Gates inside a live decode."""

from c4.gates.candidates import CandidateReader
from c4.gates.kinds import OwnGate, as_gate, ask, require_live
from c4.gates.own_signals import own_signals
from c4.gates.signals import LiveSignals
from c4.gates.steps import CellRecorder, StepView
from c4.tasks import Shape
from c4.tasks.task import Choices


class LiveGate:
    """A gate inside one decode; every decode needs a new one."""

    def __init__(
        self, gate: OwnGate, shape: Shape, reader: CandidateReader, choices: Choices
    ) -> None:
        self.gate = as_gate(gate)
        require_live(self.gate)
        self._signals = LiveSignals(shape, reader, choices, own_signals([gate]))
        self._cells = CellRecorder() if self.gate.wants_cells else None

    def fires(self, view: StepView) -> bool:
        """Whether decoding may stop at this step."""
        signals = self._signals.append(view)
        if self._cells is None:
            return bool(ask(self.gate, signals)[-1])
        self._cells.observe(view)
        return bool(ask(self.gate, signals, self._cells.cells())[-1])
