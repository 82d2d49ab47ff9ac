"""Harness tasks as c4 tasks, with the harness's prompts, filter and metric."""

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
"""A name or YAML file, and the suffix that `C4LM` adds for requests unlike the task's own."""
SEED = 1234
"""The harness's default seed for drawing few-shot examples."""
LONGEST_TRIED = 300
"""Maximum length of each text of a document in the trial of a metric, in characters."""
LENGTH, BLOCK = 256, 32
"""Default number of generated positions, and positions per block."""
LENGTH_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""Arguments that the harness's own models accept as a length; the first one given is used."""


class NoVerdictError(ConfigError):
    """A metric that does not give a verdict of right or wrong."""


@dataclass(frozen=True)
class HarnessTask:
    """A harness task, with the filter and the metric that decide the verdict."""

    name: str
    task: Any
    ensemble: Any
    extract: FilterExtractor
    shape: Shape
    """The shape of the task's requests."""
    rows: Sequence[Mapping[str, Any]]
    """Every document with its target and its prompt, which includes the few-shot examples."""
    metric: str | None
    """The task's first metric; None if only the results of grading an answer name it."""

    def responses(self, text: str, doc: Any) -> Any:
        """Apply the stop strings and the filters to a text."""
        answers = [cut_at(text, self.extract.until)] * self.extract.repeats
        return apply_filters([make() for make in self.ensemble.filters], answers, doc)

    def score(self, text: str, doc: Any) -> bool:
        """Whether the task's own metric is 1 for a text. Raises if it is neither 0 nor 1."""
        with harness_errors(f"grading {self.name}"), no_programs():
            metrics = self.task.process_results(doc, [self.responses(text, doc)])
        name = self.metric if self.metric in metrics else next(iter(metrics), None)
        value = metrics.get(name)
        if name is None:
            why = "has no metric for an answer"
        elif self.task.higher_is_better().get(name) is False:
            why = f"lower is better for the metric {name}"
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
        """Refuse a metric that does not give verdicts, before anything is decoded.

        Tries some answers to the first document. Two of them, the target with a suffix and all
        texts of the document, get partial credit from metrics such as F1 or BLEU.
        """
        target, doc = self.rows[0]["target"], self.rows[0]["doc"]
        tried = ("", target, f"{target} and something else", " ".join(_texts(doc)))
        failures = []
        for text in tried:
            try:
                self.score(text, doc)
            except NoVerdictError:
                raise
            except C4Error as error:  # some metrics fail on some answers, also in the harness
                failures.append(error)
        if len(failures) == len(tried):
            raise failures[0]


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a document, shortened."""
    if isinstance(value, str):
        yield value[:LONGEST_TRIED]
    elif isinstance(value, Mapping | list | tuple):
        for inside in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inside)


@dataclass(frozen=True)
class HarnessJudge:
    """Grades with the harness's filter and metric."""

    harness: HarnessTask

    def __call__(self, example: Example, answer: str, text: str) -> bool:  # noqa: ARG002
        """Whether the harness's metric gives the text 1."""
        number, rows = int(example.preamble), self.harness.rows
        if number >= len(rows) or rows[number]["target"] != example.target:
            raise ConfigError(
                f"{self.harness.name} has other documents now than when this was recorded"
            )
        return self.harness.score(text, rows[number]["doc"])


def find_harness_task(place: str) -> HarnessTask:
    """Load a harness task by its name or its YAML file, as `simple_evaluate` would load it.

    Its first filter extracts the answers, and its first metric grades them.
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
    """Return the names of a task's metrics, in the order of its file."""
    return list(vars(task).get("_metric_fn_list", {}))


def requests_of(name: str, task: Any) -> list[Any]:
    """Build the harness's requests for a task, one for each document.

    Builds all of them, because the few-shot examples of a document depend on earlier draws.
    """
    with harness_errors(name):
        task.set_fewshot_seed(SEED)
        requests = [_request(name, task, *numbered) for numbered in enumerate(task.eval_docs)]
    if not requests:
        raise ConfigError(f"{name} has no documents")
    asked = {(shape_of(one.args[1]), stops_of(one.args[1])) for one in requests}
    if len(asked) > 1:
        raise ConfigError(f"{name} uses different lengths or stop strings for different documents")
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
    """Return the name of a task's runs, in characters that every file system allows."""
    return PREFIX + re.sub(r"[^\w.:+-]+", "_", task)


def find_lm_eval_task(name: str) -> Task:
    """Return the c4 task for `lm-eval:NAME`. This runs code of the harness and of the task."""
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
    """Log a warning only once per process."""
    log.warning("%s", text)


def warn_of_sampling(name: str, kwargs: Mapping[str, Any]) -> None:
    """Warn that a task that asks for sampling is decoded greedily."""
    samples = kwargs.get("do_sample")
    if samples is None:
        samples = "temperature" in kwargs
    if samples and kwargs.get("temperature", 1) != 0:
        say_once(f"{name} asks for sampling; c4 decodes greedily")


def make_task(harness: HarnessTask) -> Task:
    """Make a c4 task with the harness's prompts, filter and metric."""
    # The content of its file and the source of its functions, independent of their location.
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
    """Convert a row of `HarnessTask.rows` into an example.

    The preamble, which otherwise only code tasks use, holds the number of the document.
    """
    number = str(row.get("doc_id", ""))
    return Example(prompt=row["prompt"], target=row["target"], preamble=number)


def shape_of(kwargs: Mapping[str, Any]) -> Shape:
    """Return the shape for the task's maximum length, rounded up to whole blocks."""
    asked = next((int(kwargs[name]) for name in LENGTH_NAMES if kwargs.get(name)), LENGTH)
    length = -(-asked // BLOCK) * BLOCK
    return Shape(length=length, budget=length, block_length=BLOCK)


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return str(getattr(value, "__name__", ""))
