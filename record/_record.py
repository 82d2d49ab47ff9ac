"""Recording a task: plan it, decode what is missing, keep every trajectory as it finishes."""

import errno
import logging
import platform
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c4.errors import RunError
from c4.models import (
    EMBEDDED,
    Checkpoint,
    LoadedModel,
    find_checkpoint,
    load_model,
    resolve_device,
    resolve_dtype,
)
from c4.record._cells import CellRecorder, Cells
from c4.record._decode import RESOLUTION, Decoded, decode
from c4.record._format import Manifest, run_folder
from c4.record._rows import TrajectoryRow
from c4.record._run import open_run
from c4.record._store import RunWriter, check_identity, plan_parts
from c4.record._text import Vocabulary
from c4.tasks import (
    EMBEDDED_SOURCE,
    HUB_SOURCE,
    Sample,
    SampleSet,
    Shape,
    Task,
    check_can_grade,
    get_task,
    grade,
    load_samples,
)

log = logging.getLogger(__name__)

LIBRARIES = ("c4-dlm", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """What to record, as a user asks for it. None means: what the model or the task brings."""

    task: str
    model: str = EMBEDDED
    revision: str | None = None
    source: str | None = None
    """`embedded`, `hub` or a file; the embedded problems for the embedded model, else the hub."""
    n: int | None = None
    skip: int | None = None
    seed: int = 0
    length: int | None = None
    steps: int | None = None
    block: int | None = None
    device: str = "auto"
    dtype: str = "auto"
    out: Path = Path("runs")
    fresh: bool = False
    graded: bool = True
    unsafe_code: bool = False


@dataclass(frozen=True)
class Plan:
    """A recording with everything resolved and checked, before any weights are loaded."""

    config: RecordConfig
    task: Task
    checkpoint: Checkpoint
    shape: Shape
    sample_set: SampleSet
    device: str
    dtype: str
    folder: Path

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, as far as it is known without the weights."""
        return {
            "task": self.task.name,
            "origin": self.sample_set.origin,
            "source": self.sample_set.origin.partition(":")[0],
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "device": self.device.partition(":")[0],
            "dtype": self.dtype,
            "shape": asdict(self.shape),
            "seed": self.config.seed,
            "rule": "schedule",
        }


def plan_recording(config: RecordConfig) -> Plan:
    """Resolve and check everything that can be without loading the model."""
    task = get_task(config.task)
    checkpoint = find_checkpoint(config.model, config.revision)
    shape = resolve_shape(config, task, checkpoint)
    device = resolve_device(config.device)
    source = config.source or (EMBEDDED_SOURCE if config.model == EMBEDDED else HUB_SOURCE)
    if config.graded:
        check_can_grade(task, unsafe_code=config.unsafe_code)
    samples = load_samples(task, source, seed=config.seed, skip=config.skip, n=config.n)
    folder = run_folder(config.out, checkpoint.name, task.name)
    dtype = resolve_dtype(config.dtype, device)
    plan = Plan(config, task, checkpoint, shape, samples, device, dtype, folder)
    if not config.fresh:
        check_identity(folder, plan.identity)
    return plan


def resolve_shape(config: RecordConfig, task: Task, checkpoint: Checkpoint) -> Shape:
    """The user's numbers, else those the model was made for, else the paper's.

    A length of the user's own brings a full budget with it: as many steps as positions.
    """
    shape = asdict(task.shape) | dict(checkpoint.shape_for(task.family) or {})
    steps = config.length if config.steps is None else config.steps
    asked = {"length": config.length, "steps": steps, "block": config.block}
    return Shape(**shape | {key: value for key, value in asked.items() if value is not None})


@contextmanager
def start_recording(plan: Plan) -> Iterator["Recording"]:
    """Load the model and take hold of the run's folder until the recording ends."""
    with RunWriter(plan.folder) as writer:
        model = load_model(plan.checkpoint, device=plan.device, dtype=plan.dtype)
        writer.start(make_manifest(plan, model), model.tokenizer_json, fresh=plan.config.fresh)
        yield Recording(plan, model, writer)


def make_manifest(plan: Plan, model: LoadedModel) -> Manifest:
    identity = plan.identity | {
        "weights_sha256": model.weights_sha256,
        "tokenizer_sha256": model.tokenizer_sha256,
        "chat_template": model.tokenizer.chat_template is not None,
        "mask_id": model.denoiser.mask_id,
        "end_ids": list(model.end_ids),
        "shift": model.denoiser.shift,
    }
    return Manifest(identity=identity, environment=_environment(), resolution=RESOLUTION)


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
        wanted = {sample.index: sample for sample in plan.sample_set.samples}
        unsealed = wanted.keys() - writer.sealed
        self.parts = plan_parts(unsealed, plan.shape)
        self.todo = [wanted[i] for i in sorted(unsealed - writer.pending.keys())]

    def __len__(self) -> int:
        return len(self.todo)

    def __iter__(self) -> Iterator[TrajectoryRow]:
        # The worker writes one trajectory while the next is decoded; a second waits at most, so
        # memory stays bounded and little is lost to a kill.
        with ThreadPoolExecutor(max_workers=1) as worker:
            finishing: deque[Future[TrajectoryRow]] = deque()
            for sample in self.todo:
                finishing.append(worker.submit(self._finish, sample, *self._decode(sample)))
                if len(finishing) > 1:
                    yield _result(finishing.popleft())
            while finishing:
                yield _result(finishing.popleft())
            for part in self.parts:
                self.writer.seal(part)

    def _decode(self, sample: Sample) -> tuple[list[int], Decoded, Cells, float]:
        prompt_ids = self.model.encode_prompt(sample.example.prompt)
        recorder = CellRecorder()
        start = time.perf_counter()
        decoded = decode(
            self.model.denoiser,
            np.array(prompt_ids, dtype=np.int64),
            self.plan.shape,
            observer=recorder,
        )
        return prompt_ids, decoded, recorder.cells(), time.perf_counter() - start

    def _finish(
        self, sample: Sample, prompt_ids: list[int], decoded: Decoded, cells: Cells, wall: float
    ) -> TrajectoryRow:
        """Grade a decode and make it safe; seal its part if it was the last one missing."""
        row = self._row(sample, prompt_ids, decoded, wall)
        self.writer.add(row, cells)
        part = next(part for part in self.parts if row.trajectory in part)
        if row.trajectory == part[-1]:
            self.writer.seal(part)
        return row

    def _row(
        self, sample: Sample, prompt_ids: list[int], decoded: Decoded, wall: float
    ) -> TrajectoryRow:
        plan, example = self.plan, sample.example
        ids = decoded.ids.tolist()
        text = self.vocabulary.text(ids)
        answer, correct = None, None
        if plan.config.graded:
            graded = grade(plan.task, example, text, unsafe_code=plan.config.unsafe_code)
            answer, correct = graded.answer, graded.correct
        return TrajectoryRow(
            trajectory=sample.index,
            source_row=sample.source_row,
            prompt=example.prompt,
            prompt_ids=prompt_ids,
            target=example.target,
            preamble=example.preamble,
            tests=example.tests,
            final_ids=ids,
            text=text,
            answer=answer,
            correct=correct,
            **asdict(plan.shape),
            forward_passes=decoded.steps,
            tokens_before_end=self.vocabulary.ending(ids),
            wall_seconds=wall,
        )


def _result(future: Future[TrajectoryRow]) -> TrajectoryRow:
    try:
        return future.result()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(
                f"the disk is full ({error.filename}); every finished trajectory is safe: make "
                "room and give the same command again"
            ) from error
        raise


@dataclass(frozen=True)
class RunSummary:
    """A recording in one line."""

    task: str
    model: str
    source: str
    trajectories: int
    accuracy: float | None
    """Share correct; None where nothing was graded."""
    steps: float
    """Forward passes, on average."""
    wall_seconds: float
    """Decoding time of all trajectories."""
    bytes: int
    folder: Path


def summarise(folder: Path, indices: Collection[int] | None = None) -> RunSummary:
    """The trajectories of a run, or some of them, in one line."""
    run = open_run(folder)
    rows = [row for row in run.rows() if indices is None or row.trajectory in indices]
    grades = [row.correct for row in rows if row.correct is not None]
    return RunSummary(
        task=run.task,
        model=run.model,
        source=run.manifest.identity["source"],
        trajectories=len(rows),
        accuracy=sum(grades) / len(grades) if grades else None,
        steps=sum(row.forward_passes for row in rows) / max(1, len(rows)),
        wall_seconds=sum(row.wall_seconds for row in rows),
        bytes=sum(path.stat().st_size for path in folder.rglob("*.parquet")),
        folder=folder,
    )
