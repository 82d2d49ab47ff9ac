"""Planning a run: everything is resolved and checked before any weights are loaded.

Only the functions that resolve devices, find a batch or load the model import torch.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from c4.decode.forward import Cache
from c4.errors import ConfigError, RunError
from c4.models import EMBEDDED, Checkpoint, find_checkpoint
from c4.record.methods import FULL_DECODE, ResolvedMethod
from c4.record.settings import MethodChoice, resolve_methods
from c4.store.arrays import IntArray
from c4.store.columns import RESOLUTION
from c4.store.labels import BASELINE
from c4.store.locations import Location
from c4.store.manifest import ROWS_ASKED, conditions, read_manifest, run_folder
from c4.store.runs import find_recorded_task
from c4.store.storage import list_folders, require_writable
from c4.store.writer import check_identity
from c4.tasks import AnswerReading, Shape, Task, load_samples, read_under
from c4.tasks.examples import EMBEDDED_SOURCE, HUB_SOURCE, ORDER, Sample, SampleSet, default_source
from c4.tasks.graders import ReadingNames
from c4.tasks.grading import check_can_grade
from c4.tasks.prompts import with_prompt

if TYPE_CHECKING:
    from c4.models import LoadedModel


TIMED_FROM = 40
"""Number of the first timed example, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The decode that a user requests. None stands for the default of the model or the task."""

    task: str | Task
    """The task itself, or its name: a built-in task, `module:object`, `file.py:object`, a YAML file
    or the task of recorded runs."""
    prompt: str | None = None
    """A file with an alternative prompt for the task."""
    model: str = EMBEDDED
    revision: str | None = None
    source: str | None = None
    """`embedded`, `hub` or a file; by default `embedded` for the embedded model, else `hub`."""
    n: int | None = None
    skip: int | None = None
    seed: int = 0
    length: int | None = None
    budget: int | None = None
    block_length: int | None = None
    device: str = "auto"
    dtype: str = "auto"
    batch: int | None = 1
    """Number of examples decoded together; None for that of an earlier session, else what fits."""
    out: Location = Path("runs")
    fresh: bool = False
    mixed: bool = False
    """Whether to continue a run that was begun on another GPU model or with other libraries."""
    elsewhere: bool = False
    """Whether other machines decode; their devices are not known here."""
    graded: bool = True
    unsafe_code: bool = False
    reading: AnswerReading = field(default_factory=AnswerReading)
    """Answer reading of the grader and the method's gate."""
    names: ReadingNames = field(default_factory=ReadingNames)
    """The user's names for the extractor and the grader of `reading`."""


@dataclass(frozen=True)
class Plan:
    """A run with everything resolved and checked, before any weights are loaded."""

    config: RunConfig
    task: Task
    checkpoint: Checkpoint
    shape: Shape
    sample_set: SampleSet
    device: str
    dtype: str
    batch: int | None = 1
    """Number of examples decoded together; None until the loaded model shows what fits."""
    method: ResolvedMethod = FULL_DECODE
    cells: bool = True
    """Whether every step is kept."""

    @property
    def folder(self) -> Location:
        """Folder of the run."""
        label = self.method.label
        return run_folder(self.config.out, self.checkpoint.name, self.task.name, label)

    @property
    def wanted(self) -> set[int]:
        """Numbers of the requested trajectories."""
        return {sample.index for sample in self.sample_set.samples}

    @property
    def asked(self) -> dict[str, str]:
        """Options that name the user's own files or modules, as typed.

        The identity omits the folders of files, but a command that repeats the run needs them.
        """
        config, own = self.config, self.task.is_own
        task = config.task.name if isinstance(config.task, Task) else config.task
        local = self.checkpoint.hub_id is None and config.model != EMBEDDED
        named = config.source not in (EMBEDDED_SOURCE, HUB_SOURCE) or not own
        typed = {
            "model": config.model if local else None,
            "task": None if own else task,
            "source": config.source if named else None,
            "prompt": config.prompt,
            "method": self.method.typed,
            ROWS_ASKED: _place_of_rows(self.task),
        }
        return {name: value for name, value in typed.items() if value is not None}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the results and is known without the weights."""
        known: dict[str, Any] = {} if self.batch is None else {"batch": self.batch}
        if not self.config.elsewhere:
            known |= {"device": self.device.partition(":")[0], "dtype": self.dtype}
        if self.task.definition:
            known["task_definition"] = dict(self.task.definition)
        return known | {
            "task": self.task.name,
            "origin": self.sample_set.origin,
            "source": self.sample_set.origin.partition(":")[0],
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "shape": asdict(self.shape),
            "seed": self.config.seed,
            "order": ORDER,
            "resolution": RESOLUTION,
            "cells": self.cells,
            **self.method.identity,
        }


def _place_of_rows(task: Task) -> str | None:
    """Location of a YAML task's rows on this machine; None if they are on the hub."""
    if "fields" not in task.definition:
        return None
    if task.hub is not None:
        return None if task.hub.dataset == task.hub.public_name else task.hub.dataset
    return str(task.rows)


def plan_recording(config: RunConfig) -> Plan:
    """Plan the recording of a full decode, and check that its folder holds no different run."""
    return plan_run(plan_decode(config), FULL_DECODE, cells=True)


def plan_methods(config: RunConfig, choice: MethodChoice, *, cells: bool = False) -> list[Plan]:
    """Plan one run per chosen method, each in its own folder, with the same examples and model."""
    base, methods = choose_methods(config, choice)
    return [plan_run(base, method, cells=cells) for method in methods]


def choose_methods(config: RunConfig, choice: MethodChoice) -> tuple[Plan, list[ResolvedMethod]]:
    """Plan the task, and resolve the chosen methods with their settings for this task and model."""
    # Check names and settings before the slow steps.
    shift = find_checkpoint(config.model, config.revision).shift
    task = named_task(config)
    methods = resolve_methods(choice, task, config.reading, shift=shift)
    base = plan_decode(config, task)
    for method in methods:
        method.commit_rule.check(base.shape, shift=shift)
    return base, methods


def plan_run(plan: Plan, method: ResolvedMethod, *, cells: bool = False) -> Plan:
    """Plan the same examples under a method, in the method's own folder.

    An existing run that keeps its cells continues to keep them.
    """
    planned = replace(plan, method=method, cells=cells)
    with suppress(RunError, KeyError):  # no run yet, or an unreadable manifest
        kept = bool(read_manifest(planned.folder).identity["cells"])
        planned = replace(planned, cells=cells or kept)
    if planned.batch is None:
        planned = replace(planned, batch=recorded_batch(planned))
    if planned.batch != 1:
        check_can_batch(planned)
    require_writable(planned.folder)
    if not plan.config.fresh:
        check_identity(planned.folder, planned.identity)
    return planned


def named_task(config: RunConfig) -> Task:
    """Return the task that a user named, with its original prompt."""
    if isinstance(config.task, Task):
        return config.task
    return find_recorded_task(config.task, config.out)


def plan_decode(config: RunConfig, task: Task | None = None) -> Plan:
    """Resolve and check everything that does not need the model's weights.

    Args:
        task: the task that the configuration names, if already found.
    """
    config.names.load()
    if config.batch is not None and config.batch < 1:
        raise ConfigError(f"--batch is at least 1, not {config.batch}")
    task = with_prompt(task or named_task(config), config.prompt)
    checkpoint = find_checkpoint(config.model, config.revision)
    shape = resolve_shape(config, task, checkpoint)
    source = config.source or default_source(task, embedded=config.model == EMBEDDED)
    read_under(task, config.reading.style)  # refuses a style that the task does not have
    if config.graded:
        check_can_grade(task, config.reading, unsafe_code=config.unsafe_code)
    samples = load_samples(task, source, seed=config.seed, skip=config.skip, n=config.n)
    device, dtype = config.device, config.dtype
    if not config.elsewhere:
        from c4.models import resolve_device, resolve_dtype  # last: they load torch

        device = resolve_device(device)
        dtype = resolve_dtype(dtype, device)
    return Plan(config, task, checkpoint, shape, samples, device, dtype, config.batch)


def timing_config(config: RunConfig, skip: int | None) -> RunConfig:
    """Skip the first 40 examples for the timing protocol, except for a user's own data or task.

    Args:
        skip: the user's choice, if any.
    """
    if skip is None:
        task = named_task(config)
        own_split = config.source in (None, EMBEDDED_SOURCE, HUB_SOURCE)
        skip = TIMED_FROM if own_split and task.is_own else 0
    return replace(config, skip=skip)


def recorded_batch(plan: Plan) -> int | None:
    """Batch of the run if it exists, else of a comparable run; None if there is none.

    The baseline comes before other methods, which are compared with it at the same batch.
    """
    own, wanted = plan.folder, conditions(plan.identity)
    baseline = own.with_name(f"method={BASELINE}")
    folders = dict.fromkeys([own, baseline, *list_folders(own.parent)])
    for folder in folders:
        try:
            recorded = read_manifest(folder).identity
        except RunError:
            continue
        alike = all(recorded.get(key) == value for key, value in wanted.items())
        if (folder == own and not plan.config.fresh) or (folder != own and alike):
            return int(recorded["batch"])
    return None


def check_can_batch(plan: Plan) -> None:
    """Refuse methods and models that can only decode one example at a time."""
    if plan.method.forward.cache is not Cache.OFF:
        raise ConfigError(
            f"{plan.method.label} keeps keys and values (forward.cache={plan.method.forward.cache}"
            "), which a batch cannot: its sequences are at different blocks; give --batch 1"
        )
    if not plan.checkpoint.native:
        raise ConfigError(
            f"{plan.checkpoint.name} is a masked language model of type "
            f"{plan.checkpoint.model_type}, which has positions and attention of its own kind "
            "that padding would change; LLaDA and Dream can be decoded in batches, this with "
            "--batch 1"
        )


def settle_batch(plan: Plan, model: "LoadedModel") -> Plan:
    """Return the plan with a batch: its own, else that of a recorded run, else what fits."""
    if plan.batch is not None:
        return plan
    batch = recorded_batch(plan)
    if batch is None:
        from c4.models.batch import find_batch, padded

        samples = plan.sample_set.samples
        longest = max(len(prompt) for prompt in encode_prompts(plan, model, samples).values())
        batch = find_batch(
            model.denoiser,
            prompt=padded(longest),
            # Room for a rule's shadow of a block, because all methods are compared at one batch.
            length=plan.shape.length + plan.shape.block_length,
            most=len(samples),
        )
    return replace(plan, batch=batch)


def full_identity(plan: Plan, model: "LoadedModel") -> dict[str, Any]:
    """Everything that determines the results, including the weights."""
    return plan.identity | {
        "weights_sha256": model.weights_sha256,
        "tokenizer_sha256": model.tokenizer_sha256,
        "chat_template": model.applies_template,
        "vocab_size": model.vocab_size,
        "mask_id": model.denoiser.mask_id,
        "end_ids": list(model.end_ids),
        "shift": model.denoiser.shift,
    }


def encode_prompts(
    plan: Plan, model: "LoadedModel", samples: Iterable[Sample]
) -> dict[int, IntArray]:
    """Encode prompts, by the number of their example.

    Raises if a prompt does not fit, before anything is decoded.
    """
    limit = model.max_length
    prompts = {}
    for sample in samples:
        prompt = np.array(model.encode_prompt(sample.example.prompt), dtype=np.int64)
        length = len(prompt) + plan.shape.length
        if limit is not None and length > limit:
            raise ConfigError(
                f"example {sample.index} of {plan.task.name} takes {length} positions, prompt and "
                f"generation together; {plan.checkpoint.name} has {limit}"
            )
        prompts[sample.index] = prompt
    return prompts


def resolve_shape(config: RunConfig, task: Task, checkpoint: Checkpoint) -> Shape:
    """Resolve the shape: the user's values, else the model's, else the task's.

    A task with `fixed_shape` comes before the model. A length without a budget gets one step per
    position.
    """
    shape = asdict(task.shape)
    if not task.fixed_shape:
        shape |= checkpoint.shape_for(task.family) or {}
    budget = config.length if config.budget is None else config.budget
    asked = {"length": config.length, "budget": budget, "block_length": config.block_length}
    return Shape(**shape | {key: value for key, value in asked.items() if value is not None})


def load_planned(plan: Plan) -> "LoadedModel":
    """Load the model that a plan needs."""
    from c4.models import load_model

    return load_model(plan.checkpoint, device=plan.device, dtype=plan.dtype)
