"""Recording a run: decode the missing examples, and save each trajectory as it finishes."""

import errno
import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch

from c4.decode.batch import Batch, Job
from c4.decode.commits import Predictor
from c4.decode.loop import Decoded, decode
from c4.errors import RunError
from c4.errors.text import counted
from c4.gates.steps import CellRecorder, ExitGate
from c4.models import LoadedModel
from c4.models.batch import BatchDenoiser, padded
from c4.record.environment import programs
from c4.record.plan import Plan, encode_prompts, full_identity, load_planned, settle_batch
from c4.store.arrays import IntArray
from c4.store.cells import Cells
from c4.store.claims import Claim, Sign, read_aside
from c4.store.locations import Location
from c4.store.manifest import ASKED, Manifest, is_run, read_manifest, text_hash
from c4.store.rows import Row
from c4.store.runs import open_run
from c4.store.writer import RunWriter, plan_parts
from c4.tasks import Ending, Family, Grade, grade
from c4.tasks.examples import Sample
from c4.tasks.vocabulary import Vocabulary

log = logging.getLogger(__name__)

T = TypeVar("T")
Finished: TypeAlias = tuple[Row, Cells | None]
"""A finished decode, with the cells of every step if the run keeps them."""


@contextmanager
def start_recording(
    plan: Plan, model: LoadedModel | None = None, sign: Sign | None = None
) -> Iterator["Recording"]:
    """Join the workers of a run, or begin the run; load the model unless one is given.

    Args:
        sign: this worker's first sign of life, for other workers and progress displays.
    """
    require_same_programs(plan)
    model = model or load_planned(plan)
    if plan.config.fresh or not is_run(plan.folder):
        # If a prompt does not fit, raise before an old run is deleted or a new one begun.
        encode_prompts(plan, model, plan.sample_set.samples)
    sign = replace(sign or Sign(), wanted=len(plan.sample_set.samples))
    with explained_disk_errors(plan.folder), RunWriter(plan.folder, sign) as writer:
        plan = _begin(settle_batch(plan, model), model, writer)
        require_same_programs(plan)
        if not sign.engine:  # an engine's command has done this for its workers
            writer.claims.retry_aside()
        yield Recording(plan, model, writer)


def _begin(plan: Plan, model: LoadedModel, writer: RunWriter) -> Plan:
    """Begin or continue the run. Returns the plan with the run's batch."""
    fresh, tokenizer = plan.config.fresh, model.tokenizer_json
    try:
        writer.start(make_manifest(plan, model), tokenizer, fresh=fresh)
    except RunError:
        settled = plan if fresh else replace(plan, batch=plan.config.batch)
        settled = settle_batch(settled, model)
        if settled.batch == plan.batch:
            raise
        # Another worker has set the run's batch in the meantime.
        plan = settled
        writer.start(make_manifest(plan, model), tokenizer)
    return plan


def make_manifest(plan: Plan, model: LoadedModel) -> Manifest:
    return Manifest(
        identity=full_identity(plan, model),
        environment=_environment(plan.device) | ({ASKED: plan.asked} if plan.asked else {}),
        tokenizer_file_sha256=text_hash(model.tokenizer_json),
    )


def require_same_programs(plan: Plan) -> None:
    """Refuse to mix GPU models or library versions: the last bits of numbers may differ."""
    if plan.config.mixed or plan.config.fresh or not is_run(plan.folder):
        return
    # A rebuilt manifest may lack these entries.
    before, now = read_manifest(plan.folder).environment, _environment(plan.device)
    differ = [
        f"  {name}: {then} there, {here} here"
        for name, then, here in (
            ("GPU", before.get("gpu", now["gpu"]), now["gpu"]),
            *(
                (name, before.get("libraries", {}).get(name, version), version)
                for name, version in sorted(now["libraries"].items())
            ),
        )
        if then != here
    ]
    if differ:
        raise RunError(
            f"{plan.folder} was begun with other devices or libraries, so that the last bits of "
            "numbers may differ:\n" + "\n".join(differ) + "\n"
            "give --mixed to continue anyway (every part records its own environment), or use "
            "--out for a place of its own"
        )


def _environment(device: str) -> dict[str, Any]:
    """Return versions, machine and time, for the manifest."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(device) if device.startswith("cuda") else None,
        "threads": torch.get_num_threads(),
        **programs(),
    }


class Waiting:
    """Examples that are still to be decoded, in order; the session claims examples from it."""

    def __init__(
        self, samples: Iterable[Sample], prompts: Mapping[int, IntArray], writer: RunWriter
    ) -> None:
        self._writer = writer
        self._left: dict[str, Sample] = {claim_name(sample.index): sample for sample in samples}
        self._lengths = {name: padded(len(prompts[s.index])) for name, s in self._left.items()}
        self._queues: dict[int, dict[str, Sample]] = defaultdict(dict)
        for name, sample in self._left.items():
            self._queues[self._lengths[name]][name] = sample

    def take(self, prompt: int | None = None) -> Sample | None:
        """Claim and return the next unfinished example; None if no example can be claimed.

        `prompt` restricts the choice to examples with this padded prompt length.
        """
        names = self._left if prompt is None else self._queues[prompt]
        while (claim := self._writer.claims.take(names)) is not None:
            sample = self._drop(claim.name)
            if not self._writer.is_finished(sample.index):
                return sample
            self._writer.claims.release(claim.name)
        return None

    def _drop(self, name: str) -> Sample:
        del self._queues[self._lengths[name]][name]
        return self._left.pop(name)

    def look(self) -> int:
        """Drop finished and set-aside examples, and count the rest, which other workers hold."""
        left = {
            claim_name(i) for i in self._writer.unfinished(s.index for s in self._left.values())
        }
        for name in [n for n in self._left if n not in left or n in self._writer.claims.aside]:
            self._drop(name)
        return len(self._left)


def claim_name(index: int) -> str:
    """Return the name of a trajectory's claim."""
    return f"{index:06d}"


def set_aside(plan: Plan) -> dict[int, str]:
    """Return the examples of a plan on which too many workers died, with the reasons."""
    wanted = plan.wanted
    return {i: why for i, why in read_aside(plan.folder).items() if i in wanted}


class Recording:
    """One worker's session of a run: a loop that decodes and a thread that grades and writes.

    Iterating decodes missing examples and yields each trajectory as soon as it is saved. It skips
    examples that are finished or that other workers decode, and ends when the run has all requested
    trajectories except those that were set aside.
    """

    def __init__(self, plan: Plan, model: LoadedModel, writer: RunWriter) -> None:
        self.plan = plan
        self.model = model
        self.writer = writer
        self.vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
        self.wanted = {sample.index: sample for sample in plan.sample_set.samples}
        if not writer.claims.sign.engine:  # an engine's command has checked it
            check_recorded(plan)
        # Raises before decoding if a prompt does not fit.
        self._prompts = encode_prompts(plan, model, self._missing())

    def __len__(self) -> int:
        """Number of trajectories still to be decoded."""
        return len(self._missing())

    def __iter__(self) -> Iterator[Row]:
        with explained_disk_errors(self.plan.folder):
            yield from self._run()

    def _missing(self) -> list[Sample]:
        return [self.wanted[i] for i in self.writer.unfinished(sorted(self.wanted))]

    def _run(self) -> Iterator[Row]:
        parts = plan_parts(self.writer.unsealed(self.wanted), self.plan.shape)
        part_of = {index: part for part in parts for index in part}
        # The thread writes one trajectory while the next is decoded. At most one more waits, so
        # memory stays bounded and a kill loses little.
        with ThreadPoolExecutor(max_workers=1) as worker:
            finishing: deque[Future[Row]] = deque()
            for decoded in self._decodes(Waiting(self._missing(), self._prompts, self.writer)):
                if decoded is not None:
                    row, cells = decoded
                    part = part_of[row.trajectory]
                    finishing.append(worker.submit(self._finish, row, cells, part))
                while len(finishing) > (decoded is not None):
                    yield finishing.popleft().result()
            while finishing:
                yield finishing.popleft().result()
        self._seal_rest()
        if self.plan.config.graded:
            self._grade_anew()

    def _decodes(self, waiting: "Waiting") -> Iterator[Finished | None]:
        """Claim and decode examples, and yield each as soon as it is decoded.

        Yields None before each wait for other workers, when they hold all remaining examples.
        """
        while True:
            while (sample := waiting.take()) is not None:
                yield from self._decode_with(sample, waiting)
            yield None
            if not (left := waiting.look()):
                return
            if not self.writer.claims.sign.problem:
                log.warning("waiting for %s that others decode", counted(left, "example"))
            self.writer.claims.note(problem=f"waits for {left} that others decode")
            time.sleep(self.writer.claims.pause)

    def _decode_with(self, sample: Sample, waiting: "Waiting") -> Iterator[Finished]:
        """Decode an example, in a batch with other examples of the same padded prompt length."""
        self.writer.claims.note(problem="")
        if self.plan.batch == 1:
            yield self._decode(sample, self.model.denoiser)
            return
        length = padded(len(self._prompts[sample.index]))
        alike = iter([sample])
        if self.writer.claims.generation(claim_name(sample.index)) == 1:
            alike = chain(alike, iter(partial(waiting.take, length), None))
        # Else a worker died of it: decode it alone, so that no other example gets the blame.
        yield from self._together(length, (partial(self._decode, s) for s in alike))

    def _together(self, prompt: int, jobs: Iterator[Job[T]]) -> Batch[T]:
        """Batch jobs whose prompts share one padded length, at the plan's batch size."""
        size, length = self.plan.batch or 1, self.plan.shape.length
        model = BatchDenoiser(self.model.denoiser, size=size, prompt=prompt, length=length)
        return Batch(model, jobs)

    def _decode(self, sample: Sample, predictor: Predictor) -> Finished:
        plan, example = self.plan, sample.example
        prompt = self._prompts.pop(sample.index)
        recorder = CellRecorder() if plan.cells else None
        start = time.perf_counter()
        try:
            gate = plan.method.new_gate(plan.task, self.vocabulary, plan.shape, example.choices)
            decoded = self._run_method(predictor, prompt, gate, recorder)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self.writer.claims.fail(claim_name(sample.index), reason)
            raise
        wall = time.perf_counter() - start
        row = Row(
            trajectory=sample.index,
            source_row=sample.source_row,
            prompt_ids=prompt.tolist(),
            **vars(example) | {"choices": list(example.choices)},
            answer=None,
            verdict=None,
            style=None,
            ending=None,
            grader=None,
            **asdict(self.plan.shape),
            **self._columns(decoded),
            wall_seconds=wall,
        )
        return row, recorder.cells() if recorder else None

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

    def decode_again(self, row: Row, gate: ExitGate) -> Row:
        """Decode a recorded example again with the same rule and a gate. Nothing is saved."""
        prompt = np.array(row.prompt_ids, dtype=np.int64)
        job: Job[Decoded] = partial(self._run_method, prompt=prompt, gate=gate)
        if self.plan.batch == 1:
            decoded = job(self.model.denoiser)
        else:
            (decoded,) = self._together(padded(len(prompt)), iter([job]))
        return replace(row, **self._columns(decoded))

    def _finish(self, row: Row, cells: Cells | None, part: range) -> Row:
        """Grade and save a decode, and seal its part if it is complete."""
        if self.plan.task.family is Family.CODE:
            # Save before grading, because the program may run for long.
            self.writer.add(row, cells)
            row = self._graded(row)
            self.writer.replace(row, cells)
        else:
            row = self._graded(row)
            self.writer.add(row, cells)
        claims = self.writer.claims
        claims.release(claim_name(row.trajectory))
        claims.note(done=claims.sign.done + 1)
        if self.writer.is_ready(part):
            with self.writer.sealing(wait=False) as claim:
                if claim is not None:
                    self._seal(part, claim)
        return row

    def _seal(self, part: range, claim: Claim) -> None:
        """Seal a part if it is complete; first grade rows that a killed worker left ungraded."""
        pending = self.writer.pending if self.plan.config.graded else {}
        for index in sorted(pending.keys() & set(part)):
            if self.writer.read_row(pending[index]).never_graded:
                row, cells = self.writer.read_pending(pending[index])
                self.writer.replace(self._graded(row), cells)
        self.writer.seal_part(part, claim)

    def _seal_rest(self) -> None:
        """Seal the remaining trajectories, in new parts that fit those sealed by other workers."""
        if self.writer.unsealed(self.wanted):
            with self.writer.sealing() as claim:
                for part in plan_parts(self.writer.unsealed(self.wanted), self.plan.shape):
                    if claim is not None:
                        self._seal(part, claim)
        self.writer.finish(self.wanted)

    def _graded(self, row: Row) -> Row:
        if not self.plan.config.graded:
            return row
        return replace(row, **asdict(self._grade(row)), **asdict(self.plan.config.reading))

    def _grade_anew(self) -> None:
        """Grade rows that were graded under another reading, so that all results are comparable."""
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

    def _columns(self, decoded: Decoded) -> dict[str, Any]:
        """Return the columns of a row that come from the decode."""
        ids = decoded.ids.tolist()
        return {
            "final_ids": ids,
            "text": self.vocabulary.text(ids, Ending.CUT),
            "steps": decoded.steps,
            "tokens_before_end": self.vocabulary.ending(ids),
            "block_steps": decoded.block_steps.tolist(),
            "block_seconds": decoded.block_seconds.tolist(),
            "exit_step": decoded.steps if decoded.exited else None,
            "committed_by": decoded.origin.tolist(),
            "commit_step": decoded.commit_step.tolist(),
            "revoked": decoded.revoked,
        }


def check_recorded(plan: Plan) -> None:
    """Refuse to continue if a recorded example's prompt differs from the task's prompt now.

    Prompts depend on code as well as on data, so the identity may not show the difference.
    Warns if grading was requested and some sealed examples have no grade.
    """
    wanted = {sample.index: sample for sample in plan.sample_set.samples}
    run, ungraded = open_run(plan.folder, plan.config.reading), 0
    for part in run.parts:
        for row in run.read_rows(part):
            sample = wanted.get(row.trajectory)
            if sample is None:
                continue
            if sample.example.prompt != row.prompt:
                raise RunError(
                    f"{plan.folder}: example {row.trajectory} was recorded with another prompt "
                    f"than {plan.task.name} gives it now; use --out for a place of its own, or "
                    "--fresh to throw the old one away"
                )
            ungraded += row.never_graded and not part.is_pending
    if ungraded and plan.config.graded:
        advice = "%d examples were made with --no-grade; grade them with: c4 grade '%s'"
        log.warning(advice, ungraded, plan.folder)


def prepare_for_workers(plans: Iterable[Plan]) -> None:
    """Prepare runs once before workers start: delete, check, and retry set-aside examples."""
    for plan in plans:
        if not is_run(plan.folder):
            continue
        with RunWriter(plan.folder) as writer:
            if plan.config.fresh:
                writer.clear()
                continue
            writer.claims.retry_aside()
        check_recorded(plan)


@contextmanager
def explained_disk_errors(folder: Location) -> Iterator[None]:
    """Turn the error of a full disk into a `RunError` with advice."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise RunError(
            f"the disk is full; every finished trajectory in {folder} is safe: make room and "
            "give the same command again (without --fresh)"
        ) from error
