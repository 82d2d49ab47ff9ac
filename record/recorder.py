"""Recording a run: decode what is missing, and save each trajectory as it finishes."""

import errno
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import torch

from c4.decode.batch import Batch, Job
from c4.decode.commits import Predictor
from c4.decode.loop import Decoded, decode
from c4.errors import RunError
from c4.models import LoadedModel
from c4.models.batch import BatchDenoiser, padded
from c4.record.environment import programs
from c4.record.plan import Plan, encode_prompts, full_identity, load_planned, settle_batch
from c4.store.arrays import IntArray
from c4.store.cells import CellRecorder
from c4.store.locations import Location
from c4.store.manifest import Manifest, is_run, read_manifest, text_hash
from c4.store.rows import Row
from c4.store.runs import open_run
from c4.store.views import ExitGate
from c4.store.vocabulary import Vocabulary
from c4.store.writer import Decode, RunWriter, plan_parts
from c4.tasks import Ending, Family, Grade, grade
from c4.tasks.examples import Sample

log = logging.getLogger(__name__)

T = TypeVar("T")


@contextmanager
def start_recording(plan: Plan, model: LoadedModel | None = None) -> Iterator["Recording"]:
    """Lock the run's folder until the recording ends; load the model unless one is given."""
    with RunWriter(plan.folder) as writer:
        model = model or load_planned(plan)
        if plan.config.fresh or not is_run(plan.folder):
            # All prompts fit, or no old run is thrown away and no new one begun.
            encode_prompts(plan, model, plan.sample_set.samples)
        plan = settle_batch(plan, model)
        with explained_disk_errors(plan.folder):
            writer.start(make_manifest(plan, model), model.tokenizer_json, fresh=plan.config.fresh)
        _warn_of_other_versions(plan.folder)
        yield Recording(plan, model, writer)


def make_manifest(plan: Plan, model: LoadedModel) -> Manifest:
    return Manifest(
        identity=full_identity(plan, model),
        environment=_environment(plan.device),
        tokenizer_file_sha256=text_hash(model.tokenizer_json),
    )


def _warn_of_other_versions(folder: Location) -> None:
    """Warn if an earlier session had other libraries, since the last bits may then differ."""
    now = programs()["libraries"]
    # A manifest that was rebuilt may not know them.
    before = read_manifest(folder).environment.get("libraries", now)
    for name in sorted(now):
        if before.get(name) != now[name]:
            log.warning("the run was begun with %s %s, now %s", name, before.get(name), now[name])


def _environment(device: str) -> Mapping[str, Any]:
    """Where the run is made: versions, machine and time."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(device) if device.startswith("cuda") else None,
        "threads": torch.get_num_threads(),
        **programs(),
    }


class Waiting:
    """Examples that are still to be decoded, in order; a session takes them from here."""

    def __init__(self, samples: Iterable[Sample], prompts: Mapping[int, IntArray]) -> None:
        self._queues: dict[int, deque[Sample]] = defaultdict(deque)
        for sample in samples:
            self._queues[padded(len(prompts[sample.index]))].append(sample)

    def take(self, prompt: int | None = None) -> Sample | None:
        """The next example, or the next whose padded prompt has a given length; None if none is."""
        lengths = self._queues if prompt is None else [prompt]
        left = [self._queues[length] for length in lengths if self._queues[length]]
        return min(left, key=lambda queue: queue[0].index).popleft() if left else None


class Recording:
    """One session of a run: a loop that decodes and a worker that grades and writes.

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
        # All of them fit, or nothing is decoded.
        self._prompts = encode_prompts(plan, model, self._missing())

    def __len__(self) -> int:
        """Number of trajectories still to be decoded."""
        return len(self._missing())

    def __iter__(self) -> Iterator[Row]:
        with explained_disk_errors(self.plan.folder):
            yield from self._run()

    def _missing(self) -> list[Sample]:
        done = self.writer.sealed | self.writer.pending.keys()
        return [self.wanted[i] for i in sorted(self.wanted.keys() - done)]

    def _run(self) -> Iterator[Row]:
        parts = plan_parts(self.wanted.keys() - self.writer.sealed, self.plan.shape)
        part_of = {index: part for part in parts for index in part}
        missing = self._missing()
        lacks = Counter(part_of[sample.index] for sample in missing)
        # The worker writes one trajectory while the next is decoded; a second waits at most, so
        # memory stays bounded and little is lost to a kill.
        with ThreadPoolExecutor(max_workers=1) as worker:
            finishing: deque[Future[Row]] = deque()
            for decoded in self._decodes(Waiting(missing, self._prompts)):
                part = part_of[decoded.row.trajectory]
                lacks[part] -= 1
                finishing.append(worker.submit(self._finish, decoded, part, last=not lacks[part]))
                if len(finishing) > 1:
                    yield finishing.popleft().result()
            while finishing:
                yield finishing.popleft().result()
        for part in parts:
            self._seal(part)
        if self.plan.config.graded:
            self._grade_anew()

    def _decodes(self, waiting: "Waiting") -> Iterator[Decode]:
        """Take example after example, and give each as soon as it is decoded."""
        while (sample := waiting.take()) is not None:
            if self.plan.batch == 1:
                yield self._decode(sample, self.model.denoiser)
                continue
            length = padded(len(self._prompts[sample.index]))
            alike = chain([sample], iter(partial(waiting.take, length), None))
            yield from self._together(length, (partial(self._decode, s) for s in alike))

    def _together(self, prompt: int, jobs: Iterator[Job[T]]) -> Batch[T]:
        """Jobs whose prompts have one padded length, decoded in batches of the plan's size."""
        size, length = self.plan.batch or 1, self.plan.shape.length
        model = BatchDenoiser(self.model.denoiser, size=size, prompt=prompt, length=length)
        return Batch(model, jobs)

    def _decode(self, sample: Sample, predictor: Predictor) -> Decode:
        prompt = self._prompts.pop(sample.index)
        recorder = CellRecorder() if self.plan.cells else None
        start = time.perf_counter()
        decoded = self._run_method(predictor, prompt, self._gate(sample), recorder)
        wall = time.perf_counter() - start
        row = self._row(sample, prompt, decoded, wall)
        return Decode(row, recorder.cells() if recorder else None)

    def _run_method(
        self,
        predictor: Predictor,
        prompt: IntArray,
        gate: ExitGate | None,
        recorder: CellRecorder | None = None,
    ) -> Decoded:
        method = self.plan.method
        return decode(
            predictor,
            prompt,
            self.plan.shape,
            rule=method.commit_rule,
            gate=gate,
            observer=recorder,
            forward=method.forward,
        )

    def _gate(self, sample: Sample) -> ExitGate | None:
        plan, choices = self.plan, sample.example.choices
        return plan.method.new_gate(plan.task, self.vocabulary, plan.shape, choices)

    def decode_again(self, row: Row, gate: ExitGate) -> Decoded:
        """Decode a recorded example again, by the same rule but under a gate; keep nothing."""
        prompt = np.array(row.prompt_ids, dtype=np.int64)
        if self.plan.batch == 1:
            return self._run_method(self.model.denoiser, prompt, gate)
        job: Job[Decoded] = partial(self._run_method, prompt=prompt, gate=gate)
        (decoded,) = self._together(padded(len(prompt)), iter([job]))
        return decoded

    def _finish(self, decode: Decode, part: range, *, last: bool) -> Row:
        """Save a decode, and seal its part if it was the last one missing."""
        if self.plan.task.family is Family.CODE:
            # A program may take long to run, and the decode is done.
            self.writer.add(decode)
            decode = self._graded(decode)
            self.writer.replace(decode)
        else:
            decode = self._graded(decode)
            self.writer.add(decode)
        if last:
            self._seal(part)
        return decode.row

    def _seal(self, part: range) -> None:
        """Seal a part if it is complete, grading first what a kill left ungraded."""
        pending = self.writer.pending if self.plan.config.graded else {}
        for index in sorted(pending.keys() & set(part)):
            if self.writer.read_row(pending[index]).never_graded:
                left = self.writer.read_pending(pending[index])
                self.writer.replace(self._graded(left))
        self.writer.seal(part)

    def _graded(self, decode: Decode) -> Decode:
        if not self.plan.config.graded:
            return decode
        given = asdict(self._grade(decode.row)) | asdict(self.plan.config.reading)
        return replace(decode, row=replace(decode.row, **given))

    def _grade_anew(self) -> None:
        """Grade what an earlier session read in another way, so that all results compare."""
        rows = open_run(self.plan.folder, self.plan.config.reading).rows()
        other = [row for row in rows if row.trajectory in self.wanted and row.graded_otherwise]
        if other:
            given = {row.trajectory: self._grade(row) for row in other}
            self.writer.add_grades(given, self.plan.config.reading)

    def _grade(self, row: Row) -> Grade:
        config = self.plan.config
        text = self.vocabulary.text(row.final_ids, config.reading.ending)
        return grade(
            self.plan.task, row.example, text, config.reading, unsafe_code=config.unsafe_code
        )

    def _row(self, sample: Sample, prompt: IntArray, decoded: Decoded, wall: float) -> Row:
        example = sample.example
        ids = decoded.ids.tolist()
        return Row(
            trajectory=sample.index,
            source_row=sample.source_row,
            prompt=example.prompt,
            prompt_ids=prompt.tolist(),
            target=example.target,
            preamble=example.preamble,
            tests=example.tests,
            choices=list(example.choices),
            final_ids=ids,
            text=self.vocabulary.text(ids, Ending.CUT),
            answer=None,
            verdict=None,
            style=None,
            ending=None,
            grader=None,
            **asdict(self.plan.shape),
            steps=decoded.steps,
            tokens_before_end=self.vocabulary.ending(ids),
            wall_seconds=wall,
            block_steps=decoded.block_steps.tolist(),
            block_seconds=decoded.block_seconds.tolist(),
            exit_step=decoded.steps if decoded.exited else None,
            committed_by=decoded.origin.tolist(),
            commit_step=decoded.commit_step.tolist(),
            revoked=decoded.revoked,
        )

    def _check_recorded(self) -> None:
        """Refuse to continue if the same numbers now stand for other problems.

        Prompts come from code as well as from data, so no other part of the identity shows it.
        What was sealed without a grade stays so, and who asks for grades is told.
        """
        sealed, ungraded = self.writer.sealed, 0
        for row in open_run(self.plan.folder, self.plan.config.reading).rows():
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


@contextmanager
def explained_disk_errors(folder: Location) -> Iterator[None]:
    """Turn the error of a full disk into one that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise RunError(
            f"the disk is full; every finished trajectory in {folder} is safe: make room and "
            "give the same command again (without --fresh)"
        ) from error
