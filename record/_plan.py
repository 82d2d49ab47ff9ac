"""Planning a decode: everything resolved and checked before any weights are loaded."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from c4.errors import ConfigError
from c4.models import (
    EMBEDDED,
    Checkpoint,
    LoadedModel,
    find_checkpoint,
    load_model,
    resolve_device,
    resolve_dtype,
)
from c4.record._decode import RESOLUTION
from c4.record._format import live_folder, run_folder
from c4.record._methods import LiveMethod
from c4.record._store import RECORDED, RESULTS, check_identity
from c4.record._types import IntArray
from c4.tasks import (
    EMBEDDED_SOURCE,
    HUB_SOURCE,
    AnswerReading,
    Sample,
    SampleSet,
    Shape,
    Task,
    check_can_grade,
    get_task,
    load_samples,
)
from c4.tasks._load import ORDER


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
    reading: AnswerReading = field(default_factory=AnswerReading)
    """How answers are read: by the grader, and by the gate of a live method."""


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
    method: LiveMethod | None = None
    """What decodes in a live run; None is the recording of a full decode."""
    recorded: bool = True
    """Whether every step is kept."""

    @property
    def kinds(self) -> Sequence[str]:
        """What the run is sealed into."""
        results = RESULTS if self.method else ()
        return (*results, *(RECORDED if self.recorded else ()))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, as far as it is known without the weights."""
        method: dict[str, Any] = {"rule": "schedule"}
        if self.method is not None:
            method = {**self.method.identity, "recorded": self.recorded}
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
            "order": ORDER,
            "resolution": RESOLUTION,
            **method,
        }


def plan_recording(config: RecordConfig) -> Plan:
    """Plan the recording of a full decode, and check that its folder holds no other."""
    plan = plan_decode(config)
    if not config.fresh:
        check_identity(plan.folder, plan.identity)
    return plan


def plan_live(plan: Plan, method: LiveMethod, *, recorded: bool = False) -> Plan:
    """The same examples under a method, in a folder of its own."""
    folder = live_folder(plan.config.out, plan.checkpoint.name, plan.task.name, method.label)
    live = replace(plan, method=method, recorded=recorded, folder=folder)
    if not plan.config.fresh:
        check_identity(folder, live.identity)
    return live


def plan_decode(config: RecordConfig) -> Plan:
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
    return Plan(config, task, checkpoint, shape, samples, device, dtype, folder)


def full_identity(plan: Plan, model: LoadedModel) -> dict[str, Any]:
    """What decides the numbers, all of it."""
    return plan.identity | {
        "weights_sha256": model.weights_sha256,
        "tokenizer_sha256": model.tokenizer_sha256,
        "chat_template": model.tokenizer.chat_template is not None,
        "mask_id": model.denoiser.mask_id,
        "end_ids": list(model.end_ids),
        "shift": model.denoiser.shift,
    }


def encode_prompts(plan: Plan, model: LoadedModel, samples: Iterable[Sample]) -> list[IntArray]:
    """Prompts as the model reads them; one that does not fit is refused before any is decoded."""
    limit = model.max_length
    prompts = []
    for sample in samples:
        prompt = np.array(model.encode_prompt(sample.example.prompt), dtype=np.int64)
        length = len(prompt) + plan.shape.length
        if limit is not None and length > limit:
            raise ConfigError(
                f"example {sample.index} of {plan.task.name} takes {length} positions, prompt and "
                f"generation together; {plan.checkpoint.name} has {limit}"
            )
        prompts.append(prompt)
    return prompts


def resolve_shape(config: RecordConfig, task: Task, checkpoint: Checkpoint) -> Shape:
    """The user's numbers, else those the model was made for, else the paper's.

    A length of the user's own brings a full budget with it: as many steps as positions.
    """
    shape = asdict(task.shape) | dict(checkpoint.shape_for(task.family) or {})
    steps = config.length if config.steps is None else config.steps
    asked = {"length": config.length, "steps": steps, "block": config.block}
    return Shape(**shape | {key: value for key, value in asked.items() if value is not None})


def load_planned(plan: Plan) -> LoadedModel:
    """The model that a plan needs."""
    return load_model(plan.checkpoint, device=plan.device, dtype=plan.dtype)
