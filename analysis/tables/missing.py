"""Notes on what a table lacks, and the commands that would produce it."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from c4.analysis.cohorts import cohort_key, cohort_notes
from c4.analysis.library import Library
from c4.analysis.names import METHOD_LABELS
from c4.analysis.sweeps import SHOWN_IN
from c4.analysis.tables.commands import (
    RECORD,
    grade_command,
    method_options,
    reading_options,
)
from c4.store.labels import is_plain, method_name


def missing_methods(rows: pl.DataFrame, library: Library) -> list[str]:
    """What is shown as a dash, and the commands that would fill it in."""
    if rows.is_empty():
        return [f"everything: nothing is recorded below {library.root} {RECORD}"]
    notes = [*cohort_notes(library.cohorts), *sweep_notes(library), *_uneven(rows)]
    notes += not_gradable_notes(library)
    reading = reading_options(library.reading)
    for cohort in library.cohorts.filter("main").iter_rows(named=True):
        group = rows.filter(pl.col("cohort") == cohort["cohort"])
        where, again = f"{cohort['task']} on {cohort['model']}", cohort["again"]
        absent = group.filter(pl.col("steps").is_null())["method"].to_list()
        if absent:
            chosen = method_options(absent, library.typed)
            command = f"c4 run{reading} {chosen} {again} {cohort['span']}"
            notes.append(f"{where}: {', '.join(absent)} ({command})")
        present = group.filter(pl.col("steps").is_not_null())
        untimed = present.filter(pl.col("tps").is_null())["method"].to_list()
        timings = _timing_notes(untimed, f"{again} {cohort['timed']}".strip(), library)
        notes += [f"{where}: timings of {note}" for note in timings]
        notes += [f"{where}: {note}" for note in _frozen_notes(untimed, cohort, library)]
        if present["accuracy"].null_count():
            notes += [f"{where}: grades ({command})" for command in _grading(library, cohort)]
    return notes


def _frozen_notes(untimed: Sequence[str], cohort: Mapping[str, Any], library: Library) -> list[str]:
    """Frozen settings that were only replayed, and the commands that run them."""
    reading = reading_options(library.reading)
    notes = []
    for frozen in library.choice.frozen:
        if frozen.label in untimed:
            chosen = method_options([frozen.gate], library.typed)
            file = shlex.quote(str(frozen.path))
            notes.append(
                f"a live run of {frozen.label} (c4 run{reading} {chosen} --config {file} "
                f"{cohort['again']} {cohort['span']})"
            )
    return notes


def _timing_notes(untimed: Sequence[str], again: str, library: Library) -> list[str]:
    """Methods without a timing, and the commands that time them beside a baseline.

    A call takes a method once, so every variant needs one of its own; what a user's label stands
    for is the user's to say. A reading that a label names comes behind the usual one, and counts.
    """
    frozen = {setting.label for setting in library.choice.frozen}
    untimed = [label for label in untimed if label not in frozen]
    known = [label for label in untimed if _is_method(method_name(label))]
    plain = [label for label in known if is_plain(label)]
    calls = [plain, *([label] for label in known if label not in plain)]
    notes = []
    for labels in filter(None, calls):
        others = [label for label in labels if label != "baseline"]
        chosen = method_options(["baseline", *others], library.typed)
        reading = reading_options(library.reading)
        notes.append(f"{', '.join(labels)} (c4 bench{reading} {chosen} {again})")
    own = [label for label in untimed if label not in known]
    return notes + [f"{label}: c4 bench as it was run, with --label {label}" for label in own]


def _is_method(name: str) -> bool:
    """Whether a name is a method's, or a pair of a rule and a gate, and no label of a user's."""
    return name in METHOD_LABELS or "+" in name or ":" in name


def sweep_notes(library: Library) -> list[str]:
    """A note on the points of sweeps, which another figure or table shows."""
    notes = []
    for (model, task), rows in library.swept.group_by("model", "task", maintain_order=True):
        for name, command in SHOWN_IN.items():
            labels = [label for label in rows["method"] if method_name(label) == name]
            if labels:
                notes.append(
                    f"{task} on {model}: points of a sweep, shown elsewhere: {', '.join(labels)} "
                    f"({command}); run one with a --label of its own to see it in the main table"
                )
    return notes


def not_gradable_notes(library: Library) -> list[str]:
    """Runs with answers that the machine failed to grade, and the commands that try them again."""
    counts = [(run, sum(row.not_gradable for row in run.rows())) for run in library.runs]
    return [
        f"grades of {count} answers that the machine failed to grade; they count neither as right "
        f"nor as wrong ({grade_command(run, library.reading)})"
        for run, count in counts
        if count
    ]


def _grading(library: Library, cohort: dict[str, Any]) -> list[str]:
    """The commands that grade what is ungraded in a cohort."""
    return [
        grade_command(run, library.reading)
        for run in library.runs
        if cohort_key(run.manifest.identity) == cohort["cohort"]
        and any(row.never_graded for row in run.rows())
    ]


def _uneven(rows: pl.DataFrame) -> list[str]:
    """Methods whose accuracy is computed over other examples than the baseline's."""
    full = rows.filter(pl.col("method") == "baseline").select("model", "task", full="n")
    uneven = rows.join(full, on=["model", "task"]).filter(pl.col("n") != pl.col("full"))
    return [
        f"{row['task']} on {row['model']}: {row['method']} has {row['n']} examples, the baseline "
        f"{row['full']}; `c4 report paired` compares them example by example"
        for row in uneven.iter_rows(named=True)
    ]
