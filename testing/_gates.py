"""The contract of an exit gate."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from c4.errors import RAISED, ConfigError, failure
from c4.gates.gate import Gate, ask, exit_step, needs_future, wants_cells
from c4.gates.live import LiveGate
from c4.gates.own_signals import own_signals
from c4.gates.registry import checked_gate, make_gate, set_parameters
from c4.gates.steps import CellRecorder
from c4.plugins.parameters import plain_settings
from c4.replay.decisions import exit_with_cells
from c4.store.cells import SIGNALS as CELL_SIGNALS
from c4.testing._contract import require
from c4.testing._made import SHAPE, MadeTrajectory, made_trajectories, same, signals_of

TIMES_ASKED = 4
"""How often a gate is asked the same; one that counts its calls may err only now and then."""


def check_gate(gate: Gate | type[Gate] | str) -> None:
    """Check a gate: a name as commands take it, a class with defaults, or an object.

    It must be made without arguments, answer every step with true or false, answer alike when asked
    again, leave the signals as they are, decide a stack as it decides each trajectory alone, and
    decide inside a decode, where later steps are unknown, as over a recording.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = gate if isinstance(gate, str) else getattr(gate, "__name__", type(gate).__name__)
    require("gate", name, _findings(gate))


def _made(gate: Any) -> Gate:
    if isinstance(gate, str):
        return make_gate(gate)
    try:
        made: Any = gate() if isinstance(gate, type) else gate
    except RAISED as error:
        raise ConfigError(f"it cannot be made without arguments: {failure(error)}") from error
    return checked_gate("it", made)


def _findings(given: Any) -> Iterator[str]:
    made = _made(given)
    gate = made
    plain_settings("it", set_parameters(made))
    trajectories = list(made_trajectories())
    for one in trajectories:
        found = list(_alone(gate, one))
        yield from found
        if found:  # the others would say the same with other numbers
            return
    if not wants_cells(gate):
        numeric = [one for one in trajectories if one.task is trajectories[0].task]
        yield from _stacked(gate, numeric)


def _alone(gate: Gate, one: MadeTrajectory) -> Iterator[str]:
    signals = one.signals(own_signals([gate]))
    before = {name: column.copy() for name, column in vars(signals).items()}
    cells, kept = one.cells, one.cells
    first, *again = (ask(gate, signals, cells) for _ in range(TIMES_ASKED))
    if not all(np.array_equal(first, answer) for answer in again):
        yield "asked twice about the same steps, it answers differently; keep no state in it"
    for name, column in before.items():
        if not same(column, getattr(signals, name)):
            yield f"it changes the signal {name}, which other gates read too"
    if not all(same(getattr(cells, name), getattr(kept, name)) for name in CELL_SIGNALS):
        yield "it changes the cells, which other gates read too"
    if not needs_future(gate):
        yield from _live(gate, one, exit_step(first))


def _live(gate: Gate, one: MadeTrajectory, replayed: Any) -> Iterator[str]:
    """Whether a decode that is asked step by step stops where the recording says."""
    live = LiveGate(gate, SHAPE, one.reader, ("no", "yes"))
    stops = next((view.step for view in one.views if live.fires(view)), 0)
    if stops != int(replayed):
        yield (
            f"inside a decode it stops at step {stops}, over the recording at {int(replayed)} "
            "(0 is never): it looks at later steps; if it must, set needs_future = True"
        )
    if wants_cells(gate):
        recorder = CellRecorder()
        for view in one.views:
            recorder.observe(view)
        if exit_with_cells(
            gate, signals_of([one], own_signals([gate])), 0, recorder.cells()
        ) != int(replayed):
            yield "with cells it decides otherwise when it is asked again"


def _stacked(gate: Gate, several: Sequence[MadeTrajectory]) -> Iterator[str]:
    own = own_signals([gate])
    together = ask(gate, signals_of(list(several), own))
    for i, one in enumerate(several):
        if not np.array_equal(together[i], ask(gate, one.signals(own))):
            yield (
                "it decides a stack of trajectories otherwise than each alone: signals are "
                "(…, steps), so reduce and shift along the last axis only"
            )
