"""The published numbers, and how tables show them."""

import json
from types import SimpleNamespace

import polars as pl
import pytest

from c4.analysis import (
    Column,
    ReportTable,
    TableFormat,
    calibration_table,
    find_calibrations,
    published,
    render_tables,
)
from c4.analysis._published import beside
from c4.record import METHODS
from c4.tasks import TASKS

TABLES = ("main", "ablation", "paired", "scaling", "wino_cvee", "stabilization")


@pytest.mark.parametrize("name", TABLES)
def test_published_tables_speak_of_tasks_and_methods_that_exist(name):
    table = published(name)
    assert set(table["task"]) <= set(TASKS)
    assert set(table["model"]) <= {"llada", "dream"}
    if "method" in table.columns:
        assert set(table["method"]) <= set(METHODS)
        keys = [
            key for key in ("model", "task", "length", "block", "method") if key in table.columns
        ]
        assert table.select(keys).is_unique().all()


def test_the_paper_s_own_numbers_hold_together():
    main = published("main").drop_nulls()
    assert main.height > 150
    budget = pl.col("task").replace_strict({name: TASKS[name].shape.steps for name in TASKS})
    saving = 100 * (1 - pl.col("steps") / budget)
    assert (main.select((saving - pl.col("saving")).abs()).to_series() < 0.3).all()


def test_numbers_stand_beside_the_model_and_task_they_belong_to():
    rows = pl.DataFrame(
        {
            "model": ["GSAI-ML--LLaDA-8B-Instruct", "dream", "tiny"],
            "task": "mmlu",
            "method": "c4",
        }
    )
    joined = beside(rows, "main", ["task", "method"])
    assert joined["paper_accuracy"].to_list() == [64.0, 70.0, None]
    assert joined.select(rows.columns).equals(rows)


@pytest.fixture
def table():
    rows = pl.DataFrame(
        {"task": ["50% & more", "b|c"], "accuracy": [12.34, None], "past": [True, False]}
    )
    columns = [Column("task", "task"), Column("accuracy", "accuracy %", 1)]
    return ReportTable("t", "A caption", columns, rows, ["a thing (c4 run)"], "accuracy")


def test_markdown_marks_a_drop_and_shows_a_dash(table):
    text = render_tables([table], TableFormat.MARKDOWN)
    assert "| 50% & more | **12.3 ▼** |" in text
    assert r"| b\|c | – |" in text
    assert "- a thing (c4 run)" in text


def test_latex_is_escaped(table):
    text = render_tables([table], TableFormat.LATEX)
    assert r"50\% \& more & \textcolor{red}{12.3} \\" in text
    assert r"b|c & -- \\" in text
    assert "Missing: a thing (c4 run)." in text


def test_csv_keeps_numbers_as_they_are(table):
    text = render_tables([table], TableFormat.CSV)
    assert pl.read_csv(text.encode(), comment_prefix="#").equals(table.rows)


def test_json_names_what_it_stores(table):
    (stored,) = json.loads(render_tables([table], TableFormat.JSON))
    assert stored["rows"] == table.rows.to_dicts()


def test_calibration_files_become_rows(tmp_path):
    cohort = {"identity": {"model": "tiny", "task": "math"}, "trajectories": [0, 1, 2]}
    tried = [
        {"tau": 0.5, "p_min": 3, "worst_drop": 5.0},
        {"tau": 0.7, "p_min": 3, "worst_drop": 1.5},
    ]
    frozen = {
        "gate": "cvee",
        "parameters": {"tau": 0.7, "p_min": 3},
        "pool": [cohort, cohort | {"identity": {"model": "tiny", "task": "mmlu"}}],
        "table": tried,
        "seconds": 0.25,
    }
    (tmp_path / "frozen.json").write_text(json.dumps(frozen))
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    paths = find_calibrations(tmp_path)
    assert [path.name for path in paths] == ["frozen.json"]
    pool = [
        recorded(cohort["identity"], passes=8, seconds=0.5, indices=[0, 1, 2, 3])
        for cohort in frozen["pool"]
    ]
    row = calibration_table(paths, pool).row(0, named=True)
    assert row["pool"] == "math, mmlu"
    assert (row["trajectories"], row["settings"]) == (6, 2)
    assert (row["forward_passes"], row["decode_seconds"]) == (48, 3.0)
    assert (row["chosen"], row["worst_drop"]) == ("tau=0.7, p_min=3", 1.5)
    assert row["search_seconds"] == 0.25
    gone = calibration_table(paths, pool[:1]).row(0, named=True)
    assert gone["forward_passes"] is gone["decode_seconds"] is None


def recorded(identity, *, passes, seconds, indices):
    """As much of a recording as a calibration's cost is counted from."""
    rows = [
        SimpleNamespace(trajectory=i, forward_passes=passes, wall_seconds=seconds) for i in indices
    ]
    return SimpleNamespace(manifest=SimpleNamespace(identity=identity), rows=lambda: iter(rows))
