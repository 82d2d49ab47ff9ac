"""The paper's tables, from what is on disk."""

from collections.abc import Callable, Sequence

import polars as pl

from c4.analysis._evidence import Evidence
from c4.analysis._exits import phase_summary
from c4.analysis._names import in_order, method_label, task_label
from c4.analysis._outcomes import method_totals
from c4.analysis._paired import TOLERANCE, paired_table
from c4.analysis._published import beside
from c4.analysis._render import Column, ReportTable, without_unpublished
from c4.analysis._stabilization import stabilization_summary
from c4.analysis._sweeps import scaling_table, wino_table
from c4.errors import ConfigError

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


def make_report(names: Sequence[str], evidence: Evidence, *, paper: bool) -> list[ReportTable]:
    """Tables by the names of their reports; `all` is every one. Empty tables say what is missing.

    Args:
        paper: put the published numbers beside one's own, where model and task match.
    """
    for name in names:
        if name not in REPORTS and name != "all":
            raise ConfigError(f"no report named {name!r}; there are: {', '.join(REPORTS)}, all")
    wanted = [make for name, make in REPORTS.items() if name in names or "all" in names]
    return [without_unpublished(table) for make in wanted for table in make(evidence, paper)]


def _main(evidence: Evidence, paper: bool) -> list[ReportTable]:
    caption = "Accuracy, steps and speed of every method"
    return [_methods_table("main", caption, evidence, MAIN_METHODS, paper, ladder=False)]


def _ablation(evidence: Evidence, paper: bool) -> list[ReportTable]:
    caption = "Component ladder: each rung adds one thing"
    return [_methods_table("ablation", caption, evidence, LADDER, paper, ladder=True)]


def _methods_table(
    name: str,
    caption: str,
    evidence: Evidence,
    methods: Sequence[str],
    paper: bool,
    *,
    ladder: bool,
) -> ReportTable:
    totals = method_totals(evidence.main_outcomes)
    if ladder:
        totals = totals.filter(pl.col("method").is_in(methods))
    elif not totals.is_empty():  # what else was run is shown too, rungs of the ladder are not
        rungs = set(LADDER) - set(methods) - {"cvee"}
        totals = totals.filter(~pl.col("method").is_in(rungs))
    rows = _with_speed(_with_expected(totals, methods), evidence.bench)
    columns = [*NAMES, Column("n", "n"), *NUMBERS, Column("how", "how")]
    if paper:
        rows = beside(rows, name, ["task", "method"])
        columns += _paper_columns(NUMBERS)
    return ReportTable(
        name, caption, columns, _labelled(rows), _missing_methods(rows, evidence), "past"
    )


def _paper_columns(columns: Sequence[Column]) -> list[Column]:
    return [Column(f"paper_{c.key}", f"paper: {c.heading}", c.decimals) for c in columns]


def _with_expected(totals: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """Percentages, and a row for every method that a table must have, empty where nothing ran."""
    rows = totals.with_columns(
        past=(100 * pl.col("drop") > TOLERANCE + 1e-9).fill_null(False),
        accuracy=100 * pl.col("accuracy"),
        saving=100 * pl.col("saving"),
    )
    cohorts = rows.select("model", "task", "family").unique(maintain_order=True)
    expected = cohorts.join(pl.DataFrame({"method": methods}), how="cross")
    rows = expected.join(
        rows, on=["model", "task", "family", "method"], how="full", coalesce=True
    ).with_columns(pl.col("past").fill_null(False))
    return in_order(rows)


def _with_speed(rows: pl.DataFrame, bench: pl.DataFrame) -> pl.DataFrame:
    speeds = bench.select("model", "task", "method", "tps", "speedup")
    return rows.join(speeds, on=["model", "task", "method"], how="left", maintain_order="left")


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    labels = [pl.col("task").map_elements(task_label, return_dtype=pl.String).alias("label")]
    if "method" in rows.columns:
        named = pl.col("method").map_elements(method_label, return_dtype=pl.String)
        labels.append(named.alias("method_label"))
    return rows.with_columns(labels)


def _missing_methods(rows: pl.DataFrame, evidence: Evidence) -> list[str]:
    """What stands as a dash, and what to type for it."""
    if rows.is_empty():
        return [f"everything: nothing is recorded below {evidence.root}; c4 record --task math"]
    notes = []
    absent = rows.filter(pl.col("steps").is_null())
    notes += _uneven(rows)
    for (model, task), group in absent.group_by("model", "task", maintain_order=True):
        names = group["method"].to_list()
        options = " ".join(f"--method {name}" for name in names)
        notes.append(f"{task} on {model}: {', '.join(names)} (c4 run --task {task} {options})")
    untimed = rows.filter(pl.col("steps").is_not_null() & pl.col("tps").is_null())
    tasks = untimed["task"].unique(maintain_order=True).to_list()
    if tasks:
        notes.append(f"timings of {', '.join(tasks)} (c4 bench --task {tasks[0]})")
    ungraded = rows.filter(pl.col("steps").is_not_null() & pl.col("accuracy").is_null())
    for task in ungraded["task"].unique(maintain_order=True):
        notes.append(f"grades of {task} (c4 grade)")
    return notes


def _uneven(rows: pl.DataFrame) -> list[str]:
    """Methods whose accuracy is not of the examples that the baseline's is of."""
    full = rows.filter(pl.col("method") == "baseline").select("model", "task", full="n")
    uneven = rows.join(full, on=["model", "task"]).filter(pl.col("n") != pl.col("full"))
    return [
        f"{row['task']} on {row['model']}: {row['method']} has {row['n']} examples, the baseline "
        f"{row['full']}; `c4 report paired` compares them example by example"
        for row in uneven.iter_rows(named=True)
    ]


def _paired(evidence: Evidence, paper: bool) -> list[ReportTable]:
    rows = paired_table(evidence.main_outcomes).with_columns(
        identical=100 * pl.col("identical"), accuracy=pl.col("difference")
    )
    columns = [
        *NAMES,
        Column("n", "n"),
        Column("b", "b"),
        Column("c", "c"),
        Column("p", "p", 3),
        Column("accuracy", "Δ accuracy", 1, signed=True),
        Column("low", "95% low", 1, signed=True),
        Column("high", "95% high", 1, signed=True),
        Column("identical", "identical %", 1),
    ]
    if paper:
        rows = beside(rows, "paired", ["task", "method"])
        columns += [
            Column("paper_b", "paper: b", 0),
            Column("paper_c", "paper: c", 0),
            Column("paper_p", "paper: p", 3),
            Column("paper_difference", "paper: Δ", 1, signed=True),
            Column("paper_identical", "paper: identical %", 1),
        ]
    rows = rows.with_columns(past=pl.col("difference") < -TOLERANCE - 1e-9)
    missing = [] if rows.height else ["a method beside the baseline (c4 record --task math)"]
    caption = (
        "Each method against full decoding, example by example: b only the baseline is right, c "
        "only the method; McNemar's exact test; paired bootstrap interval"
    )
    return [ReportTable("paired", caption, columns, _labelled(rows), missing, "past")]


def _stabilization(evidence: Evidence, paper: bool) -> list[ReportTable]:
    rows = stabilization_summary(evidence.settling)
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
    if paper:
        rows = beside(rows, "stabilization", ["task", "share"])
        columns.append(Column("paper_s_p", "paper: s_p", 2))
    missing = [] if rows.height else ["recordings (c4 record --task math)"]
    caption = (
        "Progress by which a share p of the answers has settled for good, and by which it was "
        "first shown"
    )
    first = ReportTable("stabilization", caption, columns, _labelled(rows), missing)
    phases = phase_summary(evidence.phases).rename({"gate": "method"})
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
    caption = "Where gates stop against where answers settle, in progress"
    return [first, ReportTable("phases", caption, columns, _labelled(phases), missing)]


def _scaling(evidence: Evidence, paper: bool) -> list[ReportTable]:
    rows = scaling_table(evidence.totals).with_columns(pl.col("accuracy", "saving") * 100)
    rows = rows.with_columns(past=(100 * pl.col("drop") > TOLERANCE + 1e-9).fill_null(False))
    shape = [Column("length", "L"), Column("block", "B"), Column("blocks", "N")]
    columns = [*NAMES[:2], *shape, NAMES[2], Column("n", "n"), *NUMBERS[:3]]
    if paper:
        rows = beside(rows, "scaling", ["task", "length", "block", "method"])
        columns += _paper_columns(NUMBERS[:3])
    missing = (
        []
        if rows.height
        else [
            "a second shape of some task, below the same folder "
            "(c4 run --task gsm8k --gen-length 128 --out runs/128)"
        ]
    )
    scaling = ReportTable(
        "scaling", "Methods under every shape", columns, _labelled(rows), missing, "past"
    )
    return [scaling, _wino(evidence, paper)]


def _wino(evidence: Evidence, paper: bool) -> ReportTable:
    rows = wino_table(evidence.totals)
    names = {"wino": "WINO", "deployed": "+ CVEE", "best": "+ CVEE, best that holds"}
    keys = [f"{kind}_{what}" for kind in names for what in ("accuracy", "steps")]
    rows = rows.with_columns(pl.col([key for key in keys if key.endswith("accuracy")]) * 100)
    numbers = []
    for key in keys:
        kind, _, what = key.partition("_")
        numbers.append(Column(key, f"{names[kind]}: {what}", 1))
    columns = [*NAMES[:2], *numbers]
    if paper:
        rows = beside(rows, "wino_cvee", ["task"])
        columns += _paper_columns(numbers)
    missing = (
        []
        if rows.height
        else ["WINO and CVEE on it (c4 run --task gsm8k --method wino --method wino+cvee)"]
    )
    return ReportTable("wino-cvee", "CVEE on WINO's sampler", columns, _labelled(rows), missing)


def _calibration(evidence: Evidence, paper: bool) -> list[ReportTable]:
    rows = evidence.calibrations
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
    if paper:
        named = rows.with_columns(method=pl.col("gate").replace({"cvee": "c4"}))
        rows = beside(named, "calibration", ["method"])
        columns.append(Column("paper_seconds", "paper: s", 0))
    missing = [] if rows.height else ["a calibration (c4 calibrate --gamma 2)"]
    caption = "What calibration costs: the pool is decoded once, every setting is then replayed"
    return [ReportTable("calibration", caption, columns, rows, missing)]


REPORTS: dict[str, Callable[[Evidence, bool], list[ReportTable]]] = {
    "main": _main,
    "ablation": _ablation,
    "paired": _paired,
    "stabilization": _stabilization,
    "scaling": _scaling,
    "calibration": _calibration,
}
