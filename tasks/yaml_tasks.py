"""Tasks as YAML files with lm-evaluation-harness's field names. They are data: no code is run."""

import ast
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from c4.errors import ConfigError, did_you_mean, shortened
from c4.errors.system import exists, reason, require_plain_file, user_path
from c4.tasks.prompts import Template
from c4.tasks.reading.answers import EXTRACTORS, answers
from c4.tasks.reading.plain import last_boxed, last_number
from c4.tasks.registry import find_beside
from c4.tasks.task import LETTERS, Example, Family, HubSplit, Row, Shape, Task

LARGEST_FILE = 2**20
"""Maximum size of a YAML file, in bytes."""
TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_tests", "doc_to_preamble")
SPLITS = ("split", "test_split", "validation_split")
FIELDS = (
    *("task", "dataset_path", "dataset_name", "dataset_kwargs", "data_files", *SPLITS),
    *(*TEMPLATES, "description", "extractor", "search", "family", "shape", "n", "skip"),
    *("output_type", "num_fewshot"),
)
IGNORED = (
    *("metadata", "tag", "task_alias", "training_split", "fewshot_split", "should_decontaminate"),
    "doc_to_decontamination_query",
)
"""Fields of the harness that do not affect how an example is asked or graded."""
FORMATS = (".jsonl", ".parquet")
"""Suffixes of files that hold rows."""
READERS = ("json", "parquet", "csv", "text")
"""Formats that the harness names in `dataset_path`; here the file's suffix tells the format."""
KWARGS = ("data_files", "revision")
"""Keys that `dataset_kwargs` may have."""
PLAIN_SPLIT = re.compile(r"\w[\w.-]*")
REFUSED = {
    "filter_list": "name one of c4's extractors in its place, as in `extractor: number`",
    "metric_list": "answers are graded by exact match of their normal forms; leave it out",
    "generation_kwargs": "a decode has a fixed length; write `shape: {length: 128, steps: 128, "
    "block_length: 32}`",
    "process_docs": "it names code; write the task as a Python file",
    "process_results": "it names code; write the task as a Python file, with a judge",
    "include": "a task stands in one file; copy the fields",
    "group": "a file defines one task; give --task several times",
    "fewshot_config": "the prompt is all there is; write the examples into doc_to_text",
    "repeats": "an example is decoded once; leave it out",
}
"""Fields of the harness that c4 refuses, and what to write instead."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """Reads plain data, keeps texts as they are written, and explains what it refuses.

    An unquoted `yes`, `1:30`, `010` or `1.10` is a text here, as a choice of a question should be.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            # Nested aliases can expand a few lines to gigabytes.
            raise ConfigError(
                f"line {event.start_mark.line + 1}: *{event.anchor} is an alias; write out what "
                "it stands for"
            )
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"-?(0|[1-9][0-9]*)", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"({_pattern})$"), _first)


def _refuse_function(_: Any, node: Any) -> None:
    raise ConfigError(
        f"line {node.start_mark.line + 1}: !function names code to be run, and a YAML file is "
        "data; write the task as a Python file and give --task my_task.py:TASK"
    )


_Loader.add_constructor("!function", _refuse_function)


def load_yaml_task(file: str) -> Task:
    """The task that a YAML file describes."""
    path = user_path(file)
    try:
        require_plain_file(path, LARGEST_FILE)
        fields = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    except ConfigError as error:
        raise ConfigError(f"{path}, {error}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as a task ({reason(error)})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"{path}: a task is a list of fields such as `doc_to_text: …`")
    return task_from_fields({"task": path.stem, **fields}, str(path), path.parent)


def task_from_fields(
    fields: Mapping[str, Any], where: str, folder: Path, rows: str | None = None
) -> Task:
    """The task that the fields of a YAML file describe.

    Args:
        where: name of the file in error messages.
        folder: the file's folder, where its rows are looked up first.
        rows: path of the rows when the task was recorded; used if it still exists.
    """
    try:
        _check_fields(fields)
        kept = kept_fields(fields)
        file = _data_file(fields)
        if rows is not None and exists(user_path(rows)):
            folder = Path()
            if file is None:
                fields = {**fields, "dataset_path": rows}
            else:
                file = rows
        shared = answers(str(fields["extractor"]))
        shared |= {name: fields[name] for name in ("family", "search") if name in fields}
        if "shape" in fields:
            shared["shape"] = _shape(fields["shape"])
        return Task(
            name=str(fields["task"]),
            hub=_hub(fields) if file is None else None,
            rows=None if file is None else find_beside(folder, file),
            read=_YamlRows(fields, where, shared["family"]).read,
            fixed_shape="shape" in fields,
            n=_count(fields, "n", 1),
            skip=_count(fields, "skip", 0) or 0,
            definition={"fields": kept},
            **shared,
        )
    except (ConfigError, TypeError, ValueError) as error:
        told = str(error)
        raise ConfigError(told if told.startswith(where) else f"{where}: {told}") from error


def kept_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as a manifest stores them: no ignored fields, and file names without folders."""
    kept = {name: value for name, value in fields.items() if name not in IGNORED}
    if isinstance(path := kept.get("dataset_path"), str):
        is_file = path.endswith(FORMATS)
        kept["dataset_path"] = (
            Path(path).name if is_file else HubSplit(dataset=path, split="").public_name
        )
    if kept.get("data_files") is not None:
        kept["data_files"] = _without_folders(kept["data_files"])
    kwargs = kept.get("dataset_kwargs")
    if isinstance(kwargs, dict) and kwargs.get("data_files") is not None:
        kept["dataset_kwargs"] = {**kwargs, "data_files": _without_folders(kwargs["data_files"])}
    as_json: dict[str, Any] = json.loads(json.dumps(kept))  # a manifest has no numbers as keys
    return as_json


def _without_folders(files: Any) -> Any:
    if isinstance(files, dict):
        return {split: _without_folders(file) for split, file in files.items()}
    if isinstance(files, list):
        return [_without_folders(file) for file in files]
    return Path(files).name if isinstance(files, str) else files


def _check_fields(fields: Mapping[str, Any]) -> None:
    for name in fields:
        if name in REFUSED:
            raise ConfigError(f"{name}: {REFUSED[name]}; or use --task lm-eval:NAME")
        if name not in FIELDS and name not in IGNORED:
            near = did_you_mean(str(name), FIELDS) or f"there are {', '.join(FIELDS)}"
            raise ConfigError(f"no field {name!r}; {near}")
    for name in ("doc_to_text", "doc_to_target", "extractor"):
        if fields.get(name) is None:
            what = f" (one of {', '.join(EXTRACTORS)})" if name == "extractor" else ""
            raise ConfigError(f"it lacks {name}{what}")
    if ":" in str(fields["task"]):  # as in lm-eval:gsm8k
        raise ConfigError(
            f"task: {fields['task']!r} has a colon, as tasks of other programs have; give it "
            "another name"
        )
    if not isinstance(fields["doc_to_text"], str):
        raise ConfigError("doc_to_text is the name of a field, or a Jinja template")
    if fields.get("output_type", "generate_until") != "generate_until":
        raise ConfigError(
            f"output_type {fields['output_type']} scores likelihoods, and a diffusion model has "
            "none to compare; only generate_until can be decoded"
        )
    if fields.get("num_fewshot") not in (None, 0):
        raise ConfigError("num_fewshot: write the examples into doc_to_text, or use lm-eval:NAME")


def _shape(given: Any) -> Shape:
    if not isinstance(given, dict):
        raise ConfigError("shape has the keys length, steps and block_length")
    sizes = {"budget" if key == "steps" else key: value for key, value in given.items()}
    sizes.setdefault("budget", sizes.get("length"))
    if sizes.keys() != {"length", "budget", "block_length"} or not all(
        type(size) is int for size in sizes.values()
    ):
        raise ConfigError("shape needs whole numbers for length, steps and block_length")
    return Shape(**sizes)


def _count(fields: Mapping[str, Any], name: str, least: int) -> int | None:
    value = fields.get(name)
    if value is not None and (type(value) is not int or value < least):
        raise ConfigError(f"{name} is a whole number from {least} on, not {value!r}")
    return value


def _data_file(fields: Mapping[str, Any]) -> str | None:
    """The local file with the rows, as the task names it; None if they are on the hub."""
    kwargs, path, split = _kwargs(fields), fields.get("dataset_path"), _split(fields)
    given = [f for f in (fields.get("data_files"), kwargs.get("data_files")) if f is not None]
    if isinstance(path, str) and path.endswith(FORMATS):
        given.append(path)
    if not given:
        return None
    if len(given) > 1:
        raise ConfigError("data_files and dataset_path name several files; leave all but one out")
    files = given[0]
    if path not in (None, *READERS) and path != files:
        raise ConfigError(
            f"dataset_path {path} would be ignored, because data_files names a local file; "
            "leave one of them out"
        )
    if "revision" in kwargs:
        raise ConfigError("dataset_kwargs: a revision is of a data set on the hub, not of a file")
    files = _of_split(files, split)
    if isinstance(files, list) and len(files) == 1:
        files = files[0]
    if not isinstance(files, str):
        raise ConfigError(f"data_files names one file, not {files!r}")
    return files


def _of_split(files: Any, split: str | None) -> Any:
    """Return the files of a split if they are listed by split; else `files` itself."""
    if split is not None and not PLAIN_SPLIT.fullmatch(split):
        raise ConfigError(f"split {split}: a file is read whole; give n and skip instead")
    if not isinstance(files, dict):
        return files
    there = ", ".join(map(str, files)) or "none"
    if split is None and len(files) > 1:
        raise ConfigError(f"data_files has several splits; choose with split: one of {there}")
    if split is not None and split not in files:
        raise ConfigError(f"data_files has no split {split}; there are {there}")
    return next(iter(files.values()), None) if split is None else files[split]


def _kwargs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `dataset_kwargs`; unknown keys are errors."""
    given = fields.get("dataset_kwargs") or {}
    if not isinstance(given, dict):
        raise ConfigError(f"dataset_kwargs has names with values, and is no {given!r}")
    kwargs = {name: value for name, value in given.items() if value is not None}
    if kwargs.pop("trust_remote_code", False):
        raise ConfigError("dataset_kwargs: trust_remote_code: code of a data set is never run")
    for name in kwargs:
        if name not in KWARGS:
            raise ConfigError(
                f"dataset_kwargs: {name} would be ignored; there are {' and '.join(KWARGS)}"
            )
    return kwargs


def _split(fields: Mapping[str, Any]) -> str | None:
    return next((str(fields[name]) for name in SPLITS if fields.get(name)), None)


def _hub(fields: Mapping[str, Any]) -> HubSplit:
    split = _split(fields)
    if not isinstance(fields.get("dataset_path"), str) or split is None:
        raise ConfigError(
            "where are its rows? Give dataset_path and split for the hub, or data_files for a "
            ".jsonl or .parquet file"
        )
    config, revision = fields.get("dataset_name"), _kwargs(fields).get("revision")
    return HubSplit(
        dataset=fields["dataset_path"],
        split=split,
        config=config and str(config),
        revision=revision and str(revision),
    )


class _YamlRows:
    """Turns rows into examples with the file's templates."""

    def __init__(self, fields: Mapping[str, Any], where: str, family: Family) -> None:
        self.extractor = str(fields["extractor"])
        self.description = str(fields.get("description") or "")
        self.templates = {name: fields[name] for name in TEMPLATES if fields.get(name) is not None}
        self.compiled = {
            name: Template(value, f"{where}, {name}")
            for name, value in self.templates.items()
            if isinstance(value, str)
        }
        if family is Family.CODE and "doc_to_tests" not in self.templates:
            raise ConfigError("it lacks doc_to_tests, the program that an answer must pass")

    def read(self, row: Row) -> Example | None:
        choices = self._choices(row)
        return Example(
            prompt=self.description + str(self._value("doc_to_text", row)),
            target=self._target(row, choices),
            preamble=str(self._value("doc_to_preamble", row) or ""),
            tests=str(self._value("doc_to_tests", row) or ""),
            choices=choices,
        )

    def _value(self, name: str, row: Row, words: Collection[str] = ()) -> Any:
        """A rendered template, a value of the row, or a constant that the file gives for every row.

        Args:
            words: single words to take literally; any other single word names a field of the row.
        """
        given = self.templates.get(name)
        if not isinstance(given, str):
            return given
        if given in row:
            return row[given]
        word = given.strip()
        if word.isidentifier() and word not in words:
            there = did_you_mean(word, map(str, row)) or f"there are {', '.join(map(str, row))}"
            raise ConfigError(
                f"{self.compiled[name].where}: the row has no field {word!r}; {there} (the word "
                f"itself is written {{{{{word!r}}}}})"
            )
        return self.compiled[name].render(row)

    def _choices(self, row: Row) -> tuple[str, ...]:
        found = self._value("doc_to_choice", row)
        if found is None:
            return ()
        if isinstance(found, str):  # a template renders a list as Python source
            try:
                found = ast.literal_eval(found.strip())
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
                raise ValueError(
                    f"doc_to_choice gives {shortened(found)!r}, which cannot be read as a list; "
                    "write ['one', 'two'] with quotes, or name a field that holds a list"
                ) from error
        if not isinstance(found, list | tuple) or not 0 < len(found) <= len(LETTERS):
            raise ValueError(f"doc_to_choice gives {found!r}, not a list of at most {len(LETTERS)}")
        return tuple(str(choice).strip() for choice in found)

    def _target(self, row: Row, choices: tuple[str, ...]) -> str:
        letters = (*LETTERS, *LETTERS.lower()) if self.extractor == "letter" else ()
        target = self._value("doc_to_target", row, (*choices, *letters))
        text = str(target).strip()
        if choices and self._is_number(target, text, row):
            if not text.isdecimal() or int(text) >= len(choices):
                raise ValueError(
                    f"doc_to_target gives {text}, and choices are numbered from 0 to "
                    f"{len(choices) - 1}; a choice whose text is a number is given by a field that "
                    "holds the text"
                )
            text = LETTERS[int(text)] if self.extractor == "letter" else choices[int(text)]
        elif self.extractor == "letter":
            return _letter(text, choices)
        if self.extractor == "number" and (number := last_number(text)):
            return number.value
        if self.extractor == "boxed" and r"\boxed" in text and (box := last_boxed(text)):
            return box.value
        return text

    def _is_number(self, target: Any, text: str, row: Row) -> bool:
        """Whether the target is the number of a choice, by the harness's rule.

        An integer is one, and so are digits that a template renders. Digits in a text field of a
        row are not, as they may be the text of a choice.
        """
        if isinstance(target, int):
            return not isinstance(target, bool)
        return text.isdecimal() and self.templates["doc_to_target"] not in row


def _letter(target: str, choices: tuple[str, ...]) -> str:
    """The letter of the right choice, which a row may give by its letter, number or text."""
    if target in choices and not (len(target) == 1 and target in LETTERS):
        return LETTERS[choices.index(target)]
    if target.isdecimal() and int(target) < min(len(choices) or len(LETTERS), len(LETTERS)):
        return LETTERS[int(target)]
    if len(target) == 1 and target.upper() in LETTERS[: len(choices) or None]:
        return target.upper()
    raise ValueError(
        f"doc_to_target gives {target!r}: not a letter, nor the number or text of a choice"
    )
