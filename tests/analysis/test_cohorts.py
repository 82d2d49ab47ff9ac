"""Decodes that are no pairs are never mixed: shapes, pools, folders, and what tables say of it."""

import re
import shlex

import polars as pl
import pytest
from typer.main import get_command

from c4.analysis import Library, make_report
from c4.analysis.calibration_table import calibration_table, readable_calibrations
from c4.analysis.cohorts import cohort_table
from c4.analysis.library import COMPARED_GATES
from c4.cli.app import app
from c4.errors import ConfigError, RunError
from c4.figures import FIGURES
from c4.store.runs import find_runs, open_run
from tests.commands import done

COMMANDS = get_command(app).commands
ONCE = ["--n", 1, "--passes", 1, "--warmups", 0]


@pytest.fixture(scope="module")
def root(random_llada, tmp_path_factory):
    """GSM8K in two shapes, most methods in the one that is not the model's; MATH's pool alone."""
    root = tmp_path_factory.mktemp("cohorts")
    common = ["--model", random_llada, "--source", "embedded"]
    done("record", "--task", "math", "--skip", 0, "--n", 2, *common, "--out", root)
    done("record", "--task", "gsm8k", "--skip", 38, "--n", 4, *common, "--out", root)
    short = ["--task", "gsm8k", "--gen-length", 12, *common, "--out", root / "short"]
    done("record", "--n", 5, *short)
    methods = ["--method", "baseline", "--method", "c4", "--method", "wino", "--set", "c4.H=2"]
    done("run", "--n", 2, *methods, *short, "--no-grade")
    done("bench", "--method", "baseline", *ONCE, *short)
    return root


@pytest.fixture
def library(root):
    return Library(root)


@pytest.fixture
def here(random_llada, tmp_path):
    """Options of commands that record into a folder of the test's own."""
    return ["--model", random_llada, "--source", "embedded", "--out", tmp_path]


def hints_of(table):
    """The commands that a table advises to fill its gaps."""
    for note in table.missing:
        for command in re.findall(r"\(run: (c4 [^()]*)\)", note):
            yield shlex.split(command)


def test_one_shape_of_a_task_is_shown_and_it_is_the_model_s_own(library):
    main = library.cohorts.filter("main").select("task", "length", "budget", "block_length")
    assert main.rows() == [("gsm8k", 24, 24, 3), ("math", 24, 24, 3)]
    alone = Library(library.root, tasks=["gsm8k"])
    assert alone.cohorts.filter("main")["length"].to_list() == [24]
    for frame in (library.settling, library.phases, library.gate_signals):
        assert frame.filter(pl.col("task") == "gsm8k")["cohort"].n_unique() == 1
    settling = library.settling.filter(pl.col("task") == "gsm8k")
    assert settling["trajectory"].to_list() == [40, 41]
    steps = library.gate_signals.filter((pl.col("task") == "gsm8k") & (pl.col("kind") == "course"))
    assert steps.group_by("signal").len()["len"].to_list() == [24] * 3
    assert library.blocks.filter(pl.col("task") == "gsm8k")["budget"].unique().to_list() == [24]


def test_the_rest_is_named(library):
    (table,) = make_report(["paired"], library, paper=False)
    (note,) = [note for note in table.missing if "is shown" in note]
    assert "L=24 T=24 B=3 is shown; not shown: L=12 T=12 B=3" in note


def test_without_a_usual_shape_the_one_with_most_plain_methods_is_shown(root):
    runs = [open_run(folder) for folder in find_runs(root)]
    runs = [run for run in runs if run.task_name == "gsm8k"]
    assert cohort_table(runs, ["cvee"]).filter("main")["length"].to_list() == [12]
    sampled = [run for run in runs if not run.is_baseline]
    assert {run.method for run in sampled} == {"c4,H=2", "wino"}
    (methods,) = cohort_table(sampled).select("methods").to_series()
    assert methods == 1  # `c4,H=2` is no method of its own


def test_a_difference_is_not_stored_as_an_accuracy(library):
    (table,) = make_report(["paired"], library, paper=False)
    assert table.marked == "difference"
    assert "accuracy" not in table.rows.columns


def test_timings_stand_only_beside_the_shape_they_are_of(library):
    assert (
        library.bench["cohort"].to_list() == library.cohorts.filter(length=12)["cohort"].to_list()
    )
    (table,) = make_report(["main"], library, paper=False)
    assert table.rows["tps"].null_count() == table.rows.height


def test_tables_say_what_part_the_pool_plays(library):
    for table in make_report(["main", "paired", "stabilization"], library, paper=False):
        assert "only examples that calibration may have seen: math" in table.caption
        assert "left out because calibration may have seen them: 2 of gsm8k" in table.caption
        pools = dict(table.rows.select("task", "pool").unique().iter_rows())
        assert pools == {"gsm8k": False, "math": True}


def test_two_folders_of_one_cohort_count_as_one(random_llada, tmp_path):
    common = ["--task", "mmlu", "--model", random_llada, "--source", "embedded"]
    done("record", "--skip", 40, "--n", 2, *common, "--out", tmp_path / "a")
    done("record", "--skip", 41, "--n", 2, *common, "--out", tmp_path / "b")
    library = Library(tmp_path, gates=["cvee"])
    assert library.settling["trajectory"].to_list() == [40, 41, 42]
    assert library.phases["trajectory"].to_list() == [40, 41, 42]
    assert library.outcomes.group_by("method").len()["len"].to_list() == [3, 3]
    courses = library.gate_signals.filter(pl.col("kind") == "course")
    assert courses.height == 3 * 16
    assert Library(tmp_path, trajectory=42).trace["trajectory"].unique().to_list() == [42]


def test_seconds_are_those_of_every_decode(root):
    shares = Library(root / "short").time_shares
    assert dict(shares.select("method", "n").unique().iter_rows()) == {"baseline": 5, "wino": 2}


def test_seconds_of_decodes_count_though_the_replay_has_more_examples(here, tmp_path):
    done("record", "--task", "mmlu", "--n", 3, *here)
    done("run", "--task", "mmlu", "--method", "cvee", "--n", 2, *here)
    library = Library(tmp_path, gates=["cvee"])
    (totals,) = library.totals.filter(method="cvee").to_dicts()
    assert (totals["how"], totals["n"]) == ("replayed", 3)
    assert library.time_shares.filter(method="cvee")["n"].unique().to_list() == [2]


def test_the_steps_of_a_sampler_do_not_pass_for_full_decodes(here, tmp_path):
    done("run", "--task", "gsm8k", "--method", "wino", "--n", 1, "--cells", *here)
    (folder,) = find_runs(tmp_path)
    for root in (tmp_path, folder, folder.parent):
        library = Library(root)
        assert library.outcomes.select("method", "how").rows() == [("wino", "decoded")]
        assert library.settling.is_empty()


def test_a_trajectory_needs_a_task_where_several_have_it(root):
    with pytest.raises(ConfigError, match="--model random-llada --task gsm8k, --model"):
        Library(root, trajectory=40).trace  # noqa: B018
    assert Library(root, trajectory=38, tasks=["gsm8k"]).trace["trajectory"][0] == 38
    with pytest.raises(RunError, match="no trajectory 7; there are 38 to 41"):
        Library(root, trajectory=7, tasks=["gsm8k"]).trace  # noqa: B018


@pytest.mark.parametrize("folder", ["", "short", "nothing"])
def test_every_hint_can_be_typed(root, folder):
    tables = make_report(["all"], Library(root / folder, gates=COMPARED_GATES), paper=False)
    advised = [hint for table in tables for hint in hints_of(table)]
    for figure_kind in FIGURES.values():
        advised += map(shlex.split, figure_kind.needs.split("; "))
    assert len(set(map(tuple, advised))) > 6
    for program, command, *arguments in advised:
        assert program == "c4"
        COMMANDS[command].make_context(command, arguments)


def test_a_hint_fills_the_gap_with_the_options_of_the_recording(root, random_llada):
    short = ["--model", random_llada, "--source", "embedded", "--gen-length", 12, "--n", 2]
    (table,) = make_report(["main"], Library(root / "short"), paper=False)
    (hint,) = [hint for hint in hints_of(table) if hint[1] == "run"]
    done(*hint[1:], *short, "--out", root / "short")
    (table,) = make_report(["main"], Library(root / "short"), paper=False)
    assert table.rows["steps"].null_count() == 0
    assert not [note for note in table.missing if "c4 run" in note]


@pytest.fixture(scope="module")
def calibrated(random_llada, tmp_path_factory):
    """GSM8K: a recording, C4 as calibrated on it and under another H, and WINO with its steps."""
    root = tmp_path_factory.mktemp("calibrated")
    common = ["--task", "gsm8k", "--model", random_llada, "--source", "embedded", "--out", root]
    done("record", "--skip", 38, "--n", 5, *common)
    frozen = root / "calibration.json"
    grid = ["--gamma", 0, "--set", "tau=0.05", "--set", "p_min=1", "--tolerance", 100]
    done("calibrate", "--runs", root, *grid, "--out", frozen)
    done("run", "--method", "c4", "--config", frozen, "--n", 3, *common)
    done("run", "--method", "c4", "--set", "H=0", "--n", 3, *common)
    done("run", "--method", "wino", "--n", 3, *common, "--cells")
    return root


CALIBRATED = "c4,cvee.tau=0.05,gamma=0,p_min=1"


@pytest.mark.parametrize("report", ["main", "ablation", "paired"])
def test_what_was_calibrated_and_run_is_in_the_report(calibrated, report):
    (table,) = make_report([report], Library(calibrated), paper=False)
    (row,) = table.rows.filter(method=CALIBRATED).to_dicts()
    assert row["n"] == 3
    assert row["method_label"] == "C4, cvee.tau=0.05, gamma=0, p_min=1"
    # Points of a sweep are left out, and named.
    assert "c4,H=0" not in table.rows["method"].to_list()
    (note,) = [note for note in table.missing if "sweep" in note]
    assert "c4,H=0 (run: c4 figures h-sweep)" in note
    assert "--label" in note


def test_figures_of_methods_show_it_too(calibrated):
    for name in ("frontier", "blocks", "totals", "time-share"):
        frame = FIGURES[name].data(Library(calibrated))
        assert CALIBRATED in frame["method"].to_list(), name
        assert "c4,H=0" not in frame["method"].to_list(), name


def test_the_better_timing_counts_and_not_the_newest(here, tmp_path):
    bench = ["bench", "--task", "mmlu", *here, *ONCE, "--method", "c4"]
    done(*bench, "--n", 3, "--passes", 2)
    done(*bench, "--method", "baseline")
    (row,) = Library(tmp_path).bench.filter(method="c4").to_dicts()
    assert (row["timed"], row["cv"]) == ("1×1", None)
    assert row["speedup"] is not None
    done(*bench, "--method", "baseline", "--passes", 2)
    done(*bench, "--method", "baseline")
    (row,) = Library(tmp_path).bench.filter(method="c4").to_dicts()
    assert (row["timed"], row["cv"] >= 0) == ("1×2", True)


def test_speeds_stand_with_how_they_were_measured(library):
    for report, keys in {"main": (), "scaling": ("budget", "blocks")}.items():
        table = make_report([report], library, paper=False)[0]
        shown = {column.key for column in table.columns}
        assert {"tps", "speedup", "timed", "cv", *keys} <= shown
    timed = make_report(["scaling"], library, paper=False)[0].rows.filter(length=12)
    assert timed.filter(method="baseline")["timed"].to_list() == ["1×1"]


def test_hints_make_what_the_scaling_tables_lack(here, tmp_path):
    methods = ["--method", "baseline", "--method", "c4", "--method", "wino"]
    done("run", "--task", "gsm8k", *methods, *here, "--n", 2)
    shapes, sweep = make_report(["scaling"], Library(tmp_path), paper=False)
    assert "DualCache" in " ".join(shapes.missing)
    assert sweep.is_empty
    for table in (shapes, sweep):
        *_, (_, *command) = hints_of(table)
        done(*command, *here, "--n", 2)
    shapes, sweep = make_report(["scaling"], Library(tmp_path), paper=False)
    assert not [*shapes.missing, *sweep.missing]
    labels = ["Baseline", "Fast-dLLM + DualCache", "WINO", "C4", "C4 + DualCache"]
    assert shapes.rows["method_label"].to_list() == labels
    assert sweep.rows["settings"].to_list() == [45]


def test_cvee_is_swept_over_recorded_steps_of_wino(calibrated):
    table = make_report(["scaling"], Library(calibrated), paper=False)[1]
    (row,) = table.rows.to_dicts()
    assert row["settings"] == 45
    assert row["deployed_steps"] <= row["wino_steps"]
    assert not table.missing


def test_replayed_cvee_on_wino_is_what_runs_live(calibrated, here, tmp_path):
    settings = ["--set", "cvee.tau=0.8", "--set", "p_min=5", "--set", "gamma=4"]
    run = ["run", "--task", "gsm8k", "--n", 3, *here, "--method", "wino+cvee"]
    done(*run, "--method", "wino")
    done(*run, *settings)
    live, replayed = Library(tmp_path), Library(calibrated)
    numbers = ["method", "n", "accuracy", "steps", "fired"]
    swept = replayed.wino_totals.filter(pl.col("method").is_in(live.totals["method"].implode()))
    assert swept.select(numbers).equals(live.totals.select(numbers))
    table = make_report(["scaling"], live, paper=False)[1]
    assert table.rows["settings"].to_list() == [2]


def test_calibration_files_become_rows(calibrated, tmp_path, caplog):
    whole = (calibrated / "calibration.json").read_text()
    (tmp_path / "frozen.json").write_text(whole)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "damaged.json").write_text(whole[:-9])
    found = readable_calibrations(tmp_path)
    assert [calibration.file for calibration in found] == ["frozen.json"]
    assert "damaged.json: not a file that `c4 calibrate` wrote" in caplog.text
    assert "broken.json" not in caplog.text  # nothing says that it was one
    runs = [open_run(folder) for folder in find_runs(calibrated)]
    (row,) = calibration_table(found, runs).to_dicts()
    (share,) = found[0].pool
    (recording,) = [run for run in runs if run.is_baseline]
    pool = [r for r in recording.rows() if r.trajectory in share.trajectories]
    assert (row["pool"], row["trajectories"], row["settings"]) == ("gsm8k", len(pool), 1)
    assert row["forward_passes"] == sum(r.steps for r in pool)
    assert row["decode_seconds"] == pytest.approx(sum(r.wall_seconds for r in pool))
    assert row["chosen"] == "tau=0.05, gamma=0, p_min=1"
    assert row["worst_drop"] == found[0].worst_drop
    assert row["search_seconds"] > 0
    assert (row["paper"], row["unlike_paper"]) == (None, "not a model of the paper")
    gone = calibration_table(found, []).row(0, named=True)
    assert gone["forward_passes"] is gone["decode_seconds"] is None
