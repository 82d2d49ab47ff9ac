"""Parts of the commands that tables suggest, for methods, variants and readings."""

import shlex
from collections.abc import Mapping, Sequence

from c4.store.labels import Label, reading_changes
from c4.store.run_task import task_typed
from c4.store.runs import Run
from c4.tasks import AnswerReading

RECORD = "(c4 record --task math)"


def reading_options(reading: AnswerReading) -> str:
    """The options that select a reading; none for the default one."""
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in _chosen(reading).items())


def reading_words(reading: AnswerReading) -> list[str]:
    """What a caption says of a reading; nothing of the default one."""
    return [f"{name} {value}" for name, value in _chosen(reading).items()]


def _chosen(reading: AnswerReading) -> dict[str, str]:
    """What differs from the default reading, by the option that says so."""
    chosen = {c.name: str(c.value) for c in reading_changes(reading, AnswerReading())}
    usual = reading.grader == AnswerReading().grader
    return chosen | ({} if usual else {"grader": reading.grader_name})


def grade_command(run: Run, reading: AnswerReading) -> str:
    """The command that grades what is not graded in a run."""
    words = ["c4", "grade", str(run.folder)]
    if "task" in run.manifest.identity.get("task_definition", {}):  # code, which has to be named
        words += ["--task", task_typed(run.manifest)]
    return shlex.join(words) + reading_options(reading)


def method_options(labels: Sequence[str], typed: Mapping[str, str]) -> str:
    """The options that select methods, with the settings of variants such as `c4,H=2`.

    Args:
        typed: what to type for a method whose results go by less.
    """
    words = []
    for label in map(Label.parse, labels):
        words += ["--method", typed.get(label.method, label.method)]
        for change in label.changes:
            if change.of_reading:
                words += [f"--{change.name}", str(change.value)]
            else:
                words += ["--set", f"{label.method}.{change}"]
    return shlex.join(words)
