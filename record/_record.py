"""Recording a task, or running a method on it: decode what is missing, keep what finishes."""

import errno
import logging
import platform
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c4.errors import RunError
from c4.models import LoadedModel
from c4.record._cells import CellRecorder
from c4.record._decode import Decoded, ExitGate, decode
from c4.record._format import Manifest, open_part, read_manifest, text_hash
from c4.record._live import open_any
from c4.record._methods import LiveMethod
from c4.record._plan import Plan, encode_prompts, full_identity, load_planned
from c4.record._rows import LiveFacts, LiveRow, TrajectoryRow
from c4.record._run import pending_row
from c4.record._store import Finished, RunWriter, plan_parts, read_pending
from c4.record._text import Vocabulary
from c4.tasks import AnswerReading, Ending, Family, Grade, Sample, grade

log = logging.getLogger(__name__)

FULL = "full"
"""Why a decode ended that no gate ended."""
LIBRARIES = ("c4-dlm", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


@contextmanager
def start_recording(plan: Plan, model: LoadedModel | None = None) -> Iterator["Recording"]:
    """Take hold of the run's folder until the recording ends; load the model if there is none."""
    with RunWriter(plan.folder, plan.kinds) as writer:
        model = model or load_planned(plan)
        with explained_disk_errors(plan.folder):
            writer.start(make_manifest(plan, model), model.tokenizer_json, fresh=plan.config.fresh)
        _warn_of_other_versions(plan.folder)
        yield Recording(plan, model, writer)


def make_manifest(plan: Plan, model: LoadedModel) -> Manifest:
    return Manifest(
        identity=full_identity(plan, model),
        environment=_environment(),
        tokenizer_file_sha256=text_hash(model.tokenizer_json),
    )


def _warn_of_other_versions(folder: Path) -> None:
    """Say so if an earlier session had other libraries: numbers may differ in their last bits."""
    before, now = (e["libraries"] for e in (read_manifest(folder).environment, _environment()))
    for name in sorted(now):
        if before.get(name) != now[name]:
            log.warning("the run was begun with %s %s, now %s", name, before.get(name), now[name])


def _environment() -> Mapping[str, Any]:
    """Where numbers come from: versions, machine and time."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "threads": torch.get_num_threads(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


class Recording:
    """One session of a recording: a loop that decodes and a worker that grades and writes.

    Iterating decodes what the run lacks and gives every trajectory as soon as it is safe on
    disk. What an earlier session finished is not decoded again.
    """

    def __init__(self, plan: Plan, model: LoadedModel, writer: RunWriter) -> None:
        self.plan = plan
        self.model = model
        self.writer = writer
        self.vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
        self.wanted = {sample.index: sample for sample in plan.sample_set.samples}
        self._check_recorded()
        encode_prompts(plan, model, self._missing())  # all of them fit, or nothing is decoded

    def __len__(self) -> int:
        """Trajectories still to be decoded."""
        return len(self._missing())

    def __iter__(self) -> Iterator[TrajectoryRow]:
        with explained_disk_errors(self.plan.folder):
            yield from self._run()

    def _missing(self) -> list[Sample]:
        done = self.writer.sealed | self.writer.pending.keys()
        return [self.wanted[i] for i in sorted(self.wanted.keys() - done)]

    def _run(self) -> Iterator[TrajectoryRow]:
        parts = plan_parts(self.wanted.keys() - self.writer.sealed, self.plan.shape)
        part_of = {index: part for part in parts for index in part}
        # The worker writes one trajectory while the next is decoded; a second waits at most, so
        # memory stays bounded and little is lost to a kill.
        with ThreadPoolExecutor(max_workers=1) as worker:
            finishing: deque[Future[TrajectoryRow]] = deque()
            for sample in self._missing():
                decoded = self._decode(sample)
                finishing.append(worker.submit(self._finish, decoded, part_of[sample.index]))
                if len(finishing) > 1:
                    yield finishing.popleft().result()
            while finishing:
                yield finishing.popleft().result()
        for part in parts:
            self._seal(part)
        if self.plan.config.graded:
            self._grade_anew()

    def _decode(self, sample: Sample) -> Finished:
        plan, method = self.plan, self.plan.method
        prompt_ids = self.model.encode_prompt(sample.example.prompt)
        recorder = CellRecorder() if plan.recorded else None
        start = time.perf_counter()
        decoded = decode(
            self.model.denoiser,
            np.array(prompt_ids, dtype=np.int64),
            plan.shape,
            rule=method.rule if method else None,
            gate=self._gate(sample),
            observer=recorder,
            forward=method.forward if method else None,
        )
        wall = time.perf_counter() - start
        return Finished(
            self._row(sample, prompt_ids, decoded, wall),
            recorder.cells() if recorder else None,
            live_facts(decoded, method) if method else None,
        )

    def _gate(self, sample: Sample) -> ExitGate | None:
        plan, choices = self.plan, sample.example.choices
        if plan.method is None:
            return None
        return plan.method.new_gate(plan.task, self.vocabulary, plan.shape, choices)

    def decode_again(self, row: TrajectoryRow, gate: ExitGate) -> Decoded:
        """Decode a recorded example anew, by the same rule but under a gate; nothing is kept."""
        method = self.plan.method
        prompt = np.array(row.prompt_ids, dtype=np.int64)
        return decode(
            self.model.denoiser,
            prompt,
            self.plan.shape,
            rule=method.rule if method else None,
            gate=gate,
            forward=method.forward if method else None,
        )

    def _finish(self, finished: Finished, part: range) -> TrajectoryRow:
        """Make a decode safe, and seal its part if it was the last one missing."""
        if self.plan.task.family is Family.CODE:
            # A program may take long to run, and the decode is done.
            self.writer.add(finished)
            finished = self._graded(finished)
            self.writer.replace(finished)
        else:
            finished = self._graded(finished)
            self.writer.add(finished)
        if finished.row.trajectory == part[-1]:
            self._seal(part)
        return finished.row

    def _seal(self, part: range) -> None:
        """Seal a part if it is complete, grading first what a kill left ungraded."""
        pending = self.writer.pending if self.plan.config.graded else {}
        for index in sorted(pending.keys() & set(part)):
            if pending_row(open_part(pending[index])).correct is None:
                self.writer.replace(self._graded(read_pending(pending[index])))
        self.writer.seal(part)

    def _graded(self, finished: Finished) -> Finished:
        plan, row = self.plan, finished.row
        if not plan.config.graded:
            return finished
        given = self._grade(row)
        grades = {"answer": given.answer, "correct": given.correct, **asdict(plan.config.reading)}
        return replace(finished, row=replace(row, **grades))

    def _grade_anew(self) -> None:
        """Grade what an earlier session read otherwise, so that all results can be compared."""
        rows = open_any(self.plan.folder, self.plan.config.reading).rows()
        other = [row for row in rows if row.trajectory in self.wanted and row.graded_otherwise]
        if other:
            given = {row.trajectory: self._grade(row) for row in other}
            self.writer.add_grades(given, self.plan.config.reading)

    def _grade(self, row: TrajectoryRow | LiveRow) -> Grade:
        config = self.plan.config
        return grade(
            self.plan.task,
            row.example,
            self.vocabulary.text(row.final_ids, config.reading.ending),
            style=config.reading.style,
            unsafe_code=config.unsafe_code,
        )

    def _row(
        self, sample: Sample, prompt_ids: list[int], decoded: Decoded, wall: float
    ) -> TrajectoryRow:
        example = sample.example
        ids = decoded.ids.tolist()
        return TrajectoryRow(
            trajectory=sample.index,
            source_row=sample.source_row,
            prompt=example.prompt,
            prompt_ids=prompt_ids,
            target=example.target,
            preamble=example.preamble,
            tests=example.tests,
            choices=list(example.choices),
            final_ids=ids,
            text=self.vocabulary.text(ids, Ending.CUT),
            answer=None,
            correct=None,
            **asdict(self.plan.shape),
            forward_passes=decoded.steps,
            tokens_before_end=self.vocabulary.ending(ids),
            wall_seconds=wall,
        )

    def _check_recorded(self) -> None:
        """Refuse to go on where the same numbers now stand for other problems.

        Prompts come from code as well as from data, so no other part of the identity shows it.
        What was sealed without a grade stays so, and who asks for grades is told.
        """
        sealed, ungraded = self.writer.sealed, 0
        for row in open_any(self.plan.folder, self.plan.config.reading).rows():
            sample = self.wanted.get(row.trajectory)
            if sample is None:
                continue
            if sample.example.prompt != row.prompt:
                raise RunError(
                    f"{self.plan.folder}: example {row.trajectory} was recorded with another "
                    f"prompt than {self.plan.task.name} gives it now; use --out for a place of "
                    "its own, or --fresh to throw the old one away"
                )
            ungraded += row.never_graded and row.trajectory in sealed
        if ungraded and self.plan.config.graded:
            advice = "%d examples were made with --no-grade; grade them with: c4 grade '%s'"
            log.warning(advice, ungraded, self.plan.folder)


def live_facts(decoded: Decoded, method: LiveMethod) -> LiveFacts:
    """What a live run keeps of a decode beside its trajectory row."""
    return LiveFacts(
        block_passes=decoded.block_passes.tolist(),
        block_seconds=decoded.block_seconds.tolist(),
        exit_step=decoded.steps if decoded.exited else None,
        exit_reason=str(method.gate_name) if decoded.exited else FULL,
        committed_by=decoded.origin.tolist(),
        commit_step=decoded.commit_step.tolist(),
        revoked=decoded.revoked,
    )


@contextmanager
def explained_disk_errors(folder: Path) -> Iterator[None]:
    """A full disk, said in words."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise RunError(
            f"the disk is full; every finished trajectory in {folder} is safe: make room and "
            "give the same command again (without --fresh)"
        ) from error


@dataclass(frozen=True)
class RunSummary:
    """A run in one line."""

    task: str
    model: str
    source: str
    trajectories: int
    graded: int
    """How many of them have a grade."""
    accuracy: float | None
    """Share correct of those; None where there are none."""
    steps: float
    """Forward passes, on average."""
    wall_seconds: float
    """Decoding time of all trajectories."""
    bytes: int
    folder: Path


def summarise(
    folder: Path, indices: Collection[int] | None = None, reading: AnswerReading | None = None
) -> RunSummary:
    """The trajectories of a recording or a live run, or some of them, in one line."""
    run = open_any(folder, reading)
    count = graded = correct = passes = 0
    seconds = 0.0
    for row in run.rows():
        if indices is None or row.trajectory in indices:
            count += 1
            passes += row.forward_passes
            seconds += row.wall_seconds
            graded += row.correct is not None
            correct += bool(row.correct)
    return RunSummary(
        task=run.task,
        model=run.model,
        source=run.manifest.identity["source"],
        trajectories=count,
        graded=graded,
        accuracy=correct / graded if graded else None,
        steps=passes / max(1, count),
        wall_seconds=seconds,
        bytes=sum(size_of(path) for path in folder.rglob("*.parquet")),
        folder=folder,
    )


def size_of(path: Path) -> int:
    """A file's bytes; none if a recording has just sealed it away."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
