"""What replaying costs: a grid of gates, the signal pass, and memory over many trajectories.

    python benchmarks/bench_replay.py [--model tiny]

Prints ratios measured in one run. Recordings are made in a temporary folder first.

The grid is compared with `LiveGate` going through the recorded steps, extraction included. A plain
Python loop over the *cached signals* is a much harder rival: the grid was 31 to 56 times faster
than that, not 1,000, when it was tried on 36 trajectories.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from c4.record import RecordConfig, Run, StepView, open_run, plan_recording, start_recording
from c4.replay import (
    CVEE,
    NONE,
    CandidateReader,
    LiveGate,
    RunSignals,
    SignalReading,
    filled_predictions,
    grid_exits,
    load_signals,
    make_grid,
    read_signals,
    stack_signals,
)
from c4.tasks import TASKS, Task

POOL = ("mmlu", "gsm8k", "math")
GRID = {"tau": "0.5:0.99:0.01", "gamma": "0,1,2,4", "p_min": "1,2,3,5,8"}
GRID_LIMIT, PYTHON_LIMIT, PASS_LIMIT, MEMORY_LIMIT = 3.0, 1000.0, 20.0, 800.0


def record(root: Path, task: str, model: str, n: int, skip: int = 0) -> Run:
    plan = plan_recording(
        RecordConfig(
            task=task, model=model, source="embedded", n=n, skip=skip, out=root, graded=False
        )
    )
    with start_recording(plan) as recording:
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


def step_by_step(run: Run, views: list[list[StepView]], gate: CVEE) -> list[int]:
    """Replay every trajectory as a live decode would see it: one step after the other."""
    reader = CandidateReader(TASKS[run.task], run.vocabulary, run.shape.length)
    exits = []
    for trajectory in views:
        live = LiveGate(gate, run.shape, reader)
        exits.append(next((view.step for view in trajectory if live.fires(view)), 0))
    return exits


def views_of(run: Run) -> list[list[StepView]]:
    """Recorded trajectories as the steps that a live gate sees."""
    steps = run.shape.steps_per_block
    return [
        [
            StepView(t + 1, t // steps, *(getattr(cells, f.name)[t] for f in fields(cells)))
            for t in range(len(cells.token))
        ]
        for cells in (trajectory.cells for trajectory in run)
    ]


def bench_grid(runs: list[Run]) -> None:
    grid = make_grid("cvee", GRID)
    signals = read_cached(runs)
    reading = median_seconds(lambda: read_cached(runs))
    gating = median_seconds(lambda: [grid_exits(grid, s.signals) for s in signals])
    exits = np.concatenate([grid_exits(grid, s.signals) for s in signals], axis=1)
    settings = list(grid.settings())
    chosen = range(0, len(settings), len(settings) // 4)
    views = [views_of(run) for run in runs]
    start = time.perf_counter()
    by_hand = [
        [
            exit_at
            for run, its_views in zip(runs, views, strict=True)
            for exit_at in step_by_step(run, its_views, CVEE(**settings[i]))
        ]
        for i in chosen
    ]
    python = (time.perf_counter() - start) * len(settings) / len(chosen)
    assert exits[list(chosen)].tolist() == by_hand, "the grid and the plain replay disagree"
    slow, fast = gating / reading, python / gating
    print(f"grid of {len(grid)} CVEE settings over {exits.shape[1]} trajectories:")
    print(f"  {slow:.2f}x the time of reading the cached signals {say(slow <= GRID_LIMIT)}")
    print(f"  {fast:,.0f}x faster than replaying step by step {say(fast >= PYTHON_LIMIT)}")


def bench_pass(run: Run) -> None:
    """The signal pass against detokenising and extracting at every step."""
    task = TASKS[run.task]
    tokenizer = Tokenizer.from_file(str(run.folder / "tokenizer.json"))
    batches = [cells for part in run.parts for _, cells in run.read_batches(part)]

    def plain() -> list[list[tuple[str | None, str | None]]]:
        start = CandidateReader(task, run.vocabulary, run.shape.length).tail_start
        first = start if task.search == "last" else 0
        values = []
        for cells in batches:
            for filled in filled_predictions(cells.token, cells.masked).tolist():
                steps = []
                for row in filled:
                    end = run.vocabulary.ending(row)
                    found = task.extract(tokenizer.decode(row[first:end]))
                    whole = task.extract(tokenizer.decode(row[:end])) if first else found
                    steps.append((found and found.value, whole and whole.value))
                values.append(steps)
        return values

    def ours() -> list[SignalReading]:
        reader = CandidateReader(task, run.vocabulary, run.shape.length)
        return [read_signals(cells, run.shape, reader) for cells in batches]

    check_equal(task, ours(), plain())
    ratio = median_seconds(plain, 3) / median_seconds(ours, 3)
    print(f"signal pass on {run.task}: {ratio:.1f}x every step's {say(ratio >= PASS_LIMIT)}")


def check_equal(
    task: Task,
    ours: list[SignalReading],
    plain: list[list[tuple[str | None, str | None]]],
) -> None:
    """The same candidates and answers at every step."""
    at = 0
    for reading in ours:
        for i, (values, answers) in enumerate(
            zip(reading.candidates, reading.answers, strict=True)
        ):
            steps = plain[at]
            got = [None if a == NONE else answers[a] for a in reading.signals.answer[i]]
            assert got == [whole for _, whole in steps], "answers differ"
            if task.search != "code":  # where undefined spans are no candidates
                got = [None if c == NONE else values[c] for c in reading.signals.candidate[i]]
                assert got == [found for found, _ in steps], "candidates differ"
            at += 1


def bench_memory(run: Run) -> None:
    """Replays a run of many trajectories in a process of its own."""
    job = [sys.executable, __file__, "--child", str(run.folder)]
    output = subprocess.run(job, check=True, capture_output=True, text=True).stdout
    peak = float(output)
    what = f"peak memory of replaying {len(run)} trajectories"
    print(f"{what}: {peak:.0f} MB {say(peak <= MEMORY_LIMIT)}")


def say(held: bool) -> str:
    return "ok" if held else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Path(options.child))
        return
    scratch = Path(tempfile.mkdtemp(dir="."))
    try:
        runs = [record(scratch, task, options.model, 40) for task in POOL]
        bench_grid(runs)
        for run in [*runs, record(scratch, "mbpp", options.model, 20)]:
            bench_pass(run)
        bench_memory(record(scratch / "many", "mmlu", options.model, 2000))
    finally:
        shutil.rmtree(scratch)


def child(folder: Path) -> None:
    from c4.replay import replay

    for frame in replay(open_run(folder), {"cvee": CVEE()}):
        assert frame.height
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
