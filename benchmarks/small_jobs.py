"""Five small jobs that write files, for programs that disturb them while they do.

A recording, a run of a method, grades, a calibration and timings. A stand-in for the model predicts
whatever a hash of its input says, and a clock counts how often it is asked, so that a job leaves
the same bytes every time, wall times included. Jobs run in forked processes; this one only looks.
"""

import json
import os
import shutil
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c4.errors import C4Error
from c4.gates.calibration_files import load_calibration
from c4.models import Denoiser, LoadedModel, Reading
from c4.record import recorder, regrade
from c4.record.bench import Bench, TimingProtocol
from c4.record.plan import (
    Plan,
    RunConfig,
    choose_methods,
    load_planned,
    plan_decode,
    plan_methods,
    plan_recording,
)
from c4.record.recorder import start_recording
from c4.record.settings import MethodChoice
from c4.replay.calibration import Requirement, calibrate, save_calibration
from c4.replay.grids import make_grid
from c4.replay.pools import split_runs
from c4.store import writer as writer_module
from c4.store.arrays import IntArray
from c4.store.check import Finding, State, check_run, check_timings
from c4.store.runs import find_runs, open_run
from c4.store.timings import read_timings, write_timings
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Ending, ReadingStyle

N = 5
"""Trajectories of a run."""
PER_PART = 2
"""Trajectories of a sealed part."""
SHAPE = {"length": 8, "budget": 8, "block_length": 4}
OTHER_READING = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)
"""What the grading job grades under; the recording was graded under the default."""
LEASE = 0.4
"""Seconds after which a claim is free that a killed process had made and not signed yet."""
Report = Callable[[int], None]


class Babble(Denoiser):
    """Predicts what a hash of its input says."""

    def __init__(self, model: LoadedModel) -> None:
        denoiser = model.denoiser
        super().__init__(denoiser.model, mask_id=denoiser.mask_id, shift=denoiser.shift)
        self.tokens = np.setdiff1d(np.arange(len(model.tokenizer)), [denoiser.mask_id])

    def read(self, ids: IntArray, start: int, **_: object) -> Reading:
        rng = np.random.default_rng(zlib.crc32(ids.tobytes()))
        length = len(ids) - start
        confidence, gap, entropy = rng.random((3, length), dtype=np.float32)
        return Reading(
            rng.choice(self.tokens, length), 1 / confidence - 1, confidence, gap, entropy
        )


def config(root: Path, **changes: Any) -> RunConfig:
    return RunConfig(task="gsm8k", source="embedded", n=N, skip=0, out=root, **SHAPE | changes)


@cache
def model() -> LoadedModel:
    loaded = load_planned(plan_decode(config(Path("unused"))))
    return replace(loaded, denoiser=Babble(loaded))


def recording_plan(root: Path) -> Plan:
    return plan_recording(config(root))


def method_plan(root: Path) -> Plan:
    (plan,) = plan_methods(config(root), MethodChoice(["c4"]))
    return plan


def decode(plan: Plan, report: Report) -> None:
    with start_recording(plan, model()) as recording:
        for row in recording:
            report(row.trajectory)


def add_grades(root: Path, report: Report) -> None:
    real = RunWriter.add_grades

    def reported(self: RunWriter, grades: Any, reading: AnswerReading) -> None:
        real(self, grades, reading)
        for number in grades:
            report(number)

    RunWriter.add_grades = reported  # type: ignore[method-assign]
    for _ in regrade.regrade(recording_plan(root).folder, OTHER_READING):
        pass


def choose_setting(root: Path, gamma: str = "1,2") -> None:
    runs = [open_run(recording_plan(root).folder)]
    splits = split_runs(runs, 3)
    grid = make_grid("cvee", {"gamma": gamma, "tau": "0.2,0.4", "p_min": "1"})
    found = calibrate(grid, [split.pool for split in splits], Requirement(tolerance=100.0))
    save_calibration(root / "calibration.json", found, splits)


def time_methods(root: Path, methods: tuple[str, ...] = ("baseline", "c4")) -> None:
    protocol = TimingProtocol(n=2, warmups=0, passes=1)
    plan, chosen = choose_methods(config(root), MethodChoice(methods))
    bench = Bench(plan, chosen, model(), protocol)
    for _ in bench:
        pass
    write_timings(root, plan.checkpoint.name, plan.task.name, bench.table())


def nobody(_: int) -> None:
    """Takes no notice."""


@dataclass(frozen=True)
class Job:
    """Something that writes below a folder, and can be done again after it was disturbed."""

    name: str
    prepare: Callable[[Path], None]
    work: Callable[[Path, Report], None]
    finished: Callable[[Path], set[int]]
    """What is safe on disk; it raises where something that was safe can no longer be read."""


def decoded(plan: Callable[[Path], Plan]) -> Callable[[Path], set[int]]:
    def look(root: Path) -> set[int]:
        folder = plan(root).folder
        if folder not in find_runs(root):
            return set()
        run = open_run(folder)
        for _ in run if run.has_cells else run.rows():
            pass
        return set(run.indices)

    return look


def graded(root: Path) -> set[int]:
    rows = open_run(recording_plan(root).folder, OTHER_READING).rows()
    return {row.trajectory for row in rows if row.verdict is not None}


def calibrated(root: Path) -> set[int]:
    load_calibration(root / "calibration.json")  # the old one or the new one, and whole
    return set()


def timed(root: Path) -> set[int]:
    assert read_timings(root).num_rows >= 1  # the old ones, at the least
    return set()


def calibrate_otherwise(root: Path) -> None:
    """A recording and an older calibration, but no cached signals."""
    decode(recording_plan(root), nobody)
    choose_setting(root, "3")
    shutil.rmtree(recording_plan(root).folder / "signals")


JOBS = [
    Job("record", lambda root: None, lambda root, report: decode(recording_plan(root), report),
        decoded(recording_plan)),
    Job("run", lambda root: None, lambda root, report: decode(method_plan(root), report),
        decoded(method_plan)),
    Job("grade", lambda root: decode(recording_plan(root), nobody), add_grades, graded),
    Job("calibrate", calibrate_otherwise, lambda root, _: choose_setting(root), calibrated),
    Job("bench", lambda root: time_methods(root, ("baseline",)), lambda root, _: time_methods(root),
        timed),
]  # fmt: skip


def set_stage() -> None:
    """Small parts, one thread, and a clock that counts: for the process that does a job."""
    ticks = iter(range(10**9))
    time.perf_counter = lambda: next(ticks) * 2.0**-10
    torch.set_num_threads(1)
    writer_module.CELLS_PER_PART = PER_PART * SHAPE["length"] * SHAPE["budget"]
    regrade.ROWS_AT_A_TIME = PER_PART
    recorder.datetime = _NoClock  # type: ignore[attr-defined]


class _NoClock:
    """A calendar that stands still, so that manifests can be compared."""

    @staticmethod
    def now(_: object) -> "_NoClock":
        return _NoClock()

    def isoformat(self, **_: object) -> str:
        return "2026-01-01T00:00:00+00:00"


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    killed: bool
    error: str
    """Empty, or what was raised."""
    traceback: str
    """Empty, or how, where it is nothing that c4 raises on purpose."""
    reported: set[int]
    """Trajectories that the job said were safe."""


def in_a_child(work: Callable[[Report], None], *, kill_after: float | None = None) -> Outcome:
    """Do some work in a forked process, and hear what it says is safe."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_child(work, write)
    os.close(write)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(read, encoding="utf-8") as pipe:
        lines = [line for line in pipe.read().splitlines(keepends=True) if line.endswith("\n")]
    _, status = os.waitpid(pid, 0)
    told = [json.loads(line) for line in lines]
    errors = [line for line in told if isinstance(line, list)] or [["", ""]]
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code < 0, *errors[0], {line for line in told if isinstance(line, int)})


def _be_the_child(work: Callable[[Report], None], pipe: int) -> None:
    os.environ["C4_LEASE"] = str(LEASE)
    say = os.write  # before anybody disturbs it

    def tell(what: object) -> None:
        say(pipe, (json.dumps(what) + "\n").encode())

    try:
        set_stage()
        work(tell)
    except (C4Error, OSError, MemoryError) as error:
        tell([f"{type(error).__name__}: {error}", ""])
    except BaseException as error:
        tell([f"{type(error).__name__}: {error}", traceback.format_exc()])
    os._exit(0)


FILE_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.scandir"}


class Events:
    """Counts what a process does to files below a folder, and strikes at one of them."""

    def __init__(self, root: Path, strike: Callable[[str], None], at: int) -> None:
        self.root = str(root)
        self.strike = strike
        self.at = at
        self.seen = 0

    def install(self) -> None:
        """For this process, until it ends."""
        sys.addaudithook(self._hear)
        self._wrap("fsync")
        real = os.write

        def write(descriptor: int, data: Any) -> int:
            self._count("write")
            if self.seen + 1 == self.at:  # the next instant: half of it is written
                real(descriptor, memoryview(data)[: len(data) // 2])
            self._count("half a write")
            return real(descriptor, data)

        os.write = write

    def _wrap(self, name: str) -> None:
        real = getattr(os, name)

        def counted(*args: Any) -> Any:
            self._count(name)
            return real(*args)

        setattr(os, name, counted)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event in FILE_EVENTS and str(args[0]).startswith(self.root):
            self._count(event)

    def _count(self, event: str) -> None:
        self.seen += 1
        self.strike_if(event)

    def strike_if(self, event: str) -> None:
        if self.seen == self.at:
            self.strike(event)


class PowerCut(Events):
    """Takes back, before it kills, all that no fsync has made safe.

    A file whose bytes were not flushed comes out empty. A name that was made, changed or removed
    comes out as it was, if its folder was not flushed since.
    """

    def __init__(self, root: Path, at: int) -> None:
        super().__init__(root, self._cut, at)
        self._unflushed: set[str] = set()
        """Files with bytes in memory alone."""
        self._names: list[tuple[str, Callable[[], None]]] = []
        """Folders, and how to take back what was done to a name in them."""

    def install(self) -> None:
        super().install()
        self._watch("open", self._opened)
        self._watch("write", self._written)
        self._watch("rename", self._renamed)
        self._watch("unlink", self._unlinked)
        self._watch("mkdir", self._made)
        self._watch("rmdir", self._removed)
        self._watch("link", self._linked)
        self._watch("fsync", self._flushed)

    def _watch(self, name: str, note: Callable[..., Callable[[], None] | None]) -> None:
        real = getattr(os, name)

        def watched(*args: Any) -> Any:
            then = note(*args)
            result = real(*args)
            if then is not None:
                then()
            return result

        setattr(os, name, watched)

    def _remember(self, path: Any, undo: Callable[[], None]) -> Callable[[], None]:
        return lambda: self._names.append((os.path.dirname(path), undo))

    def _opened(self, path: Any, flags: int, *_: int) -> Callable[[], None] | None:
        new = flags & os.O_CREAT and not os.path.exists(path)
        return self._remember(path, lambda: _remove(path)) if new else None

    def _written(self, descriptor: int, _: Any) -> None:
        self._unflushed.add(os.readlink(f"/proc/self/fd/{descriptor}"))

    def _renamed(self, path: Any, target: Any) -> Callable[[], None]:
        before = _content(target)

        def undo() -> None:
            shutil.move(target, path)
            if before is not None:
                Path(target).write_bytes(before)

        if str(path) in self._unflushed:
            self._unflushed.add(str(target))
        return self._remember(target, undo)

    def _unlinked(self, path: Any) -> Callable[[], None] | None:
        before = _content(path)
        if before is None:
            return None
        return self._remember(path, lambda: (Path(path).write_bytes(before), None)[1])

    def _made(self, path: Any, *_: int) -> Callable[[], None]:
        return self._remember(path, lambda: shutil.rmtree(path, ignore_errors=True))

    def _removed(self, path: Any) -> Callable[[], None]:
        return self._remember(path, lambda: os.makedirs(path, exist_ok=True))

    def _linked(self, path: Any, target: Any) -> Callable[[], None]:
        if str(path) in self._unflushed:
            self._unflushed.add(str(target))
        return self._remember(target, lambda: _remove(target))

    def _flushed(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self._unflushed.discard(path)
        self._names = [(folder, undo) for folder, undo in self._names if folder != path]

    def _cut(self, _: str) -> None:
        names, files = self._names, self._unflushed
        self._names, self._unflushed, self.at = [], set(), -1  # what follows is not the job's
        for path in files:
            if os.path.exists(path):
                Path(path).write_bytes(b"")
        for _folder, undo in reversed(names):
            undo()
        die("")


def _content(path: Any) -> bytes | None:
    return Path(path).read_bytes() if os.path.isfile(path) else None


def _remove(path: Any) -> None:
    Path(path).unlink(missing_ok=True)


def die(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def findings(root: Path) -> Iterator[Finding]:
    """What a check finds below a folder."""
    for folder in find_runs(root):
        yield from check_run(folder)
    yield from check_timings(root)


def unsound(root: Path) -> list[str]:
    return [f.what for f in findings(root) if f.state is State.PROBLEM]


def leftovers(root: Path) -> list[str]:
    """Half-written files, and what workers leave that did not come to their end."""
    at_work = ("claims", "workers", "aside")
    return [str(p) for p in root.rglob("*") if p.name.endswith(".tmp") or p.name in at_work]


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file by name and bytes; timings, whose names hold the time, by their bytes."""
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            name = str(path.relative_to(root))
            if "bench" in path.parts:
                name = f"timing {zlib.crc32(path.read_bytes()):08x}"
            files[name] = path.read_bytes()
    return files


def fresh_copy(template: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(template, folder))


def prepared(job: Job, scratch: Path) -> tuple[Path, Path]:
    """A folder as a job finds it, and one as it leaves it if nobody disturbs it."""
    before, after = scratch / f"{job.name}-before", scratch / f"{job.name}-after"
    before.mkdir()
    ended = in_a_child(lambda _: job.prepare(before))
    fresh_copy(before, after)
    done = in_a_child(lambda report: job.work(after, report))
    if ended.error or done.error:
        raise RuntimeError(f"{job.name} fails undisturbed: {ended.error}{done.error}")
    return before, after
