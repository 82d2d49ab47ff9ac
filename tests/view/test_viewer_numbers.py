"""What the page is sent is what was recorded, and what Python's gates say."""

import json
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from viewing import recordings, viewer  # noqa: F401 - fixtures

from c4.gates.registry import GATES
from c4.replay.decisions import replay, summarise_decisions
from c4.tasks import find_task
from c4.view import Viewer
from c4.view.cohort import cohort_message
from c4.view.menu import GateMenu
from c4.view.trajectory import TYPES, answer_message, pack, trajectory_message

TASKS = ("mmlu", "gsm8k", "humaneval")
DTYPES = {name: np.dtype(f"<{code}") for code, name in TYPES.items()}


def unpack(message):
    """What `source.js` does."""
    (size,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + size])
    arrays = {
        name: np.frombuffer(
            message, DTYPES[place["type"]], int(np.prod(place["shape"])), 4 + size + place["offset"]
        ).reshape(place["shape"])
        for name, place in header["arrays"].items()
    }
    return header, arrays


def cache_of(viewer, task, method="baseline"):
    return viewer.cache(f"model=made/task={task}/method={method}")


def test_arrays_arrive_as_they_were_sent_and_can_be_mapped():
    arrays = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.array([[1.5, np.nan]], dtype=">f8"),
        "c": np.arange(6, dtype=np.int32).reshape(2, 3).T,
    }
    header, found = unpack(pack({"words": "</script>"}, arrays))
    assert header["words"] == "</script>"
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert header["arrays"][name]["offset"] % 8 == 0


@pytest.mark.parametrize("task", TASKS)
def test_cells_arrive_bit_by_bit(viewer, task):
    cache = cache_of(viewer, task)
    for recorded in cache.run:
        header, arrays = unpack(trajectory_message(cache, recorded.row.trajectory, viewer.menu, {}))
        for name in ("token", "confidence", "gap", "entropy"):
            np.testing.assert_array_equal(arrays[name].T, getattr(recorded.cells, name))
        np.testing.assert_array_equal(arrays["masked"].T == 1, recorded.cells.masked)
        assert header["row"]["prompt"] == recorded.row.prompt
        known = {token["id"] for token in header["vocabulary"]}
        assert known >= set(recorded.cells.token.ravel().tolist())


@pytest.mark.parametrize("task", ["mmlu", "gsm8k"])
@pytest.mark.parametrize("settings", [{}, {"cvee": {"tau": "0.35", "p_min": "1"}}])
def test_exits_and_grades_are_those_of_a_replay(viewer, task, settings):
    cache = cache_of(viewer, task)
    gates = viewer.menu.make(find_task(task), settings)
    frame = pl.concat(replay(cache.run, gates))
    fired = frame.group_by("gate").agg(pl.col("fired").any()).filter("fired")["gate"]
    assert {"cvee", "oracle", "progress"} <= set(fired)  # else this compares nothing
    for index in cache.indices:
        told = answer_message(cache, index, viewer.menu, settings)["gates"]
        expected = frame.filter(pl.col("trajectory") == index)
        assert [one["name"] for one in told] == list(GATES)
        for one, row in zip(told, expected.iter_rows(named=True), strict=True):
            shared = ("fired", "steps", "premature", "answer", "correct", "identical")
            assert [one[name] for name in shared] == [row[name] for name in shared]
    cohort = viewer.cohort(cache)
    said = cohort_message(cohort, list(gates), settings, with_points=False)["summaries"]
    for row in summarise_decisions(frame).to_dicts():
        assert said[row["gate"]] == pytest.approx(row, abs=1e-12)


def test_programs_are_not_run_until_somebody_asks(viewer, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a program was run")

    monkeypatch.setattr("c4.replay.grader.grade", refuse)
    cache = cache_of(viewer, "humaneval")
    cohort = cohort_message(viewer.cohort(cache), ["progress"], {}, with_points=True)
    told = answer_message(cache, 40, viewer.menu, {})["gates"]
    assert any(one["waits"] for one in told)
    # A text that is the full decode's has its grade.
    same = [one for one in told if one["correct"] is not None]
    assert {one["correct"] for one in same} == {False}
    assert cohort["summaries"]["progress"]["not_gradable"] > 0


def test_a_program_that_was_run_on_demand_counts_from_then_on(viewer, monkeypatch):
    from c4.tasks import Grade, Verdict
    from c4.view.trajectory import run_at

    cache = cache_of(viewer, "humaneval")
    settings = {"progress": {"fraction": "0.25"}}
    cohort = viewer.cohort(cache)
    before = cohort.summary("progress", settings)["not_gradable"]
    monkeypatch.setattr("c4.replay.grader.grade", lambda *_, **__: Grade("x", Verdict.RIGHT))
    assert run_at(viewer, cache, 41, 6) == {"step": 6, "correct": True, "verdict": "right"}
    assert cohort.summary("progress", settings)["not_gradable"] == before - 1


def test_gates_that_look_alike_keep_their_own_exits(recordings, tmp_path):
    source = "class Calm:\n    def fires(self, s):\n        return s.step >= {}\n"
    source += "    def __repr__(self):\n        return 'Calm()'\n"
    names = [f"{tmp_path}/{name}.py:Calm" for name in ("early", "late")]
    for name, step in zip(names, (3, 5), strict=True):
        Path(name.removesuffix(":Calm")).write_text(source.format(step), encoding="utf-8")
    viewer = Viewer(recordings, tasks=["mmlu"], gates=GateMenu(tuple(names)))
    cohort = viewer.cohort(cache_of(viewer, "mmlu"))
    assert [set(cohort.exits(name, {}).tolist()) for name in names] == [{3}, {5}]


def test_a_slider_reads_the_cells_once(recordings, monkeypatch):
    viewer = Viewer(recordings, tasks=["mmlu"])
    cache = cache_of(viewer, "mmlu")
    reads = []
    read_cells = cache.run.read_cells
    monkeypatch.setattr(
        cache.run, "read_cells", lambda part: reads.append(part) or read_cells(part)
    )
    for tau in ("0.3", "0.4", "0.5"):
        answer_message(cache, 41, viewer.menu, {"cvee": {"tau": tau}})
    assert len(reads) == 1


def test_sliders_stay_within_what_gates_declare(viewer):
    for gate in viewer.menu.describe(viewer.families):
        for spec in gate["parameters"]:
            for family in viewer.families:
                value = gate["defaults"][family][spec["name"]]
                assert (
                    value in spec["choices"]
                    if "choices" in spec
                    else (spec["low"] <= value <= spec["high"])
                )
    with pytest.raises(Exception, match=r"GATE\.NAME=VALUE"):
        viewer.menu.read_settings(["nonsense.tau=1"])
    with pytest.raises(Exception, match="takes tau from 0 to 1"):
        viewer.menu.make(find_task("gsm8k"), {"cvee": {"tau": "7"}})
