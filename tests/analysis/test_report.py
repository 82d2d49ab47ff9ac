"""The published numbers, and how tables show them."""

import polars as pl
import pytest

from c4.analysis import Column, ReportTable, TableFormat, published, render_tables
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
