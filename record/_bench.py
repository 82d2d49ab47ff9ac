"""The timing protocol: fixed examples, warm-ups, passes back to back, the device waited for."""

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from c4.errors import ConfigError
from c4.models import LoadedModel
from c4.record._cells import encode_table
from c4.record._decode import decode
from c4.record._format import BENCH, run_folder, write_whole
from c4.record._methods import LiveMethod
from c4.record._plan import Plan
from c4.record._text import Vocabulary
from c4.record._types import IntArray


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How to time a method. The defaults are the paper's."""

    n: int = 20
    warmups: int = 2
    """Examples decoded and forgotten first; they follow the timed ones in the split."""
    passes: int = 3

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("warmups", 0), ("passes", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is at least {least}, not {getattr(self, name)}")

    @property
    def examples(self) -> int:
        """Examples the protocol needs in all."""
        return self.n + self.warmups


@dataclass(frozen=True)
class Timing:
    """One timed decode."""

    seconds: float
    forward_passes: int
    tokens_before_end: int


class Bench:
    """Methods timed on one task. Iterating decodes; `table` says what it took.

    Methods take turns from pass to pass, so that a slow minute of the machine meets all of them.
    """

    def __init__(
        self, plan: Plan, methods: Sequence[LiveMethod], model: LoadedModel, protocol: Protocol
    ) -> None:
        self.plan = plan
        self.methods = methods
        self.model = model
        self.protocol = protocol
        self.vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
        prompts = [model.encode_prompt(s.example.prompt) for s in plan.sample_set.samples]
        self._prompts = [np.array(prompt, dtype=np.int64) for prompt in prompts]
        self._passes: dict[str, list[list[Timing]]] = {method.label: [] for method in methods}

    @property
    def baseline(self) -> LiveMethod | None:
        """The method that speedups are over, if it is timed too."""
        return next((method for method in self.methods if method.is_baseline), None)

    def __len__(self) -> int:
        """Decodes in all."""
        return len(self.methods) * (self.protocol.warmups + self.protocol.passes * self.protocol.n)

    def __iter__(self) -> Iterator[str]:
        """Decode; gives the method's label after each."""
        timed, warm = self._prompts[: self.protocol.n], self._prompts[self.protocol.n :]
        for method in self.methods:
            for prompt in warm:
                self._time(method, prompt)
                yield method.label
        for _ in range(self.protocol.passes):
            for method in self.methods:
                timings: list[Timing] = []
                self._passes[method.label].append(timings)
                for prompt in timed:
                    timings.append(self._time(method, prompt))
                    yield method.label

    def _time(self, method: LiveMethod, prompt: IntArray) -> Timing:
        """One whole decode, the gate's bookkeeping and the final fill included."""
        plan, denoiser = self.plan, self.model.denoiser
        wait_for(denoiser.device)
        start = time.perf_counter()
        gate = method.new_gate(plan.task, self.vocabulary, plan.shape)
        decoded = decode(denoiser, prompt, plan.shape, rule=method.rule, gate=gate)
        wait_for(denoiser.device)
        seconds = time.perf_counter() - start
        return Timing(seconds, decoded.steps, self.vocabulary.ending(decoded.ids.tolist()))

    def table(self) -> pa.Table:
        """One row per method, see `BENCH`. Without a baseline nothing has a speedup."""
        rows = [self._row(method) for method in self.methods]
        if self.baseline is not None:
            base = rows[self.methods.index(self.baseline)]
            for row in rows:
                row["speedup"] = base["mean_seconds"] / row["mean_seconds"]
                row["step_ratio"] = base["mean_passes"] / row["mean_passes"]
        return pa.Table.from_pylist(rows, schema=BENCH)

    def _row(self, method: LiveMethod) -> dict[str, Any]:
        passes = self._passes[method.label]
        means = [statistics.fmean(t.seconds for t in timings) for timings in passes]
        timings = [timing for timings in passes for timing in timings]
        seconds = statistics.fmean(means)
        forward_passes = statistics.fmean(t.forward_passes for t in timings)
        length = self.plan.shape.length
        return {
            "method": method.label,
            "settings": json.dumps(method.identity),
            "n": self.protocol.n,
            "passes": self.protocol.passes,
            "warmups": self.protocol.warmups,
            "device": self.model.device,
            "threads": torch.get_num_threads(),
            "mean_seconds": seconds,
            "cv": 100 * statistics.stdev(means) / seconds if len(means) > 1 else 0.0,
            "tps": length / seconds,
            "tps_before_end": statistics.fmean(t.tokens_before_end for t in timings) / seconds,
            "tokens_per_forward": length / forward_passes,
            "mean_passes": forward_passes,
            "speedup": None,
            "step_ratio": None,
        }


def wait_for(device: torch.device) -> None:
    """Until everything that was asked of a device is done; the CPU is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def write_bench(plan: Plan, table: pa.Table) -> Path:
    """Keep a call's table beside the recordings, under the time it was made."""
    folder = run_folder(plan.config.out / "bench", plan.checkpoint.name, plan.task.name)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z.parquet"
    write_whole(path, encode_table(table, compression="zstd"))
    return path


def read_bench(root: str | Path) -> pa.Table:
    """The newest timing of every model, task and method below a root."""
    newest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in sorted(
        Path(root).glob("**/bench/model=*/task=*/*.parquet"), key=lambda path: path.name
    ):
        model, task = (part.partition("=")[2] for part in path.parts[-3:-1])
        for row in pq.ParquetFile(path).read().to_pylist():
            newest[model, task, row["method"]] = {"model": model, "task": task, **row}
    names = [pa.field(name, pa.string(), nullable=False) for name in ("model", "task")]
    return pa.Table.from_pylist(list(newest.values()), schema=pa.schema([*names, *BENCH]))
