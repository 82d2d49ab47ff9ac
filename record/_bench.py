"""The timing protocol: fixed examples, warm-ups, passes back to back, the device waited for."""

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from c4.errors import ConfigError, RunError
from c4.models import LoadedModel
from c4.record._cells import encode_table
from c4.record._decode import decode
from c4.record._format import BENCH, run_folder, write_whole
from c4.record._methods import Choices, LiveMethod
from c4.record._plan import Plan, encode_prompts, full_identity
from c4.record._text import Vocabulary
from c4.record._types import IntArray

TIMINGS = pa.schema(
    [*(pa.field(name, pa.string(), nullable=False) for name in ("model", "task")), *BENCH]
)
REPEATED = ("method", "identity", "n", "passes", "warmups", "device", "threads")
"""What is equal in two timings of the same thing."""


@dataclass(frozen=True, kw_only=True)
class TimingProtocol:
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
        self,
        plan: Plan,
        methods: Sequence[LiveMethod],
        model: LoadedModel,
        protocol: TimingProtocol,
    ) -> None:
        self.plan = plan
        self.methods = methods
        self.model = model
        self.protocol = protocol
        self.vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
        samples = plan.sample_set.samples[: protocol.examples]
        if len(samples) < protocol.examples:
            raise ConfigError(
                f"{len(samples)} examples of {plan.task.name} are planned, and timing takes "
                f"{protocol.n} and {protocol.warmups} more as warm-ups; plan {protocol.examples}"
            )
        prompts = encode_prompts(plan, model, samples)
        offered = [sample.example.choices for sample in samples]
        self._examples = list(zip(prompts, offered, strict=True))
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
        timed, warm = self._examples[: self.protocol.n], self._examples[self.protocol.n :]
        for method in self.methods:
            for prompt, choices in warm:
                self._time(method, prompt, choices)
                yield method.label
        for _ in range(self.protocol.passes):
            for method in self.methods:
                timings: list[Timing] = []
                self._passes[method.label].append(timings)
                for prompt, choices in timed:
                    timings.append(self._time(method, prompt, choices))
                    yield method.label

    def _time(self, method: LiveMethod, prompt: IntArray, choices: Choices) -> Timing:
        """One whole decode, the gate's bookkeeping and the final fill included."""
        plan, denoiser = self.plan, self.model.denoiser
        wait_for(denoiser.device)
        start = time.perf_counter()
        gate = method.new_gate(plan.task, self.vocabulary, plan.shape, choices)
        decoded = decode(
            denoiser, prompt, plan.shape, rule=method.rule, gate=gate, forward=method.forward
        )
        wait_for(denoiser.device)
        seconds = time.perf_counter() - start
        return Timing(seconds, decoded.steps, self.vocabulary.ending(decoded.ids.tolist()))

    def identity(self, method: LiveMethod) -> str:
        """What decides a method's numbers, the clock apart: as JSON that can be compared."""
        plan = replace(self.plan, method=method, recorded=False)
        return json.dumps(full_identity(plan, self.model), sort_keys=True)

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
            "identity": self.identity(method),
            **asdict(self.plan.shape),
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


def read_timings(root: str | Path) -> pa.Table:
    """Every timing below a root, oldest first; of repetitions only the newest.

    A repetition has the same identity, weights and shape included, and the same protocol.
    """
    paths = Path(root).glob("**/bench/model=*/task=*/*.parquet")
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in sorted(paths, key=lambda path: path.name):
        model, task = (part.partition("=")[2] for part in path.parts[-3:-1])
        for row in _read_call(path).to_pylist():
            key = (model, task, *(row[name] for name in REPEATED))
            newest.pop(key, None)
            newest[key] = {"model": model, "task": task, **row}
    return pa.Table.from_pylist(list(newest.values()), schema=TIMINGS)


def _read_call(path: Path) -> pa.Table:
    """The table of one call; or an error that names its file."""
    try:
        table = pq.ParquetFile(path).read()
    except pa.ArrowInvalid as error:
        raise RunError(
            f"{path}: damaged ({error}); delete it, and time again with: c4 bench"
        ) from error
    if table.schema.names != BENCH.names:
        raise RunError(f"{path}: columns of another c4; delete it, and time again with: c4 bench")
    return table
