"""A task of the harness as a task of c4: its prompts, its filter, its metric."""

import hashlib
import inspect
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, NoReturn, SupportsFloat

from c4.errors import C4Error, ConfigError
from c4.lm_eval._filters import FilterExtractor, apply_filters, cut_at, read_filter, stops_of
from c4.lm_eval._load import (
    GENERATES,
    NO_LIKELIHOODS,
    harness_errors,
    harness_seeds,
    load_task,
    no_programs,
    require_recordable,
)
from c4.tasks import Example, Family, SearchMode, Shape, Task

log = logging.getLogger(__name__)

PREFIX = "lm-eval:"
NAMED = re.compile(r"(?P<place>.+?)(?P<asked>\+[0-9a-f]{8})?")
"""A name or a YAML file, and what `C4LM` adds to the name of a run that was asked otherwise."""
SEED = 1234
"""With which the harness draws few-shot examples, unless it is told otherwise."""
LONGEST_TRIED = 300
"""Characters of each text of a document with which a metric is tried."""
LENGTH, BLOCK = 256, 32
"""Positions that are generated if a task does not say how many, and positions per block."""
LENGTH_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""What the harness's own models take for a length; the first that is given counts."""


class NoVerdictError(ConfigError):
    """A metric does not say right or wrong."""


@dataclass(frozen=True)
class HarnessTask:
    """A task of the harness, with the filter and the metric that decide."""

    name: str
    task: Any
    ensemble: Any
    extract: FilterExtractor
    shape: Shape
    """The shape that the task's requests ask for."""
    rows: Sequence[Mapping[str, Any]]
    """Every document with its prompt, few-shot examples included, as the harness builds them."""
    metric: str | None
    """The task's first metric; None where only the results of an answer name it."""

    def responses(self, text: str, doc: Any) -> Any:
        """What is left of a text after the filters."""
        answers = [cut_at(text, self.extract.until)] * self.extract.repeats
        return apply_filters([make() for make in self.ensemble.filters], answers, doc)

    def score(self, text: str, doc: Any) -> bool:
        """Whether the task's own metric gives a text 1; it must give 0 otherwise."""
        with harness_errors(f"grading {self.name}"), no_programs():
            metrics = self.task.process_results(doc, [self.responses(text, doc)])
        name = self.metric if self.metric in metrics else next(iter(metrics), None)
        value = metrics.get(name)
        if name is None:
            why = "has no metric for an answer"
        elif self.task.higher_is_better().get(name) is False:
            why = f"less is better of the metric {name}"
        elif not isinstance(value, SupportsFloat):
            why = f"the metric {name} judges all answers together"
        elif float(value) not in (0.0, 1.0):
            why = f"the metric {name} gives an answer {float(value):g}"
        else:
            return float(value) == 1.0
        raise NoVerdictError(
            f"{self.name}: {why}, and c4 needs a verdict for each answer, right (1) or wrong (0); "
            "evaluate it in the harness, with c4.lm_eval.C4LM as the model"
        )

    def require_verdicts(self) -> None:
        """Refuse a metric that says neither right nor wrong, before anything is decoded.

        Some answers to the first document are tried, among them the target with something after
        it and all that the document says, of which a metric such as F1 or BLEU counts a part.
        """
        target, doc = self.rows[0]["target"], self.rows[0]["doc"]
        tried = ("", target, f"{target} and something else", " ".join(_texts(doc)))
        failures = []
        for text in tried:
            try:
                self.score(text, doc)
            except NoVerdictError:
                raise
            except C4Error as error:  # some metrics fail on some answers, in the harness as here
                failures.append(error)
        if len(failures) == len(tried):
            raise failures[0]


def _texts(value: Any) -> Iterator[str]:
    """All texts in a document."""
    if isinstance(value, str):
        yield value[:LONGEST_TRIED]
    elif isinstance(value, Mapping | list | tuple):
        for inside in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inside)


@dataclass(frozen=True)
class HarnessJudge:
    """Grades by the harness: filter, then metric."""

    harness: HarnessTask

    def __call__(self, example: Example, answer: str, text: str) -> bool:  # noqa: ARG002
        """Whether the harness gives the text the full score."""
        number, rows = int(example.preamble), self.harness.rows
        if number >= len(rows) or rows[number]["target"] != example.target:
            raise ConfigError(
                f"{self.harness.name} has other documents now than when this was recorded"
            )
        return self.harness.score(text, rows[number]["doc"])


def find_harness_task(place: str) -> HarnessTask:
    """A task of the harness by its name or its YAML file, as `simple_evaluate` would load it.

    Its first filter reads answers, and its first metric judges them.
    """
    with harness_seeds():
        task = load_task(place)
        require_recordable(place, task)
        requests = requests_of(f"lm-eval:{place}", task)
    full = plain_name(str(task.config.task))
    ensemble = vars(task)["_filters"][0]
    kwargs = requests[0].args[1]
    with harness_errors(f"the filter {ensemble.name} of {full}"):
        extract = read_filter(
            full,
            ensemble,
            until=stops_of(kwargs),
            repeats=max(1, int(requests[0].repeats or 1)),
            version=version("lm_eval"),
        )
    rows = [_row(task, request) for request in requests]
    metric = next(iter(metric_names(task)), None)
    return HarnessTask(full, task, ensemble, extract, shape_of(kwargs), rows, metric)


def metric_names(task: Any) -> list[str]:
    """The metrics of a task, in the order of its file."""
    return list(vars(task).get("_metric_fn_list", {}))


def requests_of(name: str, task: Any) -> list[Any]:
    """What the harness asks a model about a task, one request for each document.

    Few-shot examples are drawn one document after the other, so all requests are made at once.
    """
    with harness_errors(name):
        task.set_fewshot_seed(SEED)
        requests = [_request(name, task, *numbered) for numbered in enumerate(task.eval_docs)]
    if not requests:
        raise ConfigError(f"{name} has no documents")
    asked = {(shape_of(one.args[1]), stops_of(one.args[1])) for one in requests}
    if len(asked) > 1:
        raise ConfigError(f"{name} asks for other lengths or stop strings in some documents")
    return requests


def _request(name: str, task: Any, number: int, doc: Any) -> Any:
    prompt = task.fewshot_context(
        doc,
        num_fewshot=task.config.num_fewshot or 0,
        system_instruction=None,
        apply_chat_template=False,
        fewshot_as_multiturn=False,
        chat_template=None,
        gen_prefix=task.doc_to_prefix(doc),
    )
    made = task.construct_requests(
        doc=doc,
        ctx=prompt,
        metadata=(task.config.task, number, task.config.repeats),
        apply_chat_template=False,
        chat_template=None,
    )
    requests = made if isinstance(made, list) else [made]
    if any(one.request_type != GENERATES for one in requests):
        raise ConfigError(f"{name} {NO_LIKELIHOODS}")
    if len(requests) != 1 or not isinstance(requests[0].args[0], str):
        raise ConfigError(f"{name} asks several times about one document")
    return requests[0]


def _row(task: Any, request: Any) -> dict[str, Any]:
    target = str(task.doc_to_target(request.doc))
    prompt = request.args[0]
    return {"doc_id": request.doc_id, "prompt": prompt, "target": target, "doc": request.doc}


def plain_name(task: str) -> str:
    """The name of a task's runs, in letters that every folder can have."""
    return PREFIX + re.sub(r"[^\w.:+-]+", "_", task)


def find_lm_eval_task(name: str) -> Task:
    """The task of c4 that `lm-eval:NAME` names. The harness's code and the task's own are run."""
    named = NAMED.fullmatch(name)
    place, asked = named.groups() if named else (name, None)
    if place.endswith("+until"):
        raise ConfigError(
            f"lm-eval:{name} was recorded with stop strings that are not its task's, and what "
            "gates would watch depends on them; write them into the task's file and record again"
        )
    harness = find_harness_task(place)
    harness.require_verdicts()
    _say_what_decides(harness)
    task = make_task(harness)
    if not asked:
        return task

    def rows() -> NoReturn:
        raise ConfigError(
            f"the prompts of lm-eval:{name} were made by an evaluation in the harness; its "
            "recording can be read, and to go on with it, evaluate again with c4.lm_eval.C4LM"
        )

    return replace(task, name=f"{task.name}{asked}", rows=rows)


def _say_what_decides(harness: HarnessTask) -> None:
    if harness.extract.watches_all:
        say_once(
            f"{harness.name} has no regular expression as its filter: gates watch the whole text, "
            "and stop when all of it has stopped changing"
        )
    others = {
        "filters": [str(one.name) for one in vars(harness.task)["_filters"][1:]],
        "metrics": metric_names(harness.task)[1:],
    }
    listed = "; ".join(f"other {k}: {', '.join(names)}" for k, names in others.items() if names)
    if listed:
        say_once(
            f"{harness.name}: the metric {harness.metric} after the filter "
            f"{harness.extract.filter_name} decides ({listed}; to use one, put it first in a YAML "
            "file of your own)"
        )
    warn_of_sampling(harness.name, harness.task.config.generation_kwargs or {})


@cache
def say_once(text: str) -> None:
    """Warn of something, however often a command looks at its task."""
    log.warning("%s", text)


def warn_of_sampling(name: str, kwargs: Mapping[str, Any]) -> None:
    """Say that a task that asks for random answers gets the same one each time."""
    samples = kwargs.get("do_sample")
    if samples is None:
        samples = "temperature" in kwargs
    if samples and kwargs.get("temperature", 1) != 0:
        say_once(f"{name} asks for sampling; c4 decodes greedily")


def make_task(harness: HarnessTask) -> Task:
    """A task of c4 that asks, reads and grades as the harness does."""
    # What its file says, with the source of its functions, wherever it lies.
    config = {k: value for k, value in harness.task.dump_config().items() if k != "metadata"}
    config["num_fewshot"] = config.get("num_fewshot") or 0
    text = json.dumps(config, sort_keys=True, default=_source)
    return Task(
        name=harness.name,
        family=Family.LONG_REASONING,
        rows=harness.rows,
        read=read_row,
        extract=harness.extract,
        plain=harness.extract,
        search=SearchMode.CODE,  # the filter reads the whole text, from its start
        shape=harness.shape,
        judge=HarnessJudge(harness),
        definition={
            "task": harness.name,
            "filter": repr(harness.extract),
            "config_sha256": hashlib.sha256(text.encode()).hexdigest(),
        },
    )


def read_row(row: Mapping[str, Any]) -> Example:
    """The example of a row that `HarnessTask.rows` made.

    The number of its document travels as the preamble, which only programs have otherwise.
    """
    number = str(row.get("doc_id", ""))
    return Example(prompt=row["prompt"], target=row["target"], preamble=number)


def shape_of(kwargs: Mapping[str, Any]) -> Shape:
    """As many positions as the task lets a model write, in whole blocks."""
    asked = next((int(kwargs[name]) for name in LENGTH_NAMES if kwargs.get(name)), LENGTH)
    length = -(-asked // BLOCK) * BLOCK
    return Shape(length=length, budget=length, block_length=BLOCK)


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return str(getattr(value, "__name__", ""))
