"""A task whose decodes are written down, and whose bytes do not depend on the clock.

Every process that plans to record it loads this file, on whatever engine.
"""

import os
import time
from typing import Any

import torch

from c4.record import recorder
from c4.store import writer as writer_module
from c4.store.writer import RunWriter
from c4.tasks import Example, Shape, Task, answers

PER_PART = 3
"""Trajectories of a sealed part."""
LOG_VARIABLE = "C4_COUNTED_LOG"
"""Environment variable that names the log of what is begun and what is safe."""
SHAPE = Shape(length=32, budget=32, block_length=8)
TASK = Task(
    name="counted",
    read=lambda row: Example(row["q"], row["a"]),
    rows=[{"q": f"{i} + {i}?", "a": str(2 * i)} for i in range(200)],
    fixed_shape=True,
    **answers("number") | {"shape": SHAPE},
)


def count_decodes(log: str) -> None:
    """Make parts small, restart the clock with every decode, and log what is done."""
    torch.set_num_threads(1)
    real_decode, real_add = recorder.Recording._decode_claimed, RunWriter.add

    def tell(what: str) -> None:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{what}\n".encode())
        os.close(descriptor)

    def decode(self: Any, sample: Any, predictor: Any) -> Any:
        tell(f"begin {sample.index}")
        ticks = iter(range(10**9))
        time.perf_counter = lambda: next(ticks) * 2.0**-10
        return real_decode(self, sample, predictor)

    def add(self: Any, row: Any, *rest: Any) -> Any:
        path = real_add(self, row, *rest)
        tell(f"safe {row.trajectory}")
        return path

    recorder.Recording._decode_claimed = decode
    RunWriter.add = add
    writer_module.CELLS_PER_PART = PER_PART * SHAPE.length * SHAPE.budget


def decoded_again(log: str) -> int:
    """How many decodes were begun of what was safe already."""
    safe, again = set(), 0
    with open(log, encoding="utf-8") as file:
        for line in file:
            what, number = line.split()
            again += what == "begin" and number in safe
            if what == "safe":
                safe.add(number)
    return again


if LOG_VARIABLE in os.environ and not hasattr(recorder, "counted"):
    recorder.counted = True
    count_decodes(os.environ[LOG_VARIABLE])
