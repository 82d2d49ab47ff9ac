"""The contract of a signal."""

from collections.abc import Iterator

import numpy as np

from c4.gates.live import LiveSignals
from c4.gates.own_signals import NamedSignal, OwnSignal, find_signal
from c4.store.cells import SIGNALS as CELL_SIGNALS
from c4.testing._contract import require
from c4.testing._made import SHAPE, MadeTrajectory, made_trajectories, same


def check_signal(signal: OwnSignal | str) -> None:
    """Check a signal: a name as a gate's `signals` takes it, or a function.

    It must give a number for every step, give the same when asked again, leave signals and cells as
    they are, and not depend on later steps, which a decode does not know yet.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = signal if isinstance(signal, str) else getattr(signal, "__name__", repr(signal))
    require("signal", name, _findings(signal))


def _findings(signal: str | OwnSignal) -> Iterator[str]:
    found = find_signal(signal)
    if found is None:
        return  # c4's own are no functions
    for one in made_trajectories():
        yield from _alone(found, one)


def _alone(signal: NamedSignal, one: MadeTrajectory) -> Iterator[str]:
    signals, cells = one.signals(), one.cells
    values = signal(signals, cells)
    if not np.array_equal(values, signal(signals, cells), equal_nan=True):
        yield "asked twice about the same steps, it answers differently; keep no state in it"
    before, kept = one.signals(), one.cells
    if not all(same(getattr(signals, name), column) for name, column in vars(before).items()):
        yield "it changes c4's own signals, which gates read too"
    if not all(same(getattr(cells, name), getattr(kept, name)) for name in CELL_SIGNALS):
        yield "it changes the cells, which other signals read too"
    live = LiveSignals(SHAPE, one.reader, ("no", "yes"), {signal.name: signal})
    for view, value in zip(one.views, values, strict=True):
        known = getattr(live.append(view), signal.name)[-1]
        if not np.array_equal(known, value, equal_nan=True):
            yield (
                f"its value at step {view.step} changes when later steps are known, so a decode "
                "and a recording of it would disagree; use the present step and those before it"
            )
            return
