"""The timing protocol: fixed examples, warm-ups, repeated passes and device synchronization."""

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import torch

from c4.decode.loop import decode
from c4.errors import ConfigError
from c4.models import LoadedModel
from c4.record.methods import ResolvedMethod
from c4.record.plan import Plan, encode_prompts, full_identity
from c4.store.arrays import IntArray
from c4.store.timings import BENCH
from c4.tasks.task import Choices
from c4.tasks.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class TimingProtocol:
    """Parameters of the timing protocol. The defaults are the paper's."""

    n: int = 20
    warmups: int = 2
    """Number of examples decoded first, untimed; they come after the timed ones in the split."""
    passes: int = 3

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("warmups", 0), ("passes", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is at least {least}, not {getattr(self, name)}")

    @property
    def examples(self) -> int:
        """Number of examples that the protocol needs."""
        return self.n + self.warmups


@dataclass(frozen=True)
class Timing:
    """One timed decode."""

    seconds: float
    steps: int
    tokens_before_end: int


class Bench:
    """Times methods on one task. Iterating decodes; `table` returns the timings.

    Methods alternate from pass to pass, so that a slow period of the machine affects all of them.
    """

    def __init__(
        self,
        plan: Plan,
        methods: Sequence[ResolvedMethod],
        model: LoadedModel,
        protocol: TimingProtocol,
    ) -> None:
        if plan.batch != 1:
            raise ConfigError("methods are timed one example at a time, as in the paper: batch 1")
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
        self._examples = [(prompts[s.index], s.example.choices) for s in samples]
        self._passes: dict[str, list[list[Timing]]] = {method.label: [] for method in methods}

    @property
    def baseline(self) -> ResolvedMethod | None:
        """The method that speedups are relative to; None if it is not timed."""
        return next((method for method in self.methods if method.is_baseline), None)

    def __len__(self) -> int:
        """Total number of decodes."""
        return len(self.methods) * (self.protocol.warmups + self.protocol.passes * self.protocol.n)

    def __iter__(self) -> Iterator[str]:
        """Decode, and yield the method's label after each decode."""
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

    def _time(self, method: ResolvedMethod, prompt: IntArray, choices: Choices) -> Timing:
        """Time one whole decode, including the gate's bookkeeping and the final fill."""
        plan, denoiser = self.plan, self.model.denoiser
        wait_for(denoiser.device)
        start = time.perf_counter()
        gate = method.new_gate(plan.task, self.vocabulary, plan.shape, choices)
        decoded = decode(
            denoiser, prompt, plan.shape, rule=method.commit_rule, gate=gate, forward=method.forward
        )
        wait_for(denoiser.device)
        seconds = time.perf_counter() - start
        return Timing(seconds, decoded.steps, self.vocabulary.ending(decoded.ids.tolist()))

    def identity(self, method: ResolvedMethod) -> str:
        """Return what determines a method's results, except timings, as comparable JSON."""
        plan = replace(self.plan, method=method, cells=False)
        return json.dumps(full_identity(plan, self.model), sort_keys=True)

    def table(self) -> pa.Table:
        """Return one row per method; see `BENCH`. Speedups are null without a baseline."""
        rows = [self._row(method) for method in self.methods]
        if self.baseline is not None:
            base = rows[self.methods.index(self.baseline)]
            for row in rows:
                row["speedup"] = base["mean_seconds"] / row["mean_seconds"]
                row["step_ratio"] = base["mean_steps"] / row["mean_steps"]
        return pa.Table.from_pylist(rows, schema=BENCH)

    def _row(self, method: ResolvedMethod) -> dict[str, Any]:
        passes = self._passes[method.label]
        means = [statistics.fmean(t.seconds for t in timings) for timings in passes]
        timings = [timing for timings in passes for timing in timings]
        seconds = statistics.fmean(means)
        steps = statistics.fmean(t.steps for t in timings)
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
            "tokens_per_forward": length / steps,
            "mean_steps": steps,
            "speedup": None,
            "step_ratio": None,
        }


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all queued work; a CPU needs no waiting."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
