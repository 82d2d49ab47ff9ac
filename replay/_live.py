"""Gates inside a live decode."""

from c4.record import StepView
from c4.replay._candidates import CandidateReader
from c4.replay._gates import Gate
from c4.replay._signals import LiveSignals
from c4.tasks import Shape


class LiveGate:
    """A gate at work in one decode: made anew for each."""

    def __init__(self, gate: Gate, shape: Shape, reader: CandidateReader) -> None:
        self.gate = gate
        self._signals = LiveSignals(shape, reader)

    def fires(self, view: StepView) -> bool:
        """Whether decoding may stop at this step."""
        return bool(self.gate.fires(self._signals.append(view))[-1])
