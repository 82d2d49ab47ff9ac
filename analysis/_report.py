"""The paper's tables, from what is on disk."""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from c4.analysis._cohorts import cohort_key, cohort_notes, pool_note
from c4.analysis._exits import phase_summary
from c4.analysis._library import Library
from c4.analysis._names import (
    METHOD_LABELS,
    in_order,
    method_label,
    name_column,
    task_label,
)
from c4.analysis._paired import paired_table
from c4.analysis._published import beside, published_model, unlike_paper
from c4.analysis._render import Column, ReportTable, without_unpublished
from c4.analysis._stabilization import stabilization_summary
from c4.analysis._sweeps import SHOWN_IN, WINO_GRID, scaling_table, wino_table
from c4.errors import unknown_name
from c4.store.labels import method_name, reading_words
from c4.tasks import AnswerReading

MAIN_METHODS = ("baseline", "prophet", "sched", "slowfast", "klass", "wino", "c4")
LADDER = ("baseline", "confidence", "stability", "cvee", "cctc-core", "cctc", "c4")
REPLAYED = ("confidence", "stability", "prophet", "sched", "cvee")
"""Gates that a report replays where there are no live results."""

NAMES = [Column("model", "model"), Column("label", "task"), Column("method_label", "method")]
NUMBERS = [
    Column("accuracy", "accuracy %", 1),
    Column("steps", "steps", 1),
    Column("saving", "saving %", 1),
    Column("tps", "TPS", 1),
    Column("speedup", "speedup ×", 2),
]
TIMED = [Column("timed", "timed, n×passes"), Column("cv", "CV %", 1)]
"""How speeds were measured."""
RECORD = "(c4 record --task math)"
READING_OPTIONS = ("reading", "ending")
"""What a label says about its gate's reading is an option of its own, no `--set`."""


def make_report(names: Sequence[str], library: Library, *, paper: bool) -> list[ReportTable]:
    """Tables by the names of their reports; `all` is every one. Empty tables say what is missing.

    Args:
        paper: put the published numbers beside one's own, where these are of the same thing.
    """
    for name in names:
        if name not in REPORTS and name != "all":
            raise unknown_name("report", name, [*REPORTS, "all"])
    wanted = [make for name, make in REPORTS.items() if name in names or "all" in names]
    tables = [without_unpublished(table) for make in wanted for table in make(library, paper)]
    options = reading_options(library.reading)
    if not options:
        return tables
    return [replace(table, caption=f"{table.caption} (read under{options})") for table in tables]


def reading_options(reading: AnswerReading) -> str:
    """What to add to a command for a reading; nothing for the default one."""
    words = reading_words(reading, AnswerReading())
    return "".join(f" --{word.replace('=', ' ')}" for word in words)


def _main(library: Library, paper: bool) -> list[ReportTable]:
    caption = "Accuracy, steps and speed of every method"
    return [_methods_table("main", caption, library, MAIN_METHODS, paper, ladder=False)]


def _ablation(library: Library, paper: bool) -> list[ReportTable]:
    caption = "Component ladder: each rung adds one thing"
    return [_methods_table("ablation", caption, library, LADDER, paper, ladder=True)]


def _methods_table(
    name: str,
    caption: str,
    library: Library,
    methods: Sequence[str],
    paper: bool,
    *,
    ladder: bool,
) -> ReportTable:
    totals = library.main_totals
    if ladder:
        totals = totals.filter(name_column().is_in(methods))
    else:  # what else was run is shown too, rungs of the ladder are not
        rungs = set(LADDER) - set(methods) - {"cvee"}
        totals = totals.filter(~name_column().is_in(rungs))
    rows = _with_speed(_with_expected(_percent(totals), methods), library.bench)
    columns = [*NAMES, Column("n", "n"), *NUMBERS, *TIMED, Column("how", "how")]
    caption = _with_pool(caption, library)
    if paper:
        rows, caption = _with_paper(rows, caption, name, ["task", "method"], library)
        columns += _paper_columns(NUMBERS)
    missing = _missing_methods(rows, library)
    return ReportTable(name, caption, columns, _labelled(rows), missing, "accuracy")


def _with_pool(caption: str, library: Library, *, every: bool = False) -> str:
    """A caption that says what part the calibration pool plays in the cohorts of a table."""
    note = pool_note(library.cohorts if every else library.cohorts.filter("main"))
    return f"{caption} ({note})" if note else caption


def _with_paper(
    rows: pl.DataFrame,
    caption: str,
    table: str,
    keys: list[str],
    library: Library,
    *,
    any_shape: bool = False,
) -> tuple[pl.DataFrame, str]:
    """Rows with the published numbers beside those of the same thing, and why not beside all."""
    shown = library.cohorts.join(rows, on="cohort", how="semi")
    models, reasons = {}, []
    for cohort in shown.iter_rows(named=True):
        why = unlike_paper(cohort, any_shape=any_shape)
        models[cohort["cohort"]] = None if why else published_model(cohort["model"])
        reasons.append((cohort["model"], cohort["task"], why))
    paper = pl.col("cohort").replace_strict(models, default=None, return_dtype=pl.String())
    rows = beside(rows.with_columns(paper=paper), table, keys)
    return rows, _with_reasons(caption, reasons)


def _with_reasons(caption: str, reasons: Iterable[tuple[str, str, str | None]]) -> str:
    """A caption that says beside which models and tasks no published numbers stand, and why."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for model, task, why in reasons:
        if why:
            tasks.setdefault((model, why), []).append(task)
    told = [f"{', '.join(names)} on {model} ({why})" for (model, why), names in tasks.items()]
    return f"{caption}; without the paper's numbers: {'; '.join(told)}" if told else caption


def _paper_columns(columns: Sequence[Column]) -> list[Column]:
    return [Column(f"paper_{c.key}", f"paper: {c.heading}", c.decimals) for c in columns]


def _with_expected(rows: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """A row for every method that a table must have, empty where nothing ran."""
    keys = ["model", "task", "family", "cohort", "pool"]
    expected = rows.select(keys).unique(maintain_order=True)
    expected = expected.join(pl.DataFrame({"method": methods}), how="cross")
    rows = expected.join(rows, on=[*keys, "method"], how="full", coalesce=True)
    return in_order(rows.with_columns(pl.col("past").fill_null(False)))


def _percent(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("accuracy", "saving") * 100)


def _with_speed(rows: pl.DataFrame, bench: pl.DataFrame) -> pl.DataFrame:
    speeds = bench.select("cohort", "method", "tps", "timed", "cv", "speedup")
    return rows.join(speeds, on=["cohort", "method"], how="left", maintain_order="left")


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    labels = [pl.col("task").map_elements(task_label, return_dtype=pl.String).alias("label")]
    if "method" in rows.columns:
        named = pl.col("method").map_elements(method_label, return_dtype=pl.String)
        labels.append(named.alias("method_label"))
    return rows.with_columns(labels)


def _missing_methods(rows: pl.DataFrame, library: Library) -> list[str]:
    """What stands as a dash, and what to type for it."""
    if rows.is_empty():
        return [f"everything: nothing is recorded below {library.root} {RECORD}"]
    notes = [*cohort_notes(library.cohorts), *_sweep_notes(library), *_uneven(rows)]
    reading = reading_options(library.reading)
    for cohort in library.cohorts.filter("main").iter_rows(named=True):
        group = rows.filter(pl.col("cohort") == cohort["cohort"])
        where, again = f"{cohort['task']} on {cohort['model']}", cohort["again"]
        absent = group.filter(pl.col("steps").is_null())["method"].to_list()
        if absent:
            command = f"c4 run{reading} {_options(absent)} {again} {cohort['span']}"
            notes.append(f"{where}: {', '.join(absent)} ({command})")
        present = group.filter(pl.col("steps").is_not_null())
        untimed = present.filter(pl.col("tps").is_null())["method"].to_list()
        notes += [f"{where}: timings of {note}" for note in _timing_notes(untimed, again, reading)]
        if present["accuracy"].null_count():
            notes += [f"{where}: grades ({command})" for command in _grading(library, cohort)]
    return notes


def _timing_notes(untimed: Sequence[str], again: str, reading: str) -> list[str]:
    """Methods without a timing, and the commands that time them beside a baseline.

    A call takes a method once, so every variant needs one of its own; what a user's label stands
    for is the user's to say. A reading that a label names comes behind the usual one, and counts.
    """
    known = [label for label in untimed if method_name(label) in METHOD_LABELS]
    plain = [label for label in known if label in METHOD_LABELS]
    calls = [plain, *([label] for label in known if label not in plain)]
    notes = []
    for labels in filter(None, calls):
        chosen = _options(["baseline", *(label for label in labels if label != "baseline")])
        notes.append(f"{', '.join(labels)} (c4 bench{reading} {chosen} {again})")
    own = [label for label in untimed if label not in known]
    return notes + [f"{label}: c4 bench as it was run, with --label {label}" for label in own]


def _options(labels: Sequence[str]) -> str:
    """What chooses methods, and the settings of variants such as `c4,H=2`."""
    words = []
    for label in labels:
        name, *changes = re.split(r",(?=[\w.]+=)", label)
        words += ["--method", name]
        for change in changes:
            option, _, value = change.partition("=")
            of_reading = option in READING_OPTIONS
            words += [f"--{option}", value] if of_reading else ["--set", f"{name}.{change}"]
    return shlex.join(words)


def _sweep_notes(library: Library) -> list[str]:
    """The points of sweeps, which are left to a figure or a table of their own."""
    notes = []
    for (model, task), rows in library.swept.group_by("model", "task", maintain_order=True):
        for name, command in SHOWN_IN.items():
            labels = [label for label in rows["method"] if method_name(label) == name]
            if labels:
                notes.append(
                    f"{task} on {model}: points of a sweep, shown elsewhere: {', '.join(labels)} "
                    f"({command}); run with a --label of its own, one stands in the main table"
                )
    return notes


def _grading(library: Library, cohort: dict[str, Any]) -> list[str]:
    """The commands that grade what is ungraded in a cohort."""
    reading = reading_options(library.reading)
    return [
        f"c4 grade {shlex.quote(str(run.folder))}{reading}"
        for run in library.runs
        if cohort_key(run.manifest.identity) == cohort["cohort"]
        and any(row.never_graded for row in run.rows())
    ]


def _uneven(rows: pl.DataFrame) -> list[str]:
    """Methods whose accuracy is not of the examples that the baseline's is of."""
    full = rows.filter(pl.col("method") == "baseline").select("model", "task", full="n")
    uneven = rows.join(full, on=["model", "task"]).filter(pl.col("n") != pl.col("full"))
    return [
        f"{row['task']} on {row['model']}: {row['method']} has {row['n']} examples, the baseline "
        f"{row['full']}; `c4 report paired` compares them example by example"
        for row in uneven.iter_rows(named=True)
    ]


def _paired(library: Library, paper: bool) -> list[ReportTable]:
    rows = paired_table(library.main_outcomes).with_columns(pl.col("identical") * 100)
    columns = [
        *NAMES,
        Column("n", "n"),
        Column("b", "b"),
        Column("c", "c"),
        Column("p", "p", 3),
        Column("difference", "Δ accuracy", 1, signed=True),
        Column("low", "95% low", 1, signed=True),
        Column("high", "95% high", 1, signed=True),
        Column("identical", "identical %", 1),
    ]
    caption = (
        "Each method against full decoding, example by example: b only the baseline is right, c "
        "only the method; McNemar's exact test; paired bootstrap interval"
    )
    caption = _with_pool(caption, library)
    if paper:
        rows, caption = _with_paper(rows, caption, "paired", ["task", "method"], library)
        columns += [
            Column("paper_b", "paper: b", 0),
            Column("paper_c", "paper: c", 0),
            Column("paper_p", "paper: p", 3),
            Column("paper_difference", "paper: Δ", 1, signed=True),
            Column("paper_identical", "paper: identical %", 1),
        ]
    missing = [*cohort_notes(library.cohorts), *_sweep_notes(library)]
    missing += [] if rows.height else [f"a method beside the baseline {RECORD}"]
    return [ReportTable("paired", caption, columns, _labelled(rows), missing, "difference")]


def _stabilization(library: Library, paper: bool) -> list[ReportTable]:
    rows = stabilization_summary(library.settling)
    columns = [
        *NAMES[:2],
        Column("n", "n"),
        Column("share", "p", 1),
        Column("s_p", "s_p", 2),
        Column("low", "95% low", 2),
        Column("high", "95% high", 2),
        Column("appeared", "first shown", 2),
        Column("never", "never settle"),
    ]
    missing = cohort_notes(library.cohorts)
    missing += [] if rows.height else [f"recordings {RECORD}"]
    caption = _with_pool(
        "Progress by which a share p of the answers has settled for good, and by which it was "
        "first shown",
        library,
    )
    if paper:
        rows, caption = _with_paper(rows, caption, "stabilization", ["task", "share"], library)
        columns.append(Column("paper_s_p", "paper: s_p", 2))
    first = ReportTable("stabilization", caption, columns, _labelled(rows), missing)
    phases = phase_summary(library.phases).rename({"gate": "method"})
    phases = in_order(phases).with_columns(pl.col("fired", "premature") * 100)
    columns = [
        *NAMES,
        Column("n", "n"),
        Column("fired", "stopped %", 1),
        Column("exit", "mean exit", 2),
        Column("stabilization", "mean s_j", 2),
        Column("premature", "premature %", 1),
        Column("early_by", "early by", 2),
    ]
    caption = _with_pool("Where gates stop against where answers settle, in progress", library)
    return [first, ReportTable("phases", caption, columns, _labelled(phases), missing)]


def _scaling(library: Library, paper: bool) -> list[ReportTable]:
    rows = _with_speed(_percent(scaling_table(library.totals)), library.bench)
    letters = {"length": "L", "budget": "T", "block_length": "B", "blocks": "N"}
    shape = [Column(key, letter) for key, letter in letters.items()]
    columns = [*NAMES[:2], *shape, NAMES[2], Column("n", "n"), *NUMBERS, *TIMED]
    caption = _with_pool("Methods under every shape", library, every=True)
    if paper:
        keys = ["task", "length", "block_length", "method"]
        rows, caption = _with_paper(rows, caption, "scaling", keys, library, any_shape=True)
        columns += _paper_columns(NUMBERS)
    missing = (
        []
        if rows.height
        else [
            "a second shape of some task, below the same folder "
            "(c4 run --method baseline --method c4 --task gsm8k --gen-length 144 --out runs/144)"
        ]
    )
    if not rows["method"].is_in(["c4,cache=dual"]).any():
        missing.append(
            "C4 + DualCache (c4 run --method c4 --method fast-dllm --task gsm8k --set cache=dual)"
        )
    scaling = ReportTable("scaling", caption, columns, _labelled(rows), missing, "accuracy")
    return [scaling, _wino(library, paper)]


def _wino(library: Library, paper: bool) -> ReportTable:
    rows = wino_table(library.wino_totals)
    names = {"wino": "WINO", "deployed": "+ CVEE", "best": "+ CVEE, best that holds"}
    keys = [f"{kind}_{what}" for kind in names for what in ("accuracy", "steps")]
    rows = rows.with_columns(pl.col([key for key in keys if key.endswith("accuracy")]) * 100)
    numbers = []
    for key in keys:
        kind, _, what = key.partition("_")
        numbers.append(Column(key, f"{names[kind]}: {what}", 1))
    columns = [*NAMES[:2], *numbers, Column("settings", "settings tried")]
    caption = (
        f"CVEE on WINO's sampler; its {len(WINO_GRID)} settings are replayed where WINO's steps "
        "are recorded"
    )
    caption = _with_pool(caption, library)
    if paper:
        rows, caption = _with_paper(rows, caption, "wino_cvee", ["task"], library)
        columns += _paper_columns(numbers)
    missing = _missing_sweeps(rows, library)
    return ReportTable("wino-cvee", caption, columns, _labelled(rows), missing)


def _missing_sweeps(rows: pl.DataFrame, library: Library) -> list[str]:
    """What to record so that CVEE is tried on WINO; a run without its steps must be run again."""
    ran = library.main_totals.filter(pl.col("method") == "wino")
    if ran.is_empty():
        return ["WINO with its steps (c4 run --task gsm8k --method wino --cells)"]
    unswept = ran.join(rows.filter(pl.col("settings") > 1), on="cohort", how="anti")
    cohorts = library.cohorts.join(unswept, on="cohort", how="semi")
    return [
        f"{row['task']} on {row['model']}: settings of CVEE on WINO (c4 run --method wino --cells "
        f"--fresh {row['again']} {row['span']})"
        for row in cohorts.iter_rows(named=True)
    ]


def _calibration(library: Library, paper: bool) -> list[ReportTable]:
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
        Column("worst_drop", "worst drop", 1),
    ]
    caption = "What calibration costs: the pool is decoded once, every setting is then replayed"
    if paper:
        named = rows.with_columns(method=pl.col("gate").replace({"cvee": "c4"}))
        rows = beside(named, "calibration", ["method"])
        reasons = rows.select("model", "pool", "unlike_paper").iter_rows()
        caption = _with_reasons(caption, reasons)
        columns.append(Column("paper_seconds", "paper: s", 0))
    missing = [] if rows.height else ["a calibration (c4 calibrate --gamma 2)"]
    return [ReportTable("calibration", caption, columns, rows, missing)]


REPORTS: dict[str, Callable[[Library, bool], list[ReportTable]]] = {
    "main": _main,
    "ablation": _ablation,
    "paired": _paired,
    "stabilization": _stabilization,
    "scaling": _scaling,
    "calibration": _calibration,
}
