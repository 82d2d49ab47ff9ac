"""Examples that a setting was chosen on are no evaluation, whatever method decodes them."""

import json

import pytest

from c4.analysis import Library, make_report
from tests.commands import done


@pytest.fixture(scope="module")
def root(random_llada, tmp_path_factory):
    """MMLU 40 to 48 recorded and run live, in another shape too; nothing that is set aside."""
    root = tmp_path_factory.mktemp("pools")
    common = ["--task", "mmlu", "--model", random_llada, "--source", "embedded"]
    done("record", "--n", 9, *common, "--out", root)
    done("run", "--method", "c4", "--n", 6, *common, "--out", root)
    done("record", "--n", 4, "--gen-length", 8, *common, "--out", root / "short")
    done("record", "--n", 4, "--seed", 1, *common, "--out", root / "seed")
    return root


@pytest.fixture(scope="module")
def calibration(root, tmp_path_factory):
    """A setting chosen on 40, 41 and 42."""
    path = tmp_path_factory.mktemp("frozen") / "calibration.json"
    grid = ["--gamma", 0, "--set", "tau=0.05", "--set", "p_min=1", "--tolerance", 100]
    done("calibrate", "--runs", root / "model=random-llada", *grid, "--out", path)
    assert json.loads(path.read_text())["pool"][0]["trajectories"] == [40, 41, 42]
    return path.read_text()


@pytest.fixture
def frozen(calibration, tmp_path, monkeypatch):
    """That setting in a file, in the folder where c4 is called."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "calibration.json"
    path.write_text(calibration)
    return path


def examples(frame, **chosen):
    return sorted(frame.filter(**chosen)["trajectory"].unique().drop_nulls().to_list())


def test_they_are_left_out_for_recorded_replayed_and_live_methods_alike(root, frozen):
    library = Library(root / "model=random-llada", gates=["progress"])
    assert library.runs
    for frame in (library.settling, library.phases, library.gate_signals):
        assert examples(frame) == list(range(43, 49))
        assert not frame["pool"].any()
    whole = Library(root, gates=["progress"])
    (long,) = whole.cohorts.filter(length=16, methods=3)["cohort"]
    assert examples(whole.outcomes, cohort=long, method="baseline") == list(range(43, 49))
    assert examples(whole.outcomes, cohort=long, method="progress") == list(range(43, 49))
    assert examples(whole.outcomes, cohort=long, method="c4") == [43, 44, 45]


def test_they_are_left_out_in_other_shapes_but_not_in_another_order(root, frozen):
    library = Library(root, gates=["progress"])
    assert examples(library.outcomes, length=8) == [43]
    other = Library(root / "seed", gates=["progress"])
    assert examples(other.outcomes) == [40, 41, 42, 43]
    assert other.cohorts["pooled"].to_list() == [0]


NOTE = "examples left out because calibration may have seen them: 3 of mmlu"


def test_tables_say_how_many(root, frozen):
    for table in make_report(["stabilization"], Library(root / "model=random-llada"), paper=False):
        assert NOTE in table.caption


def test_a_file_elsewhere_counts_once_it_is_named_and_figures_say_so(
    root, frozen, tmp_path, monkeypatch
):
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    runs = root / "model=random-llada"
    assert examples(Library(runs).settling) == list(range(40, 49))
    assert examples(Library(runs, calibrations=[frozen]).settling) == list(range(43, 49))
    args = ["figures", "stabilization", "--runs", runs, "--format", "png", "--calibration", frozen]
    assert NOTE in done(*args).stdout


def test_naming_one_file_does_not_hide_those_that_are_found(root, frozen):
    library = Library(root / "model=random-llada", calibrations=[])
    assert examples(library.settling) == list(range(43, 49))
    assert library.calibrations.is_empty()


POOLS = [3, ["mmlu"], [{"identity": {}}], [{"identity": 1}], None]


@pytest.mark.parametrize("text", ["{", "[]", '{"gate": 1}', '{"gate": "', "\udcff", "", *POOLS])
def test_other_files_in_the_folder_do_no_harm(root, frozen, text):
    if text in POOLS:  # of a calibration
        text = json.dumps(json.loads(frozen.read_text()) | {"pool": text})
    frozen.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert examples(Library(root / "model=random-llada").settling) == list(range(40, 49))
