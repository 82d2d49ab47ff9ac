"""The package `c4` itself: what a notebook imports, opens, asks and draws."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import numpy as np
import polars as pl
import pytest
from nbclient import NotebookClient

import c4
from c4 import figures
from c4.errors import ConfigError, RunError
from c4.gates import parameter
from c4.replay import DECISIONS, load_calibration, summarise_decisions
from c4.store.locations import parse_location
from c4.tasks import find_task
from tests.store.made import write_anew

ROOT = Path(__file__).parents[2]
FULL = Path("model=tiny/task=mmlu/method=baseline")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A full decode and a run of C4, three examples each; a copy, because signals are kept."""
    folder = tmp_path_factory.mktemp("front") / "runs"
    return shutil.copytree(ROOT / "tests" / "data" / "runs" / "v3", folder)


@pytest.fixture
def run(runs):
    return c4.open(runs / FULL)


@pytest.mark.parametrize("name", c4.__all__)
def test_every_name_that_is_offered_is_there(name):
    assert getattr(c4, name).__doc__


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        _ = c4.opne


def test_a_run_says_what_it_is(run):
    assert repr(run) == "<Run tiny mmlu baseline, n=3, accuracy 100.0%>"
    page = run._repr_html_()
    assert "mmlu by tiny, baseline" in page
    assert "32 positions, 32 steps, blocks of 8" in page
    assert ">100.0%</td>" in page


def test_a_folder_above_a_single_run_opens_it_and_one_above_several_names_them(runs, tmp_path):
    shutil.copytree(runs / FULL, tmp_path / "one" / FULL)
    assert c4.open(tmp_path / "one").method == "baseline"
    with pytest.raises(RunError, match=r"holds 2 runs .*c4\.open_all"):
        c4.open(runs)
    for opening in (c4.open, c4.open_all):
        with pytest.raises(RunError, match="no such folder"):
            opening(tmp_path / "nothing")


def test_all_runs_are_opened_and_chosen(runs):
    found = c4.open_all(runs)
    assert [run.method for run in found] == ["baseline", "c4"]
    assert repr(found).startswith("<Runs, 2>\n  <Run tiny mmlu baseline")
    assert "<td" in found._repr_html_()
    assert [run.method for run in c4.open_all(runs, method="c4")] == ["c4"]


def test_what_is_not_there_is_said_with_what_is(runs, run):
    with pytest.raises(ConfigError, match=r"no task among these runs .*'mlu'; did you mean mmlu"):
        c4.open_all(runs, task="mlu")
    with pytest.raises(ConfigError, match=r"no method among these runs .*there are baseline, c4"):
        c4.open_all(runs, model="tiny", method="wino")
    with pytest.raises(RunError, match="no trajectory 5; there are 40 to 42"):
        run.trajectory(5)
    with pytest.raises(RunError, match="no trajectory 5; there are 40 to 42"):
        run.trace(5)


def test_a_name_from_a_manifest_cannot_steer_a_terminal(run, monkeypatch):
    for name in ("model", "task_name", "method"):
        monkeypatch.setattr(c4.Run, name, f"x{chr(27)}[31mRED")
    for shown in (repr(run), repr(c4.Runs([run])), repr(run.trajectory(41))):
        assert chr(27) not in shown
        assert r"\x1b[31mRED" in shown


def test_decisions_are_a_frame_with_a_summary(run):
    decisions = run.replay(c4.CVEE(tau=0.8), c4.Prophet, "sched", strict=c4.CVEE(tau=0.99))
    assert decisions.schema == DECISIONS
    gates = decisions["gate"].unique(maintain_order=True).to_list()
    assert gates == ["cvee,tau=0.8", "prophet", "sched", "strict"]
    assert decisions.summary.equals(summarise_decisions(decisions))
    assert "12 rows" in repr(decisions)
    assert "cvee,tau=0.8" in decisions._repr_html_()


def test_a_named_gate_has_the_settings_of_the_task_and_an_object_its_own(run):
    from c4.gates import make_gate
    from c4.tasks import Family

    named = run.replay("prophet")
    assert named["steps"].equals(run.replay(make_gate("prophet", Family.LETTERS))["steps"])


def test_gates_may_be_given_as_a_list(run):
    grid = [c4.CVEE(tau=tau) for tau in (0.5, 0.6)]
    gates = run.replay(grid, "prophet")["gate"].unique(maintain_order=True).to_list()
    assert gates == ["cvee,tau=0.5", "cvee,tau=0.6", "prophet"]


def test_two_gates_of_one_name_are_refused(run):
    with pytest.raises(ConfigError, match="two gates go by cvee"):
        run.replay(c4.CVEE(), "cvee")
    with pytest.raises(ConfigError, match="is no gate"):
        run.replay(object())


def test_signals_are_those_that_gates_see(run):
    signals = run.signals
    assert signals.height == sum(row.steps for row in run.rows())
    last = signals.group_by("trajectory", maintain_order=True).last()
    assert last["answer"].to_list() == [row.answer for row in run.rows()]
    assert signals["confidence"].is_nan().any() is False


def flux(s, cells):
    return np.concatenate([[1.0], (cells.token[1:] != cells.token[:-1]).mean(axis=1)])


def test_signals_of_a_users_own_stand_beside_c4_s_and_are_drawn(run):
    frame = run.signals_with(flux)
    assert frame.drop("flux").equals(run.signals)
    assert frame.filter(pl.col("step") == 1)["flux"].to_list() == [1.0] * len(run)

    class Quiet:
        signals = (flux,)

        def fires(self, s):
            return s.flux < 0.5

    assert run.replay(Quiet).height == len(run)
    trace = run.trace(run.indices[0], Quiet, signals=["entropy"])
    assert trace.columns[-2:] == ["entropy", "flux"]
    assert len(c4.trace_figure(trace).axes) == 6


def test_decisions_keep_their_summary_when_they_are_filtered_or_sorted(run):
    decisions = run.replay("cvee", "prophet")
    some = decisions.filter(pl.col("steps") > 0, gate="cvee").sort("steps")
    assert some.summary["gate"].to_list() == ["cvee"]
    assert c4.Decisions(pl.concat([decisions, some])).summary["n"].to_list() == [6, 3]


def test_what_no_figure_can_draw_is_refused_with_a_message(run):
    decisions = run.replay("cvee")
    cases = [
        (c4.phase_diagram, decisions.clear(), "has no rows"),
        (c4.stabilization_figure, run.stabilization.clear(), "has no rows"),
        (c4.phase_diagram, decisions.lazy(), "from a Polars DataFrame, not from a LazyFrame"),
        (c4.stabilization_figure, decisions.to_dicts(), "not from a list"),
        (c4.trace_figure, pl.concat([run.trace(i) for i in run.indices]), "holds 3"),
        (c4.text_figure, pl.concat([run.texts(i) for i in run.indices[:2]]), "holds 2"),
    ]
    for figure, frame, message in cases:
        with pytest.raises(ConfigError, match=message):
            figure(frame)


def test_a_width_is_a_word_too_and_another_is_refused(run):
    decisions = run.replay("cvee")
    assert c4.phase_diagram(decisions, "column").get_figwidth() == pytest.approx(3.4)
    for width in ("colum", 3.4):
        with pytest.raises(ConfigError, match="width must be 'column' or 'page'"):
            c4.phase_diagram(decisions, width=width)


def test_what_is_no_run_no_number_and_no_promise_is_refused(run):
    assert c4.open(run).folder == run.folder
    with pytest.raises(ConfigError, match="takes the folder of a run, not None"):
        c4.open(None)
    with pytest.raises(RunError, match=r"no trajectory '40'; there are \d+ to \d+"):
        run.trajectory("40")
    with pytest.raises(ConfigError, match=r"2.0 is no promise; write c4.Requirement"):
        c4.calibrate(run, "cvee", 2.0)


def test_runs_of_a_task_that_is_code_ask_for_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "from dataclasses import replace\nfrom c4.tasks import TASKS\n"
    Path("mine.py").write_text(source + "TASK = replace(TASKS['mmlu'], name='mine')\n")
    definition = dict(find_task("mine.py:TASK").definition)
    own = write_anew(run.folder, tmp_path / "own", task="mine", task_definition=definition)
    for ask in (lambda run: run.replay("cvee"), lambda run: run.stabilization):
        with pytest.raises(RunError, match=r"code of your own.*c4\.open\(.*task='mine.py:TASK'"):
            ask(c4.open(own))
    named = c4.open(own, task="mine.py:TASK")
    assert named.replay("cvee").height == 3
    assert c4.open(named).replay("cvee").height == 3


def test_only_what_a_notebook_needs_is_offered():
    assert sorted([*c4.__all__, "view"]) == dir(c4)


def test_a_trace_shows_what_the_gates_that_are_given_ask_for(run):
    trace = run.trace(run.indices[0], c4.CVEE(tau=0.2, p_min=1), c4.CVEE(tau=0.3, p_min=1))
    assert trace["tau"].unique().to_list() == [0.2]
    assert trace["tau_of"].unique().to_list() == ["cvee,tau=0.2,p_min=1"]
    legend = c4.trace_figure(trace).legends[0].get_texts()
    told = [text.get_text() for text in legend]
    assert told == ["CVEE, tau=0.2, p_min=1 stops", "CVEE, tau=0.3, p_min=1 stops"]


def test_answers_are_read_by_the_extractor_that_is_named(run):
    boxed = c4.open(run.folder, reading="boxed")
    assert str(boxed.reading) == "boxed/cut"
    assert len(boxed.replay("cvee")) == len(run)
    with pytest.raises(ConfigError, match="did you mean boxed"):
        c4.open(run.folder, reading="boxd")


def test_a_trajectory_tells_its_course(run):
    row = next(run.rows())
    one = run.trajectory(row.trajectory)
    assert repr(one).startswith(f"<Trajectory {row.trajectory} of mmlu: answer {row.answer!r}, ")
    assert repr(next(iter(run))) == repr(one)
    assert one.text_at(row.steps) == row.text
    assert one.steps["step"].to_list() == list(range(1, row.steps + 1))
    with pytest.raises(ConfigError, match="has steps 1 to 32"):
        one.text_at(0)


def test_what_models_and_users_wrote_is_escaped(run):
    from c4._html import facts_table, frame_table, text_block

    evil = "<script>alert(1)</script>"
    for page in (
        facts_table(evil, {evil: evil}),
        frame_table(pl.DataFrame({evil: [evil]})),
        text_block(evil, evil),
    ):
        assert "<script>" not in page


@pytest.mark.parametrize("make", ["replay", "phases"])
def test_figures_take_decisions_and_phases_as_they_are(run, make):
    frame = getattr(run, make)("cvee", "prophet")
    for frames in (frame, pl.DataFrame(frame).filter(pl.col("gate") == "cvee")):
        drawn = c4.phase_diagram(frames).axes[0].collections
        points = sum(
            len(marks.get_offsets()) for marks in drawn if marks.get_label() in ("cvee", "prophet")
        )
        assert points == frames.height
    assert c4.stabilization_figure(frame).axes


def test_decisions_and_phases_draw_the_same_points(run):
    from c4.analysis.notebook_frames import as_phases

    gates = ("cvee", "prophet", "sched")
    keys = ["gate", "trajectory"]
    columns = [*keys, "fired", "exit", "stabilization", "premature", "early_by", "task", "family"]
    made = as_phases(run.replay(*gates)).select(columns).sort(keys)
    assert made.equals(run.phases(*gates).select(columns).sort(keys))


def test_the_other_frames_are_drawn_too(run):
    assert c4.stabilization_figure(run.stabilization).axes
    assert c4.trace_figure(run.trace(41, "cvee")).axes
    assert c4.text_figure(run.texts(41, "cvee", "prophet")).axes


def test_a_frame_that_cannot_be_drawn_is_refused_by_its_columns(run):
    with pytest.raises(ConfigError, match="no column fired, gate"):
        c4.phase_diagram(run.signals)
    compare = (figures.frontier_figure, figures.blocks_figure, figures.totals_figure)
    others = (figures.time_share_figure, figures.h_sweep_figure, figures.gates_figure)
    for figure in (c4.trace_figure, c4.text_figure, *compare, *others):
        with pytest.raises(ConfigError, match="this frame cannot be drawn: it has no column"):
            figure(run.signals)
    other = run.stabilization.with_columns(cohort=pl.lit("another"))
    with pytest.raises(ConfigError, match="holds 2 cohorts of mmlu on tiny"):
        c4.stabilization_figure(pl.concat([run.stabilization, other]))


def test_a_figure_shows_itself_in_a_notebook(run):
    assert c4.phase_diagram(run.replay("cvee"))._repr_png_().startswith(b"\x89PNG")


def test_calibration_gives_a_gate_that_keeps_the_promise(run, tmp_path):
    found = c4.calibrate(run, c4.CVEE, c4.Requirement(tolerance=100), gamma=2, tau=[0.6, 0.7])
    assert found.table.height == 2 * 16
    assert found.gate == c4.CVEE(**found.parameters)
    assert found.statement in repr(found)
    assert "held out" in found._repr_html_()
    found.save(tmp_path / "frozen.json")
    assert load_calibration(tmp_path / "frozen.json").parameters == found.parameters
    loose = c4.Requirement(tolerance=100)
    by_name = c4.calibrate([run.folder], "cvee", loose, gamma=2, tau="0.6:0.7:0.1")
    assert by_name.parameters == found.parameters


@dataclass(frozen=True)
class Calm:
    """A gate as one would write it into a cell."""

    nats: float = parameter(0.1, high=1.0, meaning="entropy of the answer")

    def fires(self, s):
        return s.entropy <= self.nats


def test_a_gate_of_a_users_own_is_replayed_and_calibrated(run):
    assert run.replay(Calm(nats=0.2))["gate"].unique().to_list() == ["Calm,nats=0.2"]
    found = c4.calibrate(run, Calm, c4.Requirement(tolerance=100))
    assert found.table.height == 11
    assert isinstance(found.gate, Calm)


@dataclass(frozen=True)
class Counting:
    """A gate whose parameters are called as columns of the table of a calibration are."""

    steps: int = parameter(3, low=1, high=9)
    losses: float = 0.5

    def fires(self, s):
        return s.step >= self.steps


def test_parameters_may_be_called_as_results_are(run, tmp_path):
    found = c4.calibrate(run, Counting, c4.Requirement(tolerance=100), steps=[4, 9], losses=0.25)
    assert found.parameters == {"steps": 4, "losses": 0.25}
    assert found.table.select("set steps", "steps").rows() == [(4, 4.0), (9, 9.0)]
    found.save(tmp_path / "frozen.json")
    frozen = load_calibration(tmp_path / "frozen.json")
    assert (frozen.parameters, frozen.worst_drop) == (
        found.parameters,
        found.table["worst_drop"][0],
    )


def test_a_gate_that_no_module_offers_is_calibrated_and_not_saved(run, tmp_path):
    @dataclass(frozen=True)
    class Calm2(Calm):
        """As it would be in a notebook's function."""

    found = c4.calibrate(run, Calm2, c4.Requirement(tolerance=100), nats=[0.1, 0.2])
    assert isinstance(found.gate, Calm2)
    assert repr(found).startswith("<Calibrated Calm2 nats=")
    assert "Calm2, calibrated" in found._repr_html_()
    with pytest.raises(ConfigError, match="no command could find it again; write it into a file"):
        found.save(tmp_path / "frozen.json")
    assert not list(tmp_path.iterdir())


def test_a_calibration_is_saved_where_an_address_says(run, monkeypatch):
    places = []
    monkeypatch.setattr("c4._calibration.save_calibration", lambda place, *_: places.append(place))
    found = c4.calibrate(run, "progress", c4.Requirement(tolerance=100), fraction=[0.5, 1])
    found.save("s3://bucket/frozen.json")
    assert places == [parse_location("s3://bucket/frozen.json")]


def test_a_value_that_is_none_is_refused_with_a_message(run):
    with pytest.raises(ConfigError, match="takes gamma at least 0, not None"):
        c4.calibrate(run, "cvee", gamma=None)


def test_a_setting_is_no_grid(run):
    with pytest.raises(ConfigError, match="is one setting already; give its class, CVEE"):
        c4.calibrate(run, c4.CVEE(tau=0.7))
    with pytest.raises(ConfigError, match="is one setting already; give its class, Calm"):
        c4.calibrate(run, Calm(nats=0.2))
    with pytest.raises(ConfigError, match="is neither the name nor the class of a gate"):
        c4.calibrate(run, ["cvee"])
    with pytest.raises(ConfigError, match="no runs are given"):
        c4.calibrate([], c4.CVEE)
    with pytest.raises(ConfigError, match="neither the name nor the class"):
        c4.calibrate(run, dict)


def test_nothing_of_this_loads_torch(run):
    code = f"""
import sys, c4
run = c4.open({str(run.folder)!r})
decisions = run.replay("cvee"), run.signals, run.trajectory(41)._repr_html_(), run._repr_html_()
c4.phase_diagram(decisions[0])
c4.calibrate(run, "cvee", gamma=2)
print(*{{"torch", "transformers", "matplotlib.pyplot"}} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_executes(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert sum("image/png" in out.get("data", {}) for out in outputs) == 3
    shown = json.dumps([out["data"] for out in outputs if "data" in out])
    assert str(tmp_path) not in shown
    assert str(ROOT) not in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
