"""What replaying costs: a grid of gates, the signal pass, and memory over many trajectories.

    python benchmarks/bench_replay.py [--model tiny]

Prints ratios measured in one run. Recordings are made in a temporary folder first.

Two rivals come in two kinds, since "per step" can be meant in two ways. The grid is held against
the same gate asked at every step over the cached signals and, for information, against the leanest
Python loop one could write for CVEE alone, on lists. The signal pass is held against the same
signals made step by step, every text detokenised and read whole; and against detokenising and
extracting alone, with nothing made of the result. Memory is that of `c4 replay` over recordings of
200 and of 2,000 trajectories, of a denoiser that predicts noise: no two texts are alike.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from c4.gates.candidates import (
    FIRST_POSITIONS,
    CandidateReader,
    LocatedCandidate,
    filled_predictions,
)
from c4.gates.cvee import CVEE
from c4.gates.live import LiveSignals
from c4.gates.run_signals import RunSignals, load_signals, stack_signals
from c4.gates.signals import NONE, Signals, read_signals
from c4.gates.steps import StepView
from c4.models import Denoiser, LoadedModel, Reading
from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import start_recording
from c4.replay.grids import grid_exits, make_grid
from c4.store.arrays import IntArray, TokenArray
from c4.store.runs import Run, open_run
from c4.tasks import Ending, read_under
from c4.tasks.task import Choices

POOL = ("mmlu", "gsm8k", "math")
GRID = {"tau": "0.5:0.99:0.01", "gamma": "0,1,2,4", "p_min": "1,2,3,5,8"}
Setting = dict[str, float]
Replay = Callable[[Setting], list[int]]

GRID_LIMIT, PYTHON_LIMIT, PASS_LIMIT, MEMORY_LIMIT = 3.0, 1000.0, 20.0, 800.0
FEW, MANY = 200, 2000
GROWTH_LIMIT = 1.15
"""Peak memory of replaying MANY trajectories over that of FEW."""


class Noise(Denoiser):
    """Predicts anything at once."""

    def __init__(self, model: LoadedModel) -> None:
        denoiser = model.denoiser
        super().__init__(denoiser.model, mask_id=denoiser.mask_id, shift=denoiser.shift)
        self.tokens = np.setdiff1d(np.arange(len(model.tokenizer)), [denoiser.mask_id])
        self.rng = np.random.default_rng(0)

    def read(self, ids: IntArray, start: int, **_: object) -> Reading:
        length = len(ids) - start
        confidence, gap, entropy = self.rng.random((3, length), dtype=np.float32)
        token = self.rng.choice(self.tokens, length)
        return Reading(token, 1 / confidence - 1, confidence, gap, entropy)


def record(root: Path, task: str, model: str, n: int, *, noise: bool = False) -> Run:
    """A recording of a model, or of noise in its shape."""
    plan = plan_recording(
        RunConfig(task=task, model=model, source="embedded", n=n, skip=0, out=root, graded=False)
    )
    loaded = load_planned(plan)
    if noise:
        loaded = replace(loaded, denoiser=Noise(loaded))
    with start_recording(plan, loaded) as recording:
        for _ in recording:
            pass
    return open_run(plan.folder)


def median_seconds(job: Callable[[], object], repeats: int = 7) -> float:
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def read_cached(runs: list[Run]) -> list[RunSignals]:
    return [stack_signals(list(load_signals(open_run(run.folder)))) for run in runs]


def step_by_step(cached: RunSignals, gate: CVEE) -> list[int]:
    """Ask the gate at every step, as a live decode does, until it fires."""
    columns = [getattr(cached.signals, f.name) for f in fields(Signals)]
    exits = []
    for i in range(len(cached)):
        steps = (Signals(*(c[i, t : t + 1] for c in columns)) for t in range(columns[0].shape[1]))
        exits.append(next((t for t, s in enumerate(steps, 1) if gate.fires(s)[0]), 0))
    return exits


def leanest_loop(rows: list[list[tuple[int, int, int, float]]], setting: Setting) -> list[int]:
    """CVEE and nothing else, on Python numbers: candidate, run, changes and confidence."""
    tau, gamma, p_min = setting["tau"], setting["gamma"], setting["p_min"]
    exits = []
    for row in rows:
        exit_at = 0
        for t, (candidate, run, changes, confidence) in enumerate(row, 1):
            if confidence >= tau and run >= p_min and run >= gamma * changes and candidate != NONE:
                exit_at = t
                break
        exits.append(exit_at)
    return exits


def views_of(run: Run) -> list[list[StepView]]:
    """Recorded trajectories as the steps that a live decode sees."""
    steps = run.shape.steps_per_block
    return [
        [
            StepView(t + 1, t // steps, *(getattr(cells, f.name)[t] for f in fields(cells)))
            for t in range(len(cells.token))
        ]
        for cells in (trajectory.cells for trajectory in run)
    ]


def lists_of(cached: RunSignals) -> list[list[tuple[int, int, int, float]]]:
    s = cached.signals
    columns = (s.candidate, s.run, s.changes, s.confidence)
    return [
        list(zip(*(column[i].tolist() for column in columns), strict=True))
        for i in range(len(cached))
    ]


def bench_grid(runs: list[Run]) -> None:
    grid = make_grid("cvee", GRID)
    signals = read_cached(runs)
    reading = median_seconds(lambda: read_cached(runs))
    gating = median_seconds(lambda: [grid_exits(grid, s) for s in signals])
    exits = np.concatenate([grid_exits(grid, s) for s in signals], axis=1)
    settings = list(grid.settings())
    rows = [row for cached in signals for row in lists_of(cached)]
    lean = timed_slice(settings, lambda setting: leanest_loop(rows, setting), exits)
    asked = timed_slice(
        settings,
        lambda setting: [e for s in signals for e in step_by_step(s, CVEE(**setting))],
        exits,
    )
    slow, fast = gating / reading, asked / gating
    print(f"grid of {len(grid)} CVEE settings over {exits.shape[1]} trajectories:")
    print(f"  {slow:.2f}x the time of reading the cached signals {say(slow <= GRID_LIMIT)}")
    print(f"  {fast:,.0f}x faster than asking the gate at every step {say(fast >= PYTHON_LIMIT)}")
    print(f"  {lean / gating:,.0f}x faster than the leanest Python loop (for information)")


def timed_slice(settings: list[Setting], replay: Replay, exits: IntArray, slices: int = 8) -> float:
    """Seconds a way to replay would take for all settings, from some of them; checks its exits."""
    chosen = range(0, len(settings), len(settings) // slices)
    start = time.perf_counter()
    by_hand = [replay(settings[i]) for i in chosen]
    seconds = time.perf_counter() - start
    assert exits[list(chosen)].tolist() == by_hand, "the grid and the plain replay disagree"
    return seconds * len(settings) / len(chosen)


class ForgetfulReader(CandidateReader):
    """Reads every text whole, every time."""

    def read(
        self, rows: TokenArray, choices: Sequence[Choices]
    ) -> list[tuple[LocatedCandidate | None, str | None]]:
        pairs = zip(rows, choices, strict=True)
        return [self.read_whole(row.tolist(), offered) for row, offered in pairs]

    def read_whole(
        self, row: list[int], choices: Choices
    ) -> tuple[LocatedCandidate | None, str | None]:
        start = self.tail_start if self.task.search == "last" else 0
        found = self.find(row, start, choices)
        whole = self.find(row, 0, choices) if start else found
        return found, whole and whole.value

    def find(self, row: list[int], start: int, choices: Choices) -> LocatedCandidate | None:
        if self.reading.ending is Ending.CUT:
            row = row[: self.vocabulary.ending(row)]
        traced = self.vocabulary.trace(row[start:], self.reading.ending)
        found = read_under(self.task, self.reading.style).extract(traced.text, choices)
        if found is None:
            return None
        span = traced.token_span(found.start, found.end)
        if span and self.task.search == "first5" and span[0] >= FIRST_POSITIONS:
            span = None
        return LocatedCandidate(found.value, span and (span[0] + start, span[1] + start))


def bench_pass(run: Run) -> None:
    """The signal pass against the same signals step by step."""
    task = run.task
    tokenizer = Tokenizer.from_file(str(run.folder / "tokenizer.json"))
    batches = [batch for part in run.parts for batch in run.read_batches(part)]
    choices = {row.trajectory: row.example.choices for row in run.rows()}
    views = views_of(run)

    def ours() -> list[Signals]:
        reader = CandidateReader(task, run.vocabulary, run.shape.length, run.reading)
        return [
            read_signals(cells, run.shape, reader, [choices[i] for i in numbers])[0]
            for numbers, cells in batches
        ]

    def stepwise() -> list[Signals]:
        reader = ForgetfulReader(task, run.vocabulary, run.shape.length, run.reading)
        made = []
        for number, trajectory in zip(choices, views, strict=True):
            live = LiveSignals(run.shape, reader, choices[number])
            for view in trajectory:
                signals = live.append(view)
                for field in fields(Signals):  # made only when they are looked at
                    getattr(signals, field.name)
            made.append(signals)
        return made

    def text_only() -> None:
        first = CandidateReader(task, run.vocabulary, run.shape.length, run.reading).tail_start
        for _, cells in batches:
            for row in filled_predictions(cells.token, cells.masked).reshape(-1, run.shape.length):
                ids = row.tolist()
                end = run.vocabulary.ending(ids)
                task.extract(tokenizer.decode(ids[:end]))
                if task.search == "last":
                    task.extract(tokenizer.decode(ids[first:end]))

    check_equal(ours(), stepwise())
    seconds = median_seconds(ours, 5)
    ratio, text = (median_seconds(job, 3) / seconds for job in (stepwise, text_only))
    print(
        f"signal pass on {run.task_name}: {ratio:.0f}x every step's {say(ratio >= PASS_LIMIT)}; "
        f"{text:.1f}x detokenising and extracting alone {say(text >= PASS_LIMIT)}"
    )


def check_equal(ours: list[Signals], stepwise: list[Signals]) -> None:
    """The same signals at every step, to the last bit."""
    made = (signals.one(i) for signals in ours for i in range(len(signals.step)))
    for one, other in zip(made, stepwise, strict=True):
        for field in fields(Signals):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def bench_memory(root: Path, model: str) -> None:
    """`c4 replay` over few and over many trajectories, each in a process of its own."""
    peaks = []
    for n in (FEW, MANY):
        folder = record(root / str(n), "gsm8k", model, n, noise=True).folder
        command = [sys.executable, "-m", "c4.cli", "replay", "--runs", str(folder), "--json"]
        peaks.append(peak_memory(command))
    growth = peaks[1] / peaks[0]
    print(
        f"peak memory of replaying {MANY} trajectories: {peaks[1]:.0f} MB "
        f"{say(peaks[1] <= MEMORY_LIMIT)}; {growth:.2f}x that of {FEW} "
        f"{say(growth <= GROWTH_LIMIT)}"
    )


def peak_memory(command: list[str]) -> float:
    """Of a process that must succeed, in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1024


def say(held: bool) -> str:
    return "ok" if held else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(dir="."))
    try:
        runs = [record(scratch, task, options.model, 40) for task in POOL]
        bench_grid(runs)
        for run in [*runs, record(scratch, "mbpp", options.model, 20)]:
            bench_pass(run)
        bench_memory(scratch, options.model)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
