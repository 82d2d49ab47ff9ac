"""What recording costs: time over the same decode without it, and memory over many trajectories.

    python benchmarks/bench_record.py [--model tiny] [--n 24]

Prints ratios measured in one run; decodes with and without the recorder take turns.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from c4.decode.loop import decode
from c4.models import LoadedModel
from c4.record.plan import Plan, RunConfig, plan_recording
from c4.record.recorder import Recording, start_recording
from c4.store.runs import open_run

TASKS = ("mmlu", "math", "humaneval")
OVERHEAD_LIMIT = 1.05
MEMORY_LIMIT = 1.10


def plain_seconds(plan: Plan, model: LoadedModel) -> float:
    """The decode alone."""
    start = time.perf_counter()
    for sample in plan.sample_set.samples:
        prompt = np.array(model.encode_prompt(sample.example.prompt), dtype=np.int64)
        decode(model.denoiser, prompt, plan.shape)
    return time.perf_counter() - start


def recorded_seconds(recording: Recording) -> float:
    """The same decode, every step kept, every file flushed to the disk."""
    start = time.perf_counter()
    for _ in recording:
        pass
    return time.perf_counter() - start


def overhead(task: str, model_name: str, n: int, passes: int) -> float:
    """Median over passes of recorded time over plain time, with one and the same model.

    A pass before them is not counted: the first file a process writes makes Arrow import pandas.
    """
    ratios = []
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        for turn in range(passes + 1):
            config = RunConfig(
                task=task,
                model=model_name,
                source="embedded",
                n=n,
                graded=False,
                out=Path(scratch) / str(turn),
            )
            plan = plan_recording(config)
            with start_recording(plan) as recording:
                plain_seconds(plan, recording.model)  # warm-up
                before = plain_seconds(plan, recording.model)
                recorded = recorded_seconds(recording)
                after = plain_seconds(plan, recording.model)
            ratios.append(recorded / ((before + after) / 2))
    return statistics.median(ratios[1:])


def peak_megabytes(model: str, n: int) -> tuple[float, float]:
    """Peak memory of a process that records n trajectories, and of one that reads them."""
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        job = [sys.executable, __file__, "--child", scratch, "--model", model, "--n", str(n)]
        outputs = [
            subprocess.run([*job, "--job", what], check=True, capture_output=True, text=True)
            for what in ("record", "read")
        ]
    recording, reading = (float(output.stdout) for output in outputs)
    return recording, reading


def child(job: str, scratch: str, model: str, n: int) -> None:
    """One measured job in a process of its own."""
    config = RunConfig(task="mmlu", model=model, source="embedded", n=n, skip=0, out=Path(scratch))
    plan = plan_recording(config)
    if job == "record":
        with start_recording(plan) as recording:
            for _ in recording:
                pass
    else:
        for _, cells in open_run(plan.folder).cells():
            cells.confidence.sum()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--n", type=int, default=24)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.job, options.child, options.model, options.n)
        return
    for task in TASKS:
        ratio = overhead(task, options.model, options.n, options.passes)
        verdict = "ok" if ratio <= OVERHEAD_LIMIT else "MISSED"
        print(f"recorder overhead, {task}: {ratio:.3f}x (limit {OVERHEAD_LIMIT}x) {verdict}")
    few, many = 20, 600
    for what, small, large in zip(
        ("recording", "reading"),
        peak_megabytes(options.model, few),
        peak_megabytes(options.model, many),
        strict=True,
    ):
        ratio = large / small
        verdict = "ok" if ratio <= MEMORY_LIMIT else "MISSED"
        print(
            f"peak memory of {what}, {many} trajectories over {few}: {ratio:.3f}x "
            f"({small:.0f} -> {large:.0f} MB, limit {MEMORY_LIMIT}x) {verdict}"
        )


if __name__ == "__main__":
    main()
