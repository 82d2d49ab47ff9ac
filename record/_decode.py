"""The decode loop: one forward pass a step, a rule that commits, an observer that watches.

The loop knows no method. What a step commits is the rule's affair, and whatever wants to see
every step, a recorder or an exit gate, sees the same `StepView`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from c4.models import Reading
from c4.record._commit import CommitRule, Schedule
from c4.record._types import BoolArray, FloatArray, IntArray, TokenArray
from c4.tasks import Shape

RESOLUTION = {"confidence": 2.0**-14, "gap": 2.0**-8, "entropy": 2.0**-10}
"""What signals are rounded to, once, where they are made.

Fixed point compresses to half of what raw float32 takes. Recorder and gates see the rounded
numbers and so agree exactly; commit rules see the raw ones, so rounding never changes a decode.
"""


@dataclass(frozen=True)
class StepView:
    """What one step predicted, as recorders and gates may know it. Arrays are (L,)."""

    step: int
    """1…T."""
    block: int
    """0…N-1."""
    token: TokenArray
    confidence: FloatArray
    gap: FloatArray
    entropy: FloatArray
    masked: BoolArray
    """Whether a position held the mask when the step began."""


class Observer(Protocol):
    """Sees every step of a decode, in order."""

    def observe(self, view: StepView) -> None: ...


class ExitGate(Protocol):
    """Decides whether the whole sequence may stop; made anew for each decode."""

    def fires(self, view: StepView) -> bool: ...


class Predictor(Protocol):
    """The part of a denoiser that decoding needs."""

    mask_id: int

    def read(self, ids: IntArray, start: int) -> Reading: ...


@dataclass(frozen=True)
class Decoded:
    """A finished decode."""

    ids: IntArray
    """The generated tokens. (L,)"""
    steps: int
    """Forward passes spent, the firing one included."""
    exited: bool = False
    """Whether a gate fired; then every position still masked took its prediction."""


def decode(
    predictor: Predictor,
    prompt: IntArray,
    shape: Shape,
    *,
    rule: CommitRule | None = None,
    gate: ExitGate | None = None,
    observer: Observer | None = None,
) -> Decoded:
    """Fill `shape.length` masked positions behind the prompt, block by block."""
    rule = rule or Schedule()
    ids = np.concatenate([prompt, np.full(shape.length, predictor.mask_id, dtype=np.int64)])
    generated = ids[len(prompt) :]  # a view: writing here writes the model's input
    masked = np.ones(shape.length, dtype=np.bool_)
    step = 0
    for block in range(shape.blocks):
        start, stop = block * shape.block, (block + 1) * shape.block
        commits = rule.block(start, stop, shape.steps_per_block)
        for block_step in range(1, shape.steps_per_block + 1):
            step += 1
            reading = predictor.read(ids, len(prompt))
            if observer is not None or gate is not None:
                view = view_step(step, block, reading, masked)
                if observer is not None:
                    observer.observe(view)
                if gate is not None and gate.fires(view):
                    generated[masked] = reading.token[masked]
                    return Decoded(generated.copy(), step, exited=True)
            chosen = commits.choose(block_step, reading, masked)
            generated[chosen] = reading.token[chosen]
            masked[chosen] = False
    return Decoded(generated.copy(), step)


def view_step(step: int, block: int, reading: Reading, masked: BoolArray) -> StepView:
    """A reading as the rest of the system may see it: signals rounded, nothing aliased."""
    return StepView(
        step=step,
        block=block,
        token=reading.token.astype(np.int32),
        confidence=fixed_point("confidence", reading.confidence),
        gap=fixed_point("gap", reading.gap),
        entropy=fixed_point("entropy", reading.entropy),
        masked=masked.copy(),
    )


def fixed_point(signal: str, values: FloatArray) -> FloatArray:
    """Values rounded to the signal's resolution; exact in float32 up to 2^24 units."""
    unit = np.float32(RESOLUTION[signal])
    rounded: FloatArray = np.rint(values / unit) * unit
    return rounded
