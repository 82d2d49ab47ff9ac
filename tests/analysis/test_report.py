"""The published numbers, and how tables show them."""

import json
from dataclasses import asdict
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import save_llada
from typer.testing import CliRunner

from c4.analysis import Library, TableFormat, make_report, render_tables
from c4.analysis._published import beside, published, unlike_paper
from c4.analysis.calibrations import calibration_table, readable_calibrations
from c4.analysis.tables.render import Column, ReportTable
from c4.cli._app import app
from c4.record.methods import METHODS
from c4.store.labels import method_name
from c4.store.manifest import content_checksum
from c4.tasks import TASKS, AnswerReading

TABLES = ("main", "ablation", "paired", "scaling", "wino_cvee", "stabilization")


@pytest.mark.parametrize("name", TABLES)
def test_published_tables_speak_of_tasks_and_methods_that_exist(name):
    table = published(name)
    assert set(table["task"]) <= set(TASKS)
    assert set(table["model"]) <= {"llada", "dream"}
    if "method" in table.columns:
        assert {method_name(method) for method in table["method"]} <= set(METHODS)
        keys = [
            key
            for key in ("model", "task", "length", "block_length", "method")
            if key in table.columns
        ]
        assert table.select(keys).is_unique().all()


def test_the_paper_s_own_numbers_hold_together():
    main = published("main").drop_nulls()
    assert main.height > 150
    budget = pl.col("task").replace_strict({name: TASKS[name].shape.budget for name in TASKS})
    saving = 100 * (1 - pl.col("steps") / budget)
    assert (main.select((saving - pl.col("saving")).abs()).to_series() < 0.3).all()


def test_numbers_stand_beside_the_model_and_task_they_belong_to():
    rows = pl.DataFrame({"task": "mmlu", "method": "c4", "paper": ["llada", "dream", None]})
    joined = beside(rows, "main", ["task", "method"])
    assert joined["paper_accuracy"].to_list() == [64.0, 70.0, None]
    assert joined.select("task", "method").equals(rows.select("task", "method"))


COHORT = {
    "model": "GSAI-ML--LLaDA-8B-Instruct",
    "task": "mmlu",
    "source": "hub",
    "length": 64,
    "budget": 64,
    "block_length": 16,
}


@pytest.mark.parametrize(
    ("change", "any_shape", "why"),
    [
        ({}, False, None),
        ({"source": "file"}, False, None),
        ({"model": "tiny"}, False, "no model of the paper's"),
        ({"source": "embedded"}, False, "problems that c4 generates"),
        ({"length": 32, "budget": 32}, False, "another shape, L=32 T=32 B=16"),
        ({"length": 32, "budget": 32}, True, None),
        ({"budget": 32}, True, "another shape, L=64 T=32 B=16"),
        ({"source": "embedded"}, True, "problems that c4 generates"),
    ],
)
def test_the_paper_s_numbers_are_of_its_models_data_and_shapes(change, any_shape, why):
    assert unlike_paper(COHORT | change, any_shape=any_shape) == why


@pytest.fixture(scope="module")
def namesake(tmp_path_factory):
    """Random weights under a published name: real rows in the paper's shape, generated ones not."""
    folder = tmp_path_factory.mktemp("namesake")
    model = save_llada(folder / "LLaDA-8B-Instruct")
    row = {"question": "2 + 2 = ?", "choices": ["3", "4", "5", "6"], "answer": 1}
    (folder / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 2)
    common = ["--model", model, "--gen-length", 64, "--block-length", 16]
    rows = ["--source", folder / "rows.jsonl", "--skip", 0, "--n", 2]
    made = ["--source", "embedded", "--n", 2]
    for task, more in {"mmlu": rows, "piqa": made}.items():
        args = ["record", "--task", task, *common, *more, "--out", folder / "runs"]
        assert CliRunner().invoke(app, [str(arg) for arg in args]).exit_code == 0
    return folder / "runs"


@pytest.mark.parametrize(("report", "number"), [("main", "accuracy"), ("ablation", "steps")])
def test_generated_problems_never_stand_beside_the_paper_s(namesake, report, number):
    (table,) = make_report([report], Library(namesake), paper=True)
    published_for = table.rows.filter(pl.col(f"paper_{number}").is_not_null())["task"]
    assert set(published_for) == {"mmlu"}
    assert "piqa on LLaDA-8B-Instruct (problems that c4 generates)" in table.caption
    assert "mmlu on LLaDA-8B-Instruct" not in table.caption


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


def test_calibration_files_become_rows(tmp_path, caplog):
    shape = {"length": 64, "budget": 64, "block_length": 16}
    identity = {"model": "tiny", "task": "math", "source": "embedded", "shape": shape}
    share = {"identity": identity, "trajectories": [0, 1, 2]}
    tried = [
        {"tau": 0.5, "p_min": 3, "worst_drop": 5.0},
        {"tau": 0.7, "p_min": 3, "worst_drop": 1.5},
    ]
    frozen = {
        "gate": "cvee",
        "parameters": {"tau": 0.7, "p_min": 3},
        "reading": asdict(AnswerReading()),
        "statement": "it loses at most 1.5 points",
        "pool": [share, share | {"identity": identity | {"task": "mmlu"}}],
        "table": tried,
        "seconds": 0.25,
    }
    frozen["checksum"] = content_checksum(frozen)
    (tmp_path / "frozen.json").write_text(json.dumps(frozen))
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "damaged.json").write_text(json.dumps(frozen)[:-9])
    found = readable_calibrations(tmp_path)
    assert [calibration.file for calibration in found] == ["frozen.json"]
    assert "damaged.json: not a file that `c4 calibrate` wrote" in caplog.text
    assert "broken.json" not in caplog.text  # nothing says that it was one
    pool = [
        recorded(share["identity"], steps=8, seconds=0.5, indices=[0, 1, 2, 3])
        for share in frozen["pool"]
    ]
    row = calibration_table(found, pool).row(0, named=True)
    assert row["pool"] == "math, mmlu"
    assert (row["trajectories"], row["settings"]) == (6, 2)
    assert (row["forward_passes"], row["decode_seconds"]) == (48, 3.0)
    assert (row["chosen"], row["worst_drop"]) == ("tau=0.7, p_min=3", 1.5)
    assert row["search_seconds"] == 0.25
    assert (row["paper"], row["unlike_paper"]) == (None, "no model of the paper's")
    gone = calibration_table(found, pool[:1]).row(0, named=True)
    assert gone["forward_passes"] is gone["decode_seconds"] is None


def recorded(identity, *, steps, seconds, indices):
    """As much of a recording as a calibration's cost is counted from."""
    rows = [SimpleNamespace(trajectory=i, steps=steps, wall_seconds=seconds) for i in indices]
    return SimpleNamespace(manifest=SimpleNamespace(identity=identity), rows=lambda: iter(rows))
