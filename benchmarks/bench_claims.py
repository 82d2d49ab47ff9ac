"""What claims and workers cost, and what a second worker gains.

    python benchmarks/bench_claims.py [--n 60]

1. One worker on a local folder: the processor time that goes into claims, signs of life and looking
   for what others have done, as a share of the processor time of decoding (aim: at most 3%).
2. Two workers of one thread against one, in turn, by the clock once all are decoding; this needs
   two idle processors (aim: 1.8 times as fast).

`bench_storage.py` measures many claimants that decode nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import Recording, start_recording
from c4.store.claims import Claims
from c4.store.writer import RunWriter

SHARED = [
    (Claims, "take"),
    (Claims, "release"),
    (Claims, "report"),
    (Claims, "note"),
    (Claims, "still_holds"),
    (RunWriter, "unfinished"),
    (RunWriter, "unsealed"),
    (RunWriter, "is_ready"),
    (RunWriter, "note_sealed"),
]
"""What a worker does for the sake of others."""
ROUNDS = 3
"""Of one worker and of two."""
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


class Stopwatch:
    """Processor time of some functions, each thread's own; the outermost of them counts."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.calls = 0
        self._inside = threading.local()

    def around(self, owner: type, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            if getattr(self._inside, "yes", False):
                return real(*args, **options)
            self._inside.yes, start = True, time.thread_time()
            try:
                return real(*args, **options)
            finally:
                self.spent += time.thread_time() - start
                self.calls += 1
                self._inside.yes = False

        setattr(owner, name, timed)


def cost_of_claims(out: Path, n: int) -> None:
    """One worker, one thread, a local folder."""
    torch.set_num_threads(1)
    plan = plan_recording(config(out, n))
    model = load_planned(plan)
    claims, decodes = Stopwatch(), Stopwatch()
    for owner, name in SHARED:
        claims.around(owner, name)
    decodes.around(Recording, "_decode_claimed")
    with start_recording(plan, model) as recording:
        done = len(list(recording))
    share = claims.spent / decodes.spent
    print(
        f"one worker, {done} trajectories: {1000 * decodes.spent / done:.1f} ms of processor time "
        f"each to decode, {1000 * claims.spent / done:.2f} ms for claims: {share:.2%} (aim 3%)"
    )


def config(out: Path, n: int) -> RunConfig:
    return RunConfig(task="mmlu", n=n, skip=0, out=out, device="cpu")


@dataclass
class Pace:
    """When how many trajectories of a run were safe, looked up while others make them."""

    folder: Path
    seen: list[tuple[float, int]] = field(default_factory=list)

    @contextmanager
    def watched(self) -> Iterator[None]:
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.05):
                self.seen.append((time.monotonic(), self.safe()))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def safe(self) -> int:
        """Trajectories that are safe, by the names of files alone."""
        numbers: set[int] = set()
        for path in [*self.folder.glob("pending/*.parquet"), *self.folder.glob("rows/*.parquet")]:
            first, last = path.name.partition(".")[0].split("-")
            numbers.update(range(int(first), int(last) + 1))
        return len(numbers)

    def per_second(self, after: int, n: int) -> float:
        """Trajectories a second, from the look that finds `after` of them to that of the last."""
        begin, had = next(look for look in self.seen if look[1] >= after)
        end = next(at for at, count in self.seen if count >= n)
        return (n - had) / (end - begin)


def pace(out: Path, n: int, workers: int) -> float:
    """Trajectories a second once all workers are at it."""
    watch = Pace(Path(plan_recording(config(out, n)).folder))
    words = ["record", "--task", "mmlu", "--n", str(n), "--skip", "0", "--out", str(out)]
    command = [sys.executable, "-m", "c4.cli", *words, "--engine", "local"]
    with watch.watched():
        subprocess.run([*command, "--workers", str(workers)], check=True, env=ONE_THREAD)
        time.sleep(0.2)  # for one more look
    return watch.per_second(n // 4, n)


def gain_of_a_second(out: Path, n: int) -> None:
    """One worker and two, in turn."""
    ratios = []
    for turn in range(ROUNDS):
        one, two = (pace(out / f"{turn}-{workers}", n, workers) for workers in (1, 2))
        ratios.append(two / one)
    told = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    print(
        f"two workers of one thread against one, {ROUNDS} rounds in turn: {median(ratios):.2f} "
        f"times as fast by the clock ({told}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} "
        "processors; aim 1.8)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=60, help="Trajectories of a recording.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cost_of_claims(Path(scratch) / "cost", options.n)
        gain_of_a_second(Path(scratch) / "gain", options.n)


if __name__ == "__main__":
    main()
