"""A task of the harness as a task of c4: its prompts, its filter, its metric."""

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, SupportsFloat

from c4.errors import ConfigError, unknown_name
from c4.lm_eval._filters import FilterExtractor, cut_at, read_filter
from c4.lm_eval._load import harness_errors, load_task, no_programs, require_recordable
from c4.tasks import Example, Family, SearchMode, Shape, Task

log = logging.getLogger(__name__)

PREFIX = "lm-eval:"
NAMED = re.compile(r"(.+?\.ya?ml|[^:]+)(?::(.+))?")
"""A name or a YAML file, and a filter."""
SEED = 1234
"""With which the harness draws few-shot examples, unless it is told otherwise."""
LENGTH, BLOCK = 256, 32
"""Positions that are generated if a task does not say how many, and positions per block."""

NO_VERDICT = (
    "and c4 needs a verdict for each answer, right (1) or wrong (0); evaluate it in the harness, "
    "with c4.lm_eval.C4LM as the model and without `record`"
)


@dataclass(frozen=True)
class HarnessTask:
    """A task of the harness, with one of its filters."""

    name: str
    task: Any
    ensemble: Any
    extract: FilterExtractor

    @property
    def shape(self) -> Shape:
        """The shape that the task's file asks for."""
        return shape_of(self.task.config.generation_kwargs or {})

    @property
    def metric(self) -> str | None:
        """The metric that decides; None where only the results of an answer name it."""
        return next(iter(_metric_names(self.task)), None)

    def require_upward(self, metric: str | None) -> None:
        """Refuse a metric of which less is better: it has no full score."""
        with harness_errors(self.name):
            is_upward = self.task.higher_is_better().get(metric)
        if is_upward is False:
            raise ConfigError(f"less is better of the metric {metric} of {self.name}, {NO_VERDICT}")

    def rows(self) -> list[dict[str, Any]]:
        """Every document with its prompt, few-shot examples included, as the harness builds them.

        Few-shot examples are drawn one document after the other, so all prompts are made at once.
        """
        with harness_errors(self.name):
            self.task.set_fewshot_seed(SEED)
            return [self._row(number, doc) for number, doc in enumerate(self.task.eval_docs)]

    def _row(self, number: int, doc: Mapping[str, Any]) -> dict[str, Any]:
        prompt = self.task.fewshot_context(
            doc,
            num_fewshot=self.task.config.num_fewshot or 0,
            gen_prefix=self.task.doc_to_prefix(doc),
        )
        if not isinstance(prompt, str):
            raise ConfigError(f"{self.name} gives several prompts for one document")
        target = str(self.task.doc_to_target(doc))
        return {"doc_id": number, "prompt": prompt, "target": target, "doc": dict(doc)}

    def responses(self, text: str, doc: Mapping[str, Any]) -> Any:
        """What is left of a text after the filters."""
        filtered: Any = [[cut_at(text, self.extract.until)] * self.extract.repeats]
        for make in self.ensemble.filters:
            filtered = make().apply(filtered, [doc])
        return next(iter(filtered))

    def score(self, text: str, doc: Mapping[str, Any]) -> bool:
        """Whether the task's own metric gives a text 1; it must give 0 otherwise."""
        with harness_errors(f"grading {self.name}"), no_programs():
            metrics = self.task.process_results(doc, [self.responses(text, doc)])
        name = next((n for n in _metric_names(self.task) if n in metrics), next(iter(metrics)))
        self.require_upward(name)
        value, metric = metrics[name], f"the metric {name} of {self.name}"
        if not isinstance(value, SupportsFloat):
            raise ConfigError(f"{metric} judges all answers together, {NO_VERDICT}")
        if float(value) not in (0.0, 1.0):
            raise ConfigError(f"{metric} gives an answer {float(value):g}, {NO_VERDICT}")
        return float(value) == 1.0


def _metric_names(task: Any) -> list[str]:
    listed = task.config.metric_list or []
    return [str(one.get("metric")) for one in listed if isinstance(one, dict)]


@dataclass(frozen=True)
class HarnessJudge:
    """Grades by the harness: filter, then metric."""

    harness: HarnessTask
    rows: Sequence[Mapping[str, Any]]

    def __call__(self, example: Example, answer: str, text: str) -> bool:  # noqa: ARG002
        """Whether the harness gives the text the full score."""
        number = int(example.preamble)
        if number >= len(self.rows) or self.rows[number]["target"] != example.target:
            raise ConfigError(
                f"{self.harness.name} has other documents now than when this was recorded"
            )
        return self.harness.score(text, self.rows[number]["doc"])


def find_harness_task(name: str) -> HarnessTask:
    """A task of the harness by `NAME`, `NAME:FILTER` or the path of a YAML file."""
    split = NAMED.fullmatch(name)
    if split is None:
        raise ConfigError(f"write lm-eval:NAME or lm-eval:NAME:FILTER, not lm-eval:{name}")
    wanted, filter_name = split[1], split[2] or ""
    task = load_task(wanted)
    require_recordable(wanted, task)
    with harness_errors(f"lm-eval:{name}"):
        ensembles = {str(one.name): one for one in vars(task)["_filters"]}
    if filter_name and filter_name not in ensembles:
        raise unknown_name("filter", filter_name, ensembles)
    ensemble = ensembles[filter_name] if filter_name else next(iter(ensembles.values()))
    full = plain_name(str(task.config.task), filter_name)
    extract = read_filter(task, full, ensemble, version("lm_eval"))
    if extract.regex is None:
        log.warning(
            "%s has no regular expression as its filter: gates watch the whole text, and stop when "
            "all of it has stopped changing",
            full,
        )
    return HarnessTask(full, task, ensemble, extract)


def plain_name(task: str, filter_name: str = "") -> str:
    """What runs of a task go by: letters that every folder can have."""
    full = ":".join(filter(None, [task, filter_name]))
    return PREFIX + re.sub(r"[^\w.:+-]+", "_", full)


def find_lm_eval_task(name: str) -> Task:
    """The task of c4 that `lm-eval:NAME` names. The harness's code and the task's own are run."""
    harness = find_harness_task(name)
    harness.require_upward(harness.metric)
    return make_task(harness, harness.rows())


def make_task(harness: HarnessTask, rows: Sequence[Mapping[str, Any]]) -> Task:
    """A task of c4 that asks, reads and grades as the harness does."""
    return Task(
        name=harness.name,
        family=Family.LONG_REASONING,
        rows=rows,
        read=read_row,
        extract=harness.extract,
        plain=harness.extract,
        search=SearchMode.CODE,  # the filter reads the whole text, from its start
        shape=harness.shape,
        judge=HarnessJudge(harness, rows),
        definition={
            "task": harness.name,
            "filter": repr(harness.extract),
            "config_sha256": config_hash(harness.task),
        },
    )


def read_row(row: Mapping[str, Any]) -> Example:
    """The example of a row that `HarnessTask.rows` made.

    The number of its document travels as the preamble, which only programs have otherwise.
    """
    return Example(prompt=row["prompt"], target=row["target"], preamble=str(row["doc_id"]))


def shape_of(kwargs: Mapping[str, Any]) -> Shape:
    """As many positions as the task lets a model write, in whole blocks."""
    asked = int(kwargs.get("max_gen_toks") or kwargs.get("max_new_tokens") or LENGTH)
    length = -(-asked // BLOCK) * BLOCK
    return Shape(length=length, budget=length, block_length=BLOCK)


def config_hash(task: Any) -> str:
    """A hash of what a task's file says; functions in it count by name."""
    config = task.dump_config()
    text = json.dumps(config, sort_keys=True, default=lambda value: getattr(value, "__name__", ""))
    return hashlib.sha256(text.encode()).hexdigest()
