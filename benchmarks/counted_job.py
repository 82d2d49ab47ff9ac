"""A decoding job that writes down what it decodes, and whose bytes do not depend on the clock.

In a module of its own, so that processes on whatever engine can import it.
"""

import os
import time
from dataclasses import dataclass
from typing import Any

import torch

from c4.record import recorder
from c4.record.engines import DecodeJob, Worker
from c4.store import writer as writer_module
from c4.store.writer import RunWriter

PER_PART = 3
"""Trajectories of a sealed part."""


@dataclass(frozen=True)
class CountedJob(DecodeJob):
    """Decodes, and appends a line to a log when a trajectory is begun and when it is safe."""

    log: str = ""

    def for_workers(self) -> "CountedJob":
        return CountedJob(super().for_workers().requests, self.log)

    def work(self, worker: Worker) -> list[int]:
        set_stage(self.log)
        return super().work(worker)


def set_stage(log: str) -> None:
    """Small parts, a clock that starts anew with every decode, and a log of what is done."""
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

    def add(self: Any, finished: Any, *rest: Any) -> Any:
        path = real_add(self, finished, *rest)
        tell(f"safe {finished.row.trajectory}")
        return path

    recorder.Recording._decode_claimed = decode
    RunWriter.add = add
    shape = {"length": 32, "budget": 32}
    writer_module.CELLS_PER_PART = PER_PART * shape["length"] * shape["budget"]


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
