"""The decode loop: one forward pass per step, a rule that commits, a gate that may end it.

The loop is the same for all methods. The rule decides what a step reads and commits; the recorder
and the exit gate receive the same `StepView` of every step.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from c4.decode.commits import Block, Choice, Predictor, Rule
from c4.decode.forward import CachedPass, Forward
from c4.decode.rules.schedule import Schedule
from c4.errors import ConfigError
from c4.gates.steps import ExitGate, Observer, StepView, fixed_point
from c4.models import Reading
from c4.store.arrays import BoolArray, IntArray, TokenArray
from c4.store.origins import Origin, OriginArray
from c4.tasks import Shape


@dataclass(frozen=True)
class Decoded:
    """A finished decode. Arrays of positions are (L,), of blocks (N,)."""

    ids: IntArray
    """The generated tokens."""
    steps: int
    """Forward passes spent, including the one at which the gate fired."""
    exited: bool
    """Whether a gate fired; then every masked position was filled with its predicted token."""
    origin: OriginArray
    """The branch that committed each position, as codes of `Origin`."""
    commit_step: TokenArray
    """The step at which each position's final token was committed."""
    revoked: int
    """Number of commits that were revoked."""
    block_steps: TokenArray
    """Forward passes spent in each block; 0 for blocks that were never reached."""
    block_seconds: npt.NDArray[np.float64]
    """Seconds spent in each block."""


class Buffer:
    """The sequence during a decode: each position's token, commit step and origin."""

    def __init__(self, prompt: IntArray, length: int, mask_id: int) -> None:
        self.mask_id = mask_id
        self.start = len(prompt)
        self.ids = np.concatenate([prompt, np.full(length, mask_id, dtype=np.int64)])
        self.generated = self.ids[self.start :]  # a view: writing here writes the model's input
        self.masked = np.ones(length, dtype=np.bool_)
        self.origin = np.full(length, Origin.FILL, dtype=np.uint8)
        self.commit_step = np.zeros(length, dtype=np.int32)
        self.revoked = 0

    def commit(self, choice: Choice, reading: Reading, step: int) -> None:
        """Write a step's commits, and mask its revoked positions again."""
        chosen = choice.positions
        self.generated[chosen] = reading.token[chosen]
        self.masked[chosen] = False
        self.origin[chosen] = choice.origin
        self.commit_step[chosen] = step
        if len(choice.revoked):
            self.generated[choice.revoked] = self.mask_id
            self.masked[choice.revoked] = True
            self.revoked += len(choice.revoked)


@torch.inference_mode()
def decode(
    predictor: Predictor,
    prompt: IntArray,
    shape: Shape,
    *,
    rule: Rule | None = None,
    gate: ExitGate | None = None,
    observer: Observer | None = None,
    forward: Forward | None = None,
) -> Decoded:
    """Fill `shape.length` masked positions after the prompt, block by block.

    The decode leaves a block as soon as it is full. The schedule fills a block within its step
    budget; other rules may take fewer steps or more.
    """
    buffer = Buffer(prompt, shape.length, predictor.mask_id)
    passes = np.zeros(shape.blocks, dtype=np.int32)
    seconds = np.zeros(shape.blocks)
    commits = (rule or Schedule()).start()
    forward = forward or Forward()
    step, exited = 0, False
    for block in blocks_of(shape):
        began = time.perf_counter()
        commits.enter(block)
        model = forward.enter(predictor, block, shape.length)
        while not exited and buffer.masked[block.start : block.stop].any():
            step += 1
            passes[block.index] += 1
            reading = commits.read(model, buffer.ids, buffer.start)
            if observer is not None or gate is not None:
                view = view_step(step, block.index, reading, buffer.masked)
                if observer is not None:
                    observer.observe(view)
                exited = gate is not None and gate.fires(view)
            if exited:
                choice = Choice(np.flatnonzero(buffer.masked), Origin.FILL)
            elif isinstance(model, CachedPass) and model.fills_first:
                choice = Choice(np.array([block.start]), Origin.SCHEDULE)
            else:
                choice = commits.choose(int(passes[block.index]), reading, buffer.masked)
            if not len(choice.positions):
                raise ConfigError(f"{rule} commits nothing at step {step}, so it would never end")
            buffer.commit(choice, reading, step)
        seconds[block.index] = time.perf_counter() - began
        if exited:
            break
    return Decoded(
        ids=buffer.generated.copy(),
        steps=step,
        exited=exited,
        origin=buffer.origin,
        commit_step=buffer.commit_step,
        revoked=buffer.revoked,
        block_steps=passes,
        block_seconds=seconds,
    )


def blocks_of(shape: Shape) -> Iterator[Block]:
    """Yield the blocks of a decode, from left to right."""
    for index in range(shape.blocks):
        start = index * shape.block_length
        yield Block(index, shape.blocks, start, start + shape.block_length, shape.steps_per_block)


def view_step(step: int, block: int, reading: Reading, masked: BoolArray) -> StepView:
    """Return the view of a step for recorders and gates, with rounded signals and copied arrays."""
    return StepView(
        step=step,
        block=block,
        token=reading.token.astype(np.int32),
        confidence=fixed_point("confidence", reading.confidence),
        gap=fixed_point("gap", reading.gap),
        entropy=fixed_point("entropy", reading.entropy),
        masked=masked.copy(),
    )
