"""Parts of the commands that tables suggest, for methods, variants and readings."""

import shlex
from collections.abc import Sequence

from c4.store.labels import Label, reading_changes
from c4.tasks import AnswerReading

RECORD = "(c4 record --task math)"


def reading_options(reading: AnswerReading) -> str:
    """The options that select a reading; none for the default one."""
    changes = reading_changes(reading, AnswerReading())
    return "".join(f" --{change.name} {change.value}" for change in changes)


def method_options(labels: Sequence[str]) -> str:
    """The options that select methods, with the settings of variants such as `c4,H=2`."""
    words = []
    for label in map(Label.parse, labels):
        words += ["--method", label.method]
        for change in label.changes:
            if change.of_reading:
                words += [f"--{change.name}", str(change.value)]
            else:
                words += ["--set", f"{label.method}.{change}"]
    return shlex.join(words)
