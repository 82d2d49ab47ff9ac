"""A recording is read in several ways, and none of them decodes anything anew."""

import json
from dataclasses import asdict, replace

import polars as pl
import pytest

from c4.analysis import Library, make_report
from c4.errors import ConfigError
from c4.gates import run_signals as cache_module
from c4.gates.cvee import CVEE
from c4.gates.progress import FixedProgress
from c4.gates.run_signals import load_signals, stack_signals
from c4.record.plan import RunConfig, plan_methods, plan_recording
from c4.record.regrade import regrade
from c4.record.settings import MethodChoice, resolve_methods
from c4.replay import grader as grader_module
from c4.replay.decisions import replay
from c4.replay.grader import ReplayGrader
from c4.store.labels import label_under
from c4.store.parts import list_parts
from c4.store.runs import open_run
from c4.store.summary import summarise
from c4.tasks import TASKS, AnswerReading, Candidate, Ending, ReadingStyle, grade
from tests.commands import c4
from tests.recordings import carry_out, record

USUAL = AnswerReading()
OTHER_ENDING = next(ending for ending in Ending if ending is not USUAL.ending)
OTHER = AnswerReading(ReadingStyle.PLAIN, OTHER_ENDING)
OPTIONS = ["--reading", "plain", "--ending", OTHER_ENDING]
CUT, SKIP = (AnswerReading(ending=ending) for ending in Ending)


def said(result):
    return " ".join(result.output.split())


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="gsm8k",
        model=str(random_llada),
        source="embedded",
        n=3,
        skip=38,
        out=tmp_path / "runs",
    )


@pytest.fixture
def folder(config):
    return record(config)[0]


def files(folder):
    return {path.relative_to(folder) for path in folder.rglob("*.parquet")}


def test_a_row_says_under_which_reading_it_was_graded(config):
    (row, *_) = carry_out(plan_recording(replace(config, reading=OTHER)))
    assert (row.style, row.ending) == ("plain", OTHER_ENDING)
    folder = plan_recording(config).folder
    run = open_run(folder, OTHER)
    for row in run.rows():
        given = grade(TASKS["gsm8k"], row.example, run.text(row.final_ids), OTHER)
        assert (row.answer, row.correct) == (given.answer, given.correct)
        assert row.text == run.vocabulary.text(row.final_ids, Ending.CUT)  # whatever the reading


def test_another_reading_is_no_other_recording(config, folder):
    before = files(folder)
    assert carry_out(plan_recording(replace(config, reading=OTHER))) == []
    added = files(folder) - before
    assert {path.parts[0] for path in added} == {"grades"}
    for reading in (USUAL, OTHER):
        assert summarise(folder, reading=reading).graded == 3
    assert carry_out(plan_recording(replace(config, reading=OTHER))) == []
    assert files(folder) - before == added  # all have a grade now


def test_c4_grade_keeps_the_readings_beside_each_other(folder):
    assert len(list(regrade(folder, OTHER))) == 3
    assert list(regrade(folder, OTHER)) == []
    assert list(regrade(folder, USUAL)) == []
    own = {row.trajectory: row.answer for row in open_run(folder).rows()}
    result = c4("grade", folder, *OPTIONS, "--all", "--json")
    assert json.loads(result.stdout)["graded"] == 3
    assert {row.trajectory: row.answer for row in open_run(folder).rows()} == own


def test_signals_of_two_readings_are_kept_side_by_side(folder, monkeypatch):
    read = {r: stack_signals(list(load_signals(open_run(folder, r)))) for r in (CUT, SKIP)}
    parts = len(open_run(folder).parts)
    assert len(list_parts(folder / "signals")) == 2 * parts
    monkeypatch.setattr(cache_module, "read_signals", None)  # would fail if anything were read
    for reading, expected in read.items():
        again = stack_signals(list(load_signals(open_run(folder, reading))))
        assert again.candidates == expected.candidates
    monkeypatch.undo()
    monkeypatch.setattr(cache_module, "code_hash", lambda: "another version")
    list(load_signals(open_run(folder, CUT)))  # replaces its own and no other
    assert len(list_parts(folder / "signals")) == 2 * parts


@pytest.mark.parametrize("reading", [CUT, SKIP, OTHER], ids=str)
def test_replay_reads_texts_answers_and_grades_in_one_way(folder, reading):
    run = open_run(folder, reading)
    gates = {"half": FixedProgress(0.5), "never": CVEE(tau=1.0, p_min=99)}
    frame = pl.concat(replay(run, gates))
    rows = {row.trajectory: row for row in run.rows()}
    for decision in frame.iter_rows(named=True):
        example = rows[decision["trajectory"]].example
        given = grade(TASKS["gsm8k"], example, decision["text"], reading)
        assert (decision["answer"], decision["correct"]) == (given.answer, given.correct)
    never = frame.filter(pl.col("gate") == "never")
    assert never["text"].to_list() == [run.text(row.final_ids) for row in rows.values()]


def test_a_grade_of_another_reading_is_not_taken_for_this_one(folder, monkeypatch):
    graded = []
    real = grader_module.grade
    monkeypatch.setattr(
        grader_module, "grade", lambda *a, **k: graded.append(a[3].style) or real(*a, **k)
    )
    run = open_run(folder, OTHER)
    grader = ReplayGrader(run, unsafe_code=False)
    for row in run.rows():
        assert grader.own(row) == grader.own(row)
    assert graded == ["plain"] * 3  # each text once
    list(regrade(folder, OTHER))
    again = open_run(folder, OTHER)
    grades = [ReplayGrader(again, unsafe_code=False).own(row) for row in again.rows()]
    assert [grade.verdict for grade in grades] == [row.verdict for row in again.rows()]
    assert len(graded) == 3


def test_choices_reach_the_extractor_from_disk_and_in_a_live_decode(config, monkeypatch):
    seen = set()

    def spying(text, choices=()):
        seen.add(tuple(choices))
        return Candidate("A", 0, 1) if text else None

    monkeypatch.setitem(TASKS, "mmlu", replace(TASKS["mmlu"], extract=spying))
    plan = plan_recording(replace(config, task="mmlu", reading=CUT))
    carry_out(plan)
    offered = {sample.example.choices for sample in plan.sample_set.samples}
    assert offered == seen
    assert {tuple(row.choices) for row in open_run(plan.folder).rows()} == offered
    seen.clear()
    list(load_signals(open_run(plan.folder, CUT)))
    assert seen == offered
    seen.clear()
    live = plan_methods(replace(config, task="mmlu", reading=CUT, graded=False), CVEE_ALONE)
    carry_out(*live)
    assert seen == offered


CVEE_ALONE = MethodChoice(["cvee"])


@pytest.mark.parametrize("method", ["cvee", "c4", "wino+cvee"])
def test_a_live_gate_exits_where_its_replay_does_under_every_reading(config, method):
    for reading in (CUT, SKIP, OTHER):
        asked = replace(config, reading=reading, graded=False)
        (plan,) = plan_methods(asked, MethodChoice([method]), cells=True)
        carry_out(plan)
        run = open_run(plan.folder, reading)
        frame = pl.concat(replay(run, {"cvee": CVEE()}))
        live = list(run.rows())
        assert frame["steps"].to_list() == [row.steps for row in live]
        assert frame["text"].to_list() == [run.text(row.final_ids) for row in live]


def test_a_gate_s_reading_is_part_of_the_identity_and_the_label():
    choice = MethodChoice(["c4", "baseline", "klass"])
    usual = resolve_methods(choice, TASKS["math"], USUAL)
    other = resolve_methods(choice, TASKS["math"], OTHER)
    assert [method.label for method in usual] == ["c4", "baseline", "klass"]
    label = f"c4,reading=plain,ending={OTHER_ENDING}"
    assert [method.label for method in other] == [label, "baseline", "klass"]
    assert other[0].identity["gate"]["reading"] == {"style": "plain", "ending": OTHER_ENDING}
    assert usual[0].identity != other[0].identity
    assert [m.identity for m in usual[1:]] == [m.identity for m in other[1:]]


def test_a_label_names_a_reading_only_among_results_of_another():
    (usual,) = resolve_methods(MethodChoice(["c4"], ["H=2"]), TASKS["math"], USUAL)
    (other,) = resolve_methods(MethodChoice(["c4"], ["H=2"]), TASKS["math"], OTHER)
    assert label_under(usual.identity, USUAL) == label_under(other.identity, OTHER) == "c4,H=2"
    assert label_under(other.identity, USUAL) == f"c4,H=2,reading=plain,ending={OTHER_ENDING}"
    assert label_under(usual.identity, OTHER) == f"c4,H=2,reading=careful,ending={USUAL.ending}"
    (mine,) = resolve_methods(MethodChoice(["c4"], label="mine"), TASKS["math"], OTHER)
    assert label_under(mine.identity, USUAL) == label_under(mine.identity, OTHER) == "mine"


def test_a_report_compares_methods_that_read_alike(config):
    methods = MethodChoice(["baseline", "c4"])
    for reading in (USUAL, OTHER):
        for plan in plan_methods(replace(config, reading=reading), methods):
            decoded = carry_out(plan)
            assert bool(decoded) == (reading == USUAL or plan.method.gate_name is not None)
    assert len(list(config.out.rglob("manifest.json"))) == 3
    names = {}
    for reading in (USUAL, OTHER):
        library = Library(config.out, reading=reading)
        names[reading] = set(library.outcomes["method"])
        assert library.outcomes["correct"].null_count() == 0
        (table,) = make_report(["main"], library, paper=False)
        assert ("read under" in table.caption) == (reading != USUAL)
    assert names[USUAL] == {"baseline", "c4", f"c4,reading=plain,ending={OTHER_ENDING}"}
    assert names[OTHER] == {"baseline", "c4", f"c4,reading=careful,ending={USUAL.ending}"}


def test_replay_says_its_reading_where_it_is_not_the_default(config, folder):
    usual = c4("replay", "--runs", config.out, "--gate", "cvee")
    other = c4("replay", "--runs", config.out, "--gate", "cvee", *OPTIONS)
    note = f"answers are read under --reading plain --ending {OTHER_ENDING}"
    assert note not in said(usual)
    assert note in said(other)
    rows = json.loads(c4("replay", "--runs", config.out, *OPTIONS, "--json").stdout)
    assert {(row["style"], row["ending"]) for row in rows} == {("plain", OTHER_ENDING)}


def test_a_calibration_brings_its_reading_along_and_refuses_another(config, folder, tmp_path):
    frozen, runs = tmp_path / "cvee.json", ["--runs", config.out]
    result = c4("calibrate", *runs, "--gamma", "2", *OPTIONS, "--out", frozen)
    assert result.exit_code == 0, result.output
    assert json.loads(frozen.read_text())["reading"] == asdict(OTHER)
    rows = json.loads(c4("replay", *runs, "--config", frozen, "--json").stdout)
    assert {(row["style"], row["ending"]) for row in rows} == {("plain", OTHER_ENDING)}
    refused = c4("replay", *runs, "--config", frozen, "--ending", USUAL.ending)
    assert refused.exit_code == 2
    assert "was chosen under --reading plain --ending" in said(refused)
    choice = MethodChoice(["c4"], calibration=frozen)
    with pytest.raises(ConfigError, match="leave these options out, or calibrate with them"):
        plan_methods(replace(config, reading=USUAL), choice)
    (plan,) = plan_methods(replace(config, reading=OTHER), choice)
    assert plan.method.identity["gate"]["reading"]["style"] == "plain"


def test_live_and_replay_agree_on_this_machine_under_another_reading(random_llada):
    common = ["--model", random_llada, "--source", "embedded", "--n", 2, "--json"]
    result = c4("verify", "--task", "gsm8k", *common, *OPTIONS)
    assert result.exit_code == 0, result.output
    assert all(check["agrees"] for check in json.loads(result.stdout))


@pytest.mark.parametrize("command", ["replay", "calibrate", "verify", "run", "bench", "report"])
def test_an_unknown_ending_is_refused(command):
    result = c4(command, "--ending", "never")
    assert result.exit_code == 2
    assert "'never' is not one of" in said(result)
