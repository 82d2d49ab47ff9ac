"""A model for the harness that decodes with c4, under any method, in batches, with recording."""

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from os.path import expanduser
from pathlib import Path
from typing import Any, NoReturn

import lm_eval.models  # noqa: F401 - the harness loads its own only while no model is registered
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from c4.errors import C4Error, ConfigError, unknown_name
from c4.lm_eval._filters import FilterExtractor, cut_at, stops_of
from c4.lm_eval._load import NO_LIKELIHOODS
from c4.lm_eval._tasks import (
    PREFIX,
    HarnessJudge,
    HarnessTask,
    find_harness_task,
    make_task,
    plain_name,
    read_row,
    shape_of,
    warn_of_sampling,
)
from c4.models import LoadedModel
from c4.record import MethodChoice, Plan, RunConfig, load_planned, plan_methods, start_recording
from c4.store import Row, open_run
from c4.store.locations import parse_location
from c4.tasks import Family, SearchMode, Shape, Task
from c4.tasks.examples import TASK_SOURCE

log = logging.getLogger(__name__)

Request = Any
"""An `Instance` of the harness: a prompt, its arguments and its document."""
FROM_HARNESS = ("max_batch_size", "device", "batch_size")
"""Arguments that the harness itself adds to those of a model."""


class RawModel(LoadedModel):
    """A model whose chat template is not applied to prompts."""

    @property
    def applies_template(self) -> bool:
        """False: the harness has applied the template, or the user wants none."""
        return False

    def encode_prompt(self, prompt: str) -> list[int]:
        """Return the token ids of an unchanged text."""
        return list(self.tokenizer(prompt, add_special_tokens=False)["input_ids"])


@register_model("c4")
class C4LM(LM):  # type: ignore[misc]
    """A masked diffusion model that decodes under one of c4's methods.

    For `simple_evaluate(model=C4LM(model="tiny", method="c4"), tasks=[…])`, or `model="c4"` after
    `from c4.lm_eval import C4LM`. Likelihoods are refused: only tasks that generate text work.
    """

    def __init__(
        self,
        model: str = "tiny",
        method: str = "baseline",
        record: str | None = None,
        *,
        settings: str = "",
        batch_size: int | str | None = 1,
        gen_length: int | None = None,
        steps: int | None = None,
        block_length: int | None = None,
        device: str | None = None,
        dtype: str = "auto",
        revision: str | None = None,
        chat: bool = True,
        include: str | None = None,
        **unknown: Any,
    ) -> None:
        """Check the arguments. The model is loaded at the first request.

        Args:
            model: a name, a folder or a hub id, as for `c4 run --model`.
            method: as for `c4 run --method`.
            record: folder in which to record runs with every step; None to keep no recording.
            settings: parameters of the method in the format of `--set`, separated by semicolons.
            batch_size: number of examples decoded together; `auto` for as many as fit.
            gen_length: number of positions to generate; by default that of the model's own shape or
                of the task.
            chat: apply the model's chat template to prompts, if it has one and the harness has not
                applied it (`apply_chat_template`).
            include: the YAML file of your own task, or a folder of such files, so that gates can
                use the task's filter.
        """
        super().__init__()
        known = {name for name in unknown if name in FROM_HARNESS}
        for name in unknown.keys() - known:
            raise unknown_name("argument of c4", name, ("model", "method", "record", "settings"))
        self._config = RunConfig(
            task="",
            model=model,
            revision=None if revision is None else str(revision),
            source=TASK_SOURCE,
            skip=0,
            length=_count("gen_length", gen_length),
            budget=_count("steps", steps),
            block_length=_count("block_length", block_length),
            device=_device(device),
            dtype=dtype,
            batch=_batch(batch_size),
        )
        self._choice = MethodChoice([method], [text for text in str(settings).split(";") if text])
        self._record = None if record is None else parse_location(expanduser(str(record)))
        self._chat = chat
        self._include = None if include is None else Path(str(include))
        if self._include is not None and not self._include.exists():
            raise ConfigError(f"include={include}: no such file or folder")
        self._loaded: LoadedModel | None = None

    def generate_until(self, requests: Sequence[Request], **_: Any) -> list[str]:
        """Decode the requests, task by task, and cut each text at its request's stop strings."""
        groups: dict[tuple[str, bool, Shape, tuple[str, ...]], list[int]] = {}
        for place, request in enumerate(requests):
            prompt, kwargs = request.args
            raw = not self._chat or self._is_templated(prompt)
            key = (str(request.task_name), raw, shape_of(kwargs), stops_of(kwargs))
            groups.setdefault(key, []).append(place)
        texts: dict[int, str] = {}
        for (name, raw, _shape, _stops), places in groups.items():
            asked = [requests[place] for place in places]
            texts |= dict(zip(places, self._generate(name, asked, raw=raw), strict=True))
        return [texts[place] for place in range(len(requests))]

    def _generate(self, name: str, asked: Sequence[Request], *, raw: bool) -> list[str]:
        prompts = [request.args[0] for request in asked]
        kwargs = asked[0].args[1]
        warn_of_sampling(name, kwargs)
        place = _place_of(name, self._include)
        task = _task_for(place, name, asked)
        # The name by which another command finds the task: its file, if it has one.
        typed = f"{PREFIX}{place}{task.name.removeprefix(plain_name(name))}"
        with tempfile.TemporaryDirectory() as scratch:
            out = self._record or Path(scratch)
            graded = task.judge is not None and self._record is not None
            config = replace(self._config, task=task, out=out, graded=graded)
            (plan,) = plan_methods(config, self._choice, cells=self._record is not None)
            # Only the requested examples of the task.
            samples = [s for s in plan.sample_set.samples if s.example.prompt in prompts]
            chosen = replace(plan.sample_set, samples=samples)
            plan = replace(plan, config=replace(config, task=typed), sample_set=chosen)
            rows = self._decode(plan, raw=raw)
        by_prompt = {row.prompt: row.text for row in rows}
        return [cut_at(by_prompt[prompt], stops_of(kwargs)) for prompt in prompts]

    def _decode(self, plan: Plan, *, raw: bool) -> list[Row]:
        if self._loaded is None:
            self._loaded = load_planned(plan)
        model = self._loaded
        if raw and model.applies_template:
            model = RawModel(**{spec.name: getattr(model, spec.name) for spec in fields(model)})
        with start_recording(plan, model) as recording:
            for _ in recording:
                pass
        return list(open_run(plan.folder).rows())

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Apply the model's chat template to a conversation."""
        text = self._tokenizer.apply_chat_template(
            chat_history,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
        )
        return str(text)

    def _is_templated(self, prompt: str) -> bool:
        """Whether the harness has applied the model's chat template to a prompt.

        Looks for the text that the template puts before an answer, because the harness does not
        report it and its cache of requests may return templated prompts.
        """
        if not self._tokenizer.chat_template:
            return False
        message = {"role": "user", "content": "?"}
        before_answer = self.apply_chat_template([message]).rpartition("?")[2].strip()
        return bool(before_answer) and before_answer in prompt

    @property
    def _tokenizer(self) -> Any:
        if self._loaded is None:
            from c4.models import find_checkpoint, load_model

            checkpoint = find_checkpoint(self._config.model, self._config.revision)
            self._loaded = load_model(
                checkpoint, device=self._config.device, dtype=self._config.dtype
            )
        return self._loaded.tokenizer

    @property
    def tokenizer_name(self) -> str:
        """Key of the model's prompts in the harness's cache of requests."""
        return self._config.model.replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """Return the model's template for the harness's report."""
        return str(self._tokenizer.chat_template) if chat_template else None

    def loglikelihood(self, requests: Sequence[Request]) -> NoReturn:
        """Refuse, because a masked diffusion model has no exact likelihoods."""
        raise ConfigError(f"{requests[0].task_name} {NO_LIKELIHOODS}")

    loglikelihood_rolling = loglikelihood


def _batch(asked: int | str | None) -> int | None:
    """Parse a batch size; None for as many as fit (`auto`, `auto:4`)."""
    text = str(asked or 1)
    if text.partition(":")[0] == "auto":
        return None
    if not text.isdecimal():
        raise ConfigError(f"batch_size is a number or auto, not {text!r}")
    return int(text)


def _count(name: str, asked: int | str | None) -> int | None:
    """Parse a whole number from a command line or a configuration; None if it is None."""
    if asked is None or str(asked).isdecimal():
        return None if asked is None else int(asked)
    raise ConfigError(f"{name} is a whole number, not {asked!r}")


def _device(asked: str | None) -> str:
    """Return the requested device, or `auto` for the GPU that the harness requests without one."""
    import torch

    if asked is None or (asked.startswith("cuda") and not torch.cuda.is_available()):
        return "auto"
    return asked


def _place_of(name: str, include: Path | None) -> str:
    """Return the YAML file of a task if it is among the included files, else the task's name."""
    files = []
    if include is not None:
        files = sorted(include.rglob("*.y*ml")) if include.is_dir() else [include]
    says = re.compile(rf"^task:\s*['\"]?{re.escape(name)}['\"]?\s*$", re.MULTILINE)
    included = (str(f) for f in files if says.search(f.read_text(encoding="utf-8")))
    return next(included, name)


def _task_for(place: str, name: str, asked: Sequence[Request]) -> Task:
    """Return the harness task that contains the requests, else a task made of the requests.

    The harness task is the one that `c4 record --task lm-eval:NAME` records, so both share runs.
    Requests with another length or other stop strings than the task's file (`--gen_kwargs`) become
    a task of their own, whose length takes precedence over the model's own shape.
    """
    shape, stops = shape_of(asked[0].args[1]), stops_of(asked[0].args[1])
    try:
        harness = find_harness_task(place)
    except C4Error as error:
        log.warning("gates watch the whole text of %s: %s", name, error)
        extract = FilterExtractor(name, "", "", (), stops, 1, ())
        return _made_of(name, _rows_of(asked), extract, shape)
    is_as_in_file = (shape, stops) == (harness.shape, harness.extract.until)
    prompts = {request.args[0] for request in asked}
    if is_as_in_file and prompts <= {row["prompt"] for row in harness.rows}:
        return _judged_if_possible(make_task(harness), harness)
    read = replace(harness, extract=replace(harness.extract, until=stops))
    rows = _rows_of(asked, harness)
    named = name if stops == harness.extract.until else f"{name}+until"
    task = _made_of(named, rows, read.extract, shape, fixed_shape=shape != harness.shape)
    has_documents = all("doc_id" in row for row in rows)
    return _judged_if_possible(task, read) if has_documents else task


def _judged_if_possible(task: Task, harness: HarnessTask) -> Task:
    """Add the harness's judge to a task, or no judge if the metric does not give verdicts."""
    try:
        harness.require_verdicts()
    except C4Error as error:
        log.warning("the harness judges answers, and recordings hold no verdicts: %s", error)
        return replace(task, judge=None)
    return replace(task, judge=HarnessJudge(harness))


def _rows_of(asked: Sequence[Request], harness: HarnessTask | None = None) -> list[dict[str, Any]]:
    """Return a row for each prompt, with the target and number of its document, if known."""
    known = {} if harness is None else {repr(row["doc"]): n for n, row in enumerate(harness.rows)}
    rows = {}
    for request in asked:
        row = {"prompt": request.args[0], "target": ""}
        number = known.get(repr(request.doc))
        if harness is not None and number is not None:
            row |= {"target": harness.rows[number]["target"], "doc_id": number}
        rows[row["prompt"], number] = row
    return list(rows.values())


def _made_of(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    extract: FilterExtractor,
    shape: Shape,
    *,
    fixed_shape: bool = False,
) -> Task:
    """Make a task of some of the harness's prompts."""
    prompts = sorted({row["prompt"] for row in rows})
    asked = json.dumps([prompts, asdict(shape), extract.until])
    digest = hashlib.sha256(asked.encode()).hexdigest()[:8]
    return Task(
        name=plain_name(f"{name}+{digest}"),
        family=Family.LONG_REASONING,
        rows=rows,
        read=read_row,
        extract=extract,
        plain=extract,
        search=SearchMode.CODE,
        shape=shape,
        fixed_shape=fixed_shape,
        definition={"task": plain_name(name), "prompts": digest, "filter": repr(extract)},
    )
