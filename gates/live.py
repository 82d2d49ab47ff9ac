"""Gates inside a decode: each step is appended to the signals, and the gate evaluated again."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.gates.candidates import CandidateReader
from c4.gates.gate import Gate, ask, require_live, wants_cells
from c4.gates.own_signals import own_signals
from c4.gates.signals import (
    MARGINS,
    NONE,
    SIGNAL_NAMES,
    Floats,
    Ints,
    OfTrajectory,
    Signals,
    as_signals,
    margin_signals,
)
from c4.gates.steps import StepView, stack_views
from c4.store.arrays import TokenArray
from c4.tasks import SearchMode, Shape
from c4.tasks.task import Choices


class LiveGate:
    """A gate inside one decode; create a new instance for every decode."""

    def __init__(self, gate: Gate, shape: Shape, reader: CandidateReader, choices: Choices) -> None:
        require_live(gate)
        self.gate = gate
        self._signals = LiveSignals(shape, reader, choices, own_signals([gate]))

    def fires(self, view: StepView) -> bool:
        """Whether decoding may stop at this step."""
        signals = self._signals.append(view)
        cells = stack_views(self._signals.views) if wants_cells(self.gate) else None
        return bool(ask(self.gate, signals, cells)[-1])


class LiveSignals:
    """The signals of a decode in progress, extended one step at a time.

    A decode pays only for the signals that its gate reads: the margins, half of the work, are
    computed when one of them is read, for all steps that lack them.
    """

    def __init__(
        self,
        shape: Shape,
        reader: CandidateReader,
        choices: Choices,
        own: Mapping[str, OfTrajectory] | None = None,
    ) -> None:
        self.shape = shape
        self.reader = reader
        self.choices = choices
        self.own = own or {}
        self._columns: dict[str, npt.NDArray[Any]] = {
            # A sampler may run past the budget, but never past one step for every position.
            field.name: np.empty(shape.length, np.int32 if field.type == Ints else np.float64)
            for field in fields(Signals)
        }
        self._own_columns: dict[str, Floats] = {}
        self._numbers: dict[str, int] = {}
        self.views: list[StepView] = []
        self._margins = 0
        self._last, self._run, self._changes = NONE, 0, 0
        self._filled: TokenArray | None = None

    def append(self, view: StepView) -> Signals:
        """Append a step and return the signals of all steps so far."""
        t = view.step - 1
        self.views.append(view)
        kept = view.token if self._filled is None else self._filled
        self._filled = np.where(view.masked, view.token, kept)
        ((found, answer),) = self.reader.read(self._filled[None], [self.choices])
        start, end = found.span if found and found.span else (NONE, NONE)
        is_defined = start >= 0 and end <= (view.block + 1) * self.shape.block_length
        candidate = self._number(found.value if found else None)
        if not is_defined and self.reader.task.search is SearchMode.CODE:
            candidate = NONE  # see `counted`
        self._count(candidate)
        row = {
            "step": view.step,
            "budget": self.shape.budget,
            "candidate": candidate,
            "span_start": start,
            "span_end": end,
            # Sums of fixed-point numbers are exact, so they equal the running sums of a replay.
            "confidence": np.mean(view.confidence[start:end], dtype=np.float64)
            if is_defined
            else np.nan,
            "entropy": np.mean(view.entropy[start:end], dtype=np.float64) if is_defined else np.nan,
            "run": self._run,
            "changes": self._changes,
            "answer": self._number(answer),
        }
        for name, value in row.items():
            self._columns[name][t] = value
        return SignalsSoFar(self, t + 1)

    def column(self, name: str, steps: int) -> npt.NDArray[Any]:
        """Return one signal for the first `steps` steps."""
        if name in MARGINS and self._margins < steps:
            # Start one step earlier: `changed` compares with the previous step.
            first = max(0, self._margins - 1)
            margins = margin_signals(stack_views(self.views[first:steps]), self.reader)
            for margin, column in margins.items():
                self._columns[margin][self._margins : steps] = column[self._margins - first :]
            self._margins = steps
        return self._columns[name][:steps]

    def own_column(self, name: str, steps: int) -> Floats:
        """Return a user's own signal for the first `steps` steps, computed on first use."""
        known = self._own_columns.get(name)
        if known is None or len(known) < steps:
            cells = stack_views(self.views[:steps])
            known = self.own[name](SignalsSoFar(self, steps, with_own=False), cells)
            self._own_columns[name] = known
        return known[:steps]

    def _count(self, candidate: int) -> None:
        """Update `run` and `changes` by one step; equivalent to `stability` over all steps."""
        if candidate == NONE:
            return
        if self._last not in (NONE, candidate):
            self._changes += 1
            self._run = 0
        self._run += 1
        self._last = candidate

    def _number(self, value: str | None) -> int:
        return NONE if value is None else self._numbers.setdefault(value, len(self._numbers))


class SignalsSoFar(Signals):
    """Signals of a decode in progress, each computed on first access."""

    _live: LiveSignals
    _steps: int
    _own: Collection[str]

    def __init__(self, live: LiveSignals, steps: int, *, with_own: bool = True) -> None:
        """Create a view of the first `steps` steps of a decode.

        Args:
            with_own: include users' own signals, which cannot read one another.
        """
        object.__setattr__(self, "_live", live)  # the fields are frozen
        object.__setattr__(self, "_steps", steps)
        object.__setattr__(self, "_own", live.own if with_own else ())

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name in self._own:
            return self._live.own_column(name, self._steps)
        if name not in SIGNAL_NAMES:
            raise AttributeError(name=name, obj=self)
        return self._live.column(name, self._steps)

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Signals:
        """Apply a function to every signal."""
        return as_signals(
            {name: change(getattr(self, name)) for name in [*SIGNAL_NAMES, *self._own]}
        )
