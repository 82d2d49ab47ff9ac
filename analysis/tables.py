"""Build the tables of the paper from a `Library`, one function per table."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from c4.analysis.cohorts import cohort_key, cohort_notes, pool_note
from c4.analysis.library import Library
from c4.analysis.paired import paired_table
from c4.analysis.paper import beside, published_model, unlike_paper
from c4.analysis.paper_names import (
    METHOD_LABELS,
    METHOD_LADDER,
    in_order,
    is_of,
    method_kind,
    method_label,
    task_label,
)
from c4.analysis.phases import phase_summary
from c4.analysis.render import Column, ReportTable, without_dashes, without_unpublished
from c4.analysis.stabilization import stabilization_summary
from c4.analysis.sweeps import SHOWN_IN, WINO_GRID, scaling_table, wino_table
from c4.errors import unknown_name
from c4.store.labels import method_name, reading_changes
from c4.tasks import AnswerReading

REPORT_GATES = ("confidence", "stability", "prophet", "sched", "cvee")
"""Gates that a report replays over recordings."""
MAIN_METHODS = ("baseline", "prophet", "sched", "slowfast", "klass", "wino", "c4")
"""Methods that always have a row in the main table."""
RECORD = "run: c4 record --task math"

NAMES = [Column("model", "model"), Column("label", "task"), Column("method_label", "method")]
NUMBERS = [
    Column("accuracy", "accuracy %", 1),
    Column("steps", "steps", 1),
    Column("saving", "saving %", 1),
    Column("tps", "TPS", 1),
    Column("speedup", "speedup ×", 2),
]
PAPER_NUMBERS = [Column(f"paper_{c.key}", f"paper: {c.heading}", c.decimals) for c in NUMBERS]
TIMED = [Column("timed", "timed, n×passes"), Column("cv", "CV %", 1)]
"""Columns on how speeds were measured."""


@dataclass(frozen=True)
class Published:
    """Source and columns of the published numbers for a table."""

    name: str
    keys: list[str]
    columns: list[Column]
    any_shape: bool = False


def make_report(
    names: Sequence[str], library: Library, *, paper: bool, everything: bool = True
) -> list[ReportTable]:
    """Build the tables of the named reports; `all` means every report.

    Args:
        paper: add the published numbers to rows that measure the same thing.
        everything: give methods that were not run a row of dashes.
    """
    for name in names:
        if name not in REPORTS and name != "all":
            raise unknown_name("report", name, [*REPORTS, "all"])
    wanted = [make for name in REPORTS if {name, "all"} & set(names) for make in REPORTS[name]]
    tables = [without_unpublished(make(library, paper)) for make in wanted]
    if not everything:
        tables = [without_dashes(table) for table in tables]
    if chosen := _chosen_reading(library.reading):
        read_as = ", ".join(f"{name} {value}" for name, value in chosen.items())
        suffix = f" (answers read under {read_as})"
        tables = [replace(table, caption=table.caption + suffix) for table in tables]
    return tables


def main_report(library: Library, paper: bool) -> ReportTable:
    """Accuracy, steps and speed of every method except those that only the ablation has."""
    rungs = set(METHOD_LADDER) - set(MAIN_METHODS) - {"cvee"}
    totals = library.main_totals
    totals = totals.filter(~is_of(totals["method"], rungs))
    caption = "Accuracy, steps and speed of every method"
    return _methods_table("main", caption, totals, MAIN_METHODS, library, paper)


def ablation_report(library: Library, paper: bool) -> ReportTable:
    """The ablation from the baseline to C⁴, one addition per method, with variants."""
    totals = library.main_totals
    totals = totals.filter(is_of(totals["method"], METHOD_LADDER))
    caption = "Ablation: each method adds one thing to the one before"
    return _methods_table("ablation", caption, totals, METHOD_LADDER, library, paper)


def _methods_table(
    name: str,
    caption: str,
    totals: pl.DataFrame,
    expected: Sequence[str],
    library: Library,
    paper: bool,
) -> ReportTable:
    """Build a table with a row for every method of every task.

    Args:
        expected: methods that get a row of dashes if they were not run.
    """
    keys = ["model", "task", "family", "cohort", "pool"]
    rows = totals.with_columns(pl.col("accuracy", "saving") * 100)
    dashes = rows.select(keys).unique(maintain_order=True)
    dashes = dashes.join(pl.DataFrame({"method": expected}), how="cross")
    rows = dashes.join(rows, on=[*keys, "method"], how="full", coalesce=True)
    rows = in_order(rows.with_columns(pl.col("past").fill_null(False)))
    rows = _with_speed(rows, library)
    columns = [*NAMES, *_counts(rows), *NUMBERS, *TIMED, Column("how", "how")]
    missing = _missing_methods(rows, library)
    table = ReportTable(name, caption, columns, rows, missing, "accuracy")
    theirs = Published(name, ["task", "method"], PAPER_NUMBERS)
    return _finished(table, library, theirs if paper else None)


def paired_report(library: Library, paper: bool) -> ReportTable:
    """Every method against the baseline of its cohort, on the same examples."""
    rows = paired_table(library.main_outcomes).with_columns(pl.col("identical") * 100)
    columns = [
        *NAMES,
        *_counts(rows),
        Column("b", "b"),
        Column("c", "c"),
        Column("p", "p", 3, never_zero=True),
        Column("difference", "Δ accuracy, points", 1, signed=True, points=True),
        Column("low", "95% low", 1, signed=True, points=True),
        Column("high", "95% high", 1, signed=True, points=True),
        Column("identical", "identical %", 1),
    ]
    theirs = [
        Column("paper_b", "paper: b", 0),
        Column("paper_c", "paper: c", 0),
        Column("paper_p", "paper: p", 3, never_zero=True),
        Column("paper_difference", "paper: Δ, points", 1, signed=True, points=True),
        Column("paper_identical", "paper: identical %", 1),
    ]
    caption = (
        "Each method against full decoding, example by example: b only the baseline is right, c "
        "only the method; McNemar's exact test; paired bootstrap interval"
    )
    missing = [*cohort_notes(library.cohorts), *_sweep_notes(library), *_failed_grades(library)]
    missing += [] if rows.height else [f"a method beside the baseline ({RECORD})"]
    table = ReportTable("paired", caption, columns, rows, missing, "difference")
    published = Published("paired", ["task", "method"], theirs)
    return _finished(table, library, published if paper else None)


def stabilization_report(library: Library, paper: bool) -> ReportTable:
    """Two rows per task: the progress by which 50% and 90% of its answers have settled."""
    columns = [
        *NAMES[:2],
        Column("n", "n"),
        Column("share", "p", 1),
        Column("s_p", "s_p", 2, subject=True),
        Column("low", "95% low", 2),
        Column("high", "95% high", 2),
        Column("appeared", "first shown", 2),
        Column("never", "never settle"),
    ]
    caption = (
        "Progress by which a share p of the answers has settled for good, and by which it "
        "first appeared"
    )
    rows, missing = stabilization_summary(library.settling), _missing_recordings(library)
    table = ReportTable("stabilization", caption, columns, rows, missing)
    theirs = Published("stabilization", ["task", "share"], [Column("paper_s_p", "paper: s_p", 2)])
    return _finished(table, library, theirs if paper else None)


def phases_report(library: Library, _: bool) -> ReportTable:
    """Exits of gates against stabilization, per gate and task. The paper has no such table."""
    rows = in_order(phase_summary(library.phases).rename({"gate": "method"}))
    rows = rows.with_columns(pl.col("fired", "premature") * 100)
    columns = [
        *NAMES,
        Column("n", "n"),
        Column("fired", "stopped %", 1),
        Column("exit", "mean exit", 2),
        Column("stabilization", "mean s_j", 2),
        Column("never", "never settle"),
        Column("premature", "premature %", 1),
        Column("early_by", "early by", 2),
    ]
    caption = (
        "Where gates stop against where answers settle, in progress; premature exits are a share "
        "of the answers that settle"
    )
    missing = _missing_recordings(library)
    return _finished(ReportTable("phases", caption, columns, rows, missing), library)


def scaling_report(library: Library, paper: bool) -> ReportTable:
    """A row for every method and shape, for tasks with several shapes or runs with a cache."""
    totals = library.totals.with_columns(pl.col("accuracy", "saving") * 100)
    rows = _with_speed(scaling_table(totals), library)
    letters = {"length": "L", "budget": "T", "block_length": "B", "blocks": "N"}
    shape = [Column(key, letter) for key, letter in letters.items()]
    columns = [*NAMES[:2], *shape, NAMES[2], *_counts(rows), *NUMBERS, *TIMED]
    missing = []
    if rows.is_empty():
        missing.append(
            "a second shape of some task, below the same folder "
            "(run: c4 run --method baseline --method c4 --task gsm8k --gen-length 144 "
            "--out runs/144)"
        )
    if "c4,cache=dual" not in rows["method"]:
        missing.append(
            "C4 + DualCache "
            "(run: c4 run --method c4 --method fast-dllm --task gsm8k --set cache=dual)"
        )
    missing += _failed_grades(library)
    table = ReportTable("scaling", "Methods under every shape", columns, rows, missing, "accuracy")
    keys = ["task", "length", "block_length", "method"]
    theirs = Published("scaling", keys, PAPER_NUMBERS, any_shape=True)
    return _finished(table, library, theirs if paper else None, library.cohorts)


def wino_report(library: Library, paper: bool) -> ReportTable:
    """WINO alone, with CVEE as deployed, and with the best setting of CVEE within tolerance."""
    rows = wino_table(library.wino_totals)
    names = {"wino": "WINO", "deployed": "+ CVEE", "best": "+ CVEE, best that holds"}
    numbers = [
        Column(f"{kind}_{what}", f"{name}: {what}{unit}", 1)
        for kind, name in names.items()
        for what, unit in (("accuracy", " %"), ("steps", ""))
    ]
    theirs = [Column(f"paper_{c.key}", f"paper: {c.heading}", 1) for c in numbers]
    rows = rows.with_columns(pl.col([f"{kind}_accuracy" for kind in names]) * 100)
    columns = [*NAMES[:2], *numbers, Column("settings", "settings tried")]
    caption = (
        f"CVEE on WINO's sampler; its {len(WINO_GRID)} settings are replayed where WINO's steps "
        "are recorded"
    )
    ran = library.main_totals.filter(method="wino")
    unswept = ran.join(rows.filter(pl.col("settings") > 1), on="cohort", how="anti")
    missing = [
        f"{task} on {model}: settings of CVEE on WINO "
        f"(run: {_command('run', task, ['wino'])} --cells --fresh)"
        for model, task in unswept.select("model", "task").iter_rows()
    ]
    if ran.is_empty():
        missing = ["WINO with its steps (run: c4 run --method wino --task gsm8k --cells)"]
    missing += _failed_grades(library)
    table = ReportTable("wino-cvee", caption, columns, rows, missing)
    return _finished(table, library, Published("wino_cvee", ["task"], theirs) if paper else None)


def calibration_report(library: Library, paper: bool) -> ReportTable:
    """Cost of calibrations: a row for every calibration file."""
    rows = library.calibrations
    columns = [
        Column("model", "model"),
        Column("gate", "gate"),
        Column("pool", "pool"),
        Column("trajectories", "n"),
        Column("forward_passes", "forward passes"),
        Column("decode_seconds", "decoding s", 1),
        Column("settings", "settings tried"),
        Column("search_seconds", "search s", 2),
        Column("chosen", "chosen"),
        Column("worst_drop", "worst drop, points", 1, points=True),
    ]
    caption = "What calibrations cost: the pool is decoded once, and then every setting is replayed"
    if paper:
        named = rows.with_columns(method=pl.col("gate").replace({"cvee": "c4"}))
        rows = beside(named, "calibration", ["method"])
        caption += _reasons(rows.select("model", "pool", "unlike_paper").iter_rows())
        columns.append(Column("paper_seconds", "paper: s", 0))
    missing = [] if rows.height else ["a calibration (run: c4 calibrate --gamma 2)"]
    return ReportTable("calibration", caption, columns, rows, missing)


REPORTS: dict[str, list[Callable[[Library, bool], ReportTable]]] = {
    "main": [main_report],
    "ablation": [ablation_report],
    "paired": [paired_report],
    "stabilization": [stabilization_report, phases_report],
    "scaling": [scaling_report, wino_report],
    "calibration": [calibration_report],
}
"""Functions that build the tables of each report, called with the library and `paper`."""


def _finished(
    table: ReportTable,
    library: Library,
    paper: Published | None = None,
    cohorts: pl.DataFrame | None = None,
) -> ReportTable:
    """Add the names that the paper uses, a note on the pool and the published numbers.

    Args:
        cohorts: cohorts that the table shows; the main ones if None.
    """
    note = pool_note(library.cohorts.filter("main") if cohorts is None else cohorts)
    caption = f"{table.caption} ({note})" if note else table.caption
    rows, columns = table.rows, table.columns
    if paper is not None:
        models, reasons = {}, []
        for cohort in library.cohorts.join(rows, on="cohort", how="semi").iter_rows(named=True):
            why = unlike_paper(cohort, any_shape=paper.any_shape)
            models[cohort["cohort"]] = None if why else published_model(cohort["model"])
            reasons.append((cohort["model"], cohort["task"], why))
        model = pl.col("cohort").replace_strict(models, default=None, return_dtype=pl.String())
        rows = beside(rows.with_columns(paper=model), paper.name, paper.keys)
        caption += _reasons(reasons)
        columns = [*columns, *paper.columns]
    names = {"label": ("task", task_label), "method_label": ("method", method_label)}
    rows = rows.with_columns(
        pl.col(key).map_elements(name, return_dtype=pl.String).alias(column)
        for column, (key, name) in names.items()
        if key in rows.columns
    )
    return replace(table, caption=caption, columns=columns, rows=rows)


def _reasons(reasons: Iterable[tuple[str, str, str | None]]) -> str:
    """End of a caption: models and tasks without published numbers, and the reasons."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for model, task, why in reasons:
        if why:
            tasks.setdefault((model, why), []).append(task)
    told = [f"{', '.join(names)} on {model} ({why})" for (model, why), names in tasks.items()]
    return f"; without the paper's numbers: {'; '.join(told)}" if told else ""


def _counts(rows: pl.DataFrame) -> list[Column]:
    """Columns for the number of examples and, if there are any, of ungradable answers."""
    failed = rows["not_gradable"].sum() if rows.height else 0
    return [Column("n", "n"), *([Column("not_gradable", "not gradable")] if failed else [])]


def _with_speed(rows: pl.DataFrame, library: Library) -> pl.DataFrame:
    """Add to each row the timing of its method, or nulls."""
    speeds = library.bench.select("cohort", "method", "tps", "timed", "cv", "speedup")
    return rows.join(speeds, on=["cohort", "method"], how="left", maintain_order="left")


def _chosen_reading(reading: AnswerReading) -> dict[str, str]:
    """Options that differ from the default reading, with their values."""
    chosen = {c.name: str(c.value) for c in reading_changes(reading, AnswerReading())}
    usual = reading.grader == AnswerReading().grader
    return chosen | ({} if usual else {"grader": reading.grader_name})


def reading_options(reading: AnswerReading) -> str:
    """Command-line options that select a reading; empty for the default one."""
    chosen = _chosen_reading(reading)
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in chosen.items())


def _command(name: str, task: str, labels: Sequence[str]) -> str:
    """Command that runs or times methods on a task, without options of the recording.

    User-defined labels are left out, since they do not say which method they stand for.
    """
    kinds = dict.fromkeys(method_kind(label) for label in labels)
    methods = [kind for kind in kinds if kind in METHOD_LABELS or "+" in kind or ":" in kind]
    words = [word for method in methods for word in ("--method", method)]
    return shlex.join(["c4", name, *words, "--task", task])


def _missing_recordings(library: Library) -> list[str]:
    """Notes on cohorts that are not shown and, if nothing is recorded, on what to record."""
    notes = cohort_notes(library.cohorts)
    return notes if library.settling.height else [*notes, f"recordings ({RECORD})"]


def _missing_methods(rows: pl.DataFrame, library: Library) -> list[str]:
    """Notes on cells that are dashes, with the commands that fill them in."""
    if rows.is_empty():
        return [f"everything: nothing is recorded below {library.root} ({RECORD})"]
    notes = [*cohort_notes(library.cohorts), *_sweep_notes(library)]
    full = rows.filter(method="baseline").select("model", "task", full="n")
    uneven = rows.join(full, on=["model", "task"]).filter(pl.col("n") != pl.col("full"))
    notes += [
        f"{row['task']} on {row['model']}: {row['method']} has {row['n']} examples, the baseline "
        f"{row['full']}; `c4 report paired` compares them example by example"
        for row in uneven.iter_rows(named=True)
    ]
    notes += _failed_grades(library)
    keys = ["model", "task", "cohort"]
    for (model, task, cohort), group in rows.group_by(keys, maintain_order=True):
        where = f"{task} on {model}"
        ran = pl.col("steps").is_not_null()
        absent = group.filter(~ran)["method"].to_list()
        untimed = group.filter(ran, pl.col("tps").is_null())["method"].to_list()
        if absent:
            command = _command("run", task, absent)
            notes.append(f"{where}: {', '.join(absent)} (run: {command})")
        if untimed:
            command = _command("bench", task, ["baseline", *untimed])
            notes.append(f"{where}: timings of {', '.join(untimed)} (run: {command})")
        if group.filter(ran)["accuracy"].null_count():
            notes += [
                f"{where}: grades (run: {shlex.join(['c4', 'grade', str(run.folder)])})"
                for run in library.runs
                if cohort_key(run.manifest.identity) == cohort
                and any(row.never_graded for row in run.rows())
            ]
    return notes


def _sweep_notes(library: Library) -> list[str]:
    """Notes on points of sweeps, which other tables or figures show."""
    notes = []
    for (model, task), rows in library.swept.group_by("model", "task", maintain_order=True):
        for name, command in SHOWN_IN.items():
            labels = [label for label in rows["method"] if method_name(label) == name]
            if labels:
                notes.append(
                    f"{task} on {model}: points of a sweep, shown elsewhere: {', '.join(labels)} "
                    f"(run: {command}); run one with a --label of its own to see it in the main "
                    "table"
                )
    return notes


def _failed_grades(library: Library) -> list[str]:
    """Notes on runs with answers that could not be graded, with the commands that retry."""
    counts = [(run, sum(row.not_gradable for row in run.rows())) for run in library.runs]
    return [
        f"grades of {count} answers that the machine failed to grade; they count neither as right "
        f"nor as wrong (run: {shlex.join(['c4', 'grade', str(run.folder)])})"
        for run, count in counts
        if count
    ]
