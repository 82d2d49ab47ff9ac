"""The timing protocol, without looking at a clock."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import save_llada

from c4.errors import ConfigError, RunError
from c4.record.bench import Bench, Timing, TimingProtocol
from c4.record.plan import RunConfig, choose_methods, load_planned
from c4.record.settings import MethodChoice
from c4.store.timings import BENCH, read_timings, write_timings

PROTOCOL = TimingProtocol(n=3, warmups=2, passes=2)


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="mmlu",
        model=str(random_llada),
        source="embedded",
        n=PROTOCOL.examples,
        skip=40,
        out=tmp_path / "runs",
        graded=False,
    )


def make_bench(config, *methods):
    plan, chosen = choose_methods(config, MethodChoice(methods))
    return Bench(plan, chosen, load_planned(plan), PROTOCOL)


def test_the_defaults_are_the_paper_s():
    assert TimingProtocol() == TimingProtocol(n=20, warmups=2, passes=3)
    with pytest.raises(ConfigError, match="passes is at least 1, not 0"):
        TimingProtocol(passes=0)


def test_warm_ups_come_first_and_methods_take_turns(config, monkeypatch):
    bench = make_bench(config, "baseline", "fast-dllm")
    seen = []
    real = Bench._time
    monkeypatch.setattr(
        Bench,
        "_time",
        lambda self, method, prompt, choices: (
            seen.append(
                (method.label, next(i for i, (p, _) in enumerate(self._examples) if p is prompt))
            )
            or real(self, method, prompt, choices)
        ),
    )
    order = list(bench)
    assert len(order) == len(bench) == 2 * (2 + 2 * 3)
    warm = [(label, i) for label in ("baseline", "fast-dllm") for i in (3, 4)]
    timed = [(label, i) for label in ("baseline", "fast-dllm") for i in (0, 1, 2)]
    assert seen == warm + timed + timed
    assert order == [label for label, _ in seen]


def test_a_table_holds_the_definitions(config, monkeypatch):
    """By hand: 16 positions, passes that differ, examples that differ more."""
    seconds = {"baseline": [0, 2, 4, 2, 4, 6], "fast-dllm": [1] * 6}
    steps = {"baseline": 16, "fast-dllm": 4}
    clocks = {label: iter([9, 9, *timed]) for label, timed in seconds.items()}
    monkeypatch.setattr(
        Bench,
        "_time",
        lambda self, method, *_: Timing(next(clocks[method.label]), steps[method.label], 6),
    )
    bench = make_bench(config, "baseline", "fast-dllm")
    list(bench)
    table = bench.table()
    assert table.schema == BENCH
    base, fast = table.to_pylist()
    # Pass means 2 and 4: their mean is 3 and their standard deviation the root of 2.
    assert base["mean_seconds"] == 3
    assert base["cv"] == pytest.approx(100 * 2**0.5 / 3)
    assert base["tps"] == pytest.approx(16 / 3)
    assert base["tps_before_end"] == 2
    assert (base["mean_steps"], base["tokens_per_forward"]) == (16, 1)
    assert (base["speedup"], base["step_ratio"]) == (1, 1)
    assert (fast["mean_seconds"], fast["cv"]) == (1, 0)
    assert (fast["tps"], fast["tps_before_end"]) == (16, 6)
    assert (fast["mean_steps"], fast["tokens_per_forward"]) == (4, 4)
    assert (fast["speedup"], fast["step_ratio"]) == (3, 4)
    assert (base["length"], base["budget"], base["block_length"]) == (16, 16, 4)


def test_no_baseline_no_speedup(config):
    bench = make_bench(config, "cvee")
    assert bench.baseline is None
    list(bench)
    (row,) = bench.table().to_pylist()
    assert row["speedup"] is None
    assert row["step_ratio"] is None


def test_a_baseline_under_another_label_is_one(config):
    plan, chosen = choose_methods(config, MethodChoice(["baseline"], label="whole"))
    bench = Bench(plan, chosen, load_planned(plan), PROTOCOL)
    list(bench)
    (row,) = bench.table().to_pylist()
    assert (row["method"], row["speedup"]) == ("whole", 1)


def test_the_newest_timing_of_each_method_counts(config):
    for methods in (("baseline", "cvee"), ("cvee",)):
        bench = make_bench(config, *methods)
        list(bench)
        path = write_timings(config.out, "random-llada", "mmlu", bench.table())
        assert pq.ParquetFile(path).schema_arrow.equals(BENCH)
    table = read_timings(config.out)
    rows = {row["method"]: row for row in table.to_pylist()}
    assert rows.keys() == {"baseline", "cvee"}
    assert rows["baseline"]["speedup"] == 1
    assert rows["cvee"]["speedup"] is None  # of the second call
    assert {(row["model"], row["task"]) for row in rows.values()} == {("random-llada", "mmlu")}
    assert read_timings(config.out / "nothing").num_rows == 0


def test_other_shapes_and_other_weights_are_other_timings(config, tmp_path):
    model = save_llada(tmp_path / "model")
    config = replace(config, model=str(model))
    keep(config)
    keep(replace(config, length=8, block_length=4))
    assert [row["length"] for row in read_timings(config.out).to_pylist()] == [16, 8]
    save_llada(model, seed=1)
    keep(config)
    keep(config)
    rows = read_timings(config.out).to_pylist()
    identities = [json.loads(row["identity"]) for row in rows]
    weights = [identity["weights_sha256"] for identity in identities]
    assert [row["length"] for row in rows] == [16, 8, 16]
    assert weights[0] == weights[1] != weights[2]
    assert identities[2]["method"] == "baseline"


def keep(config):
    bench = make_bench(config, "baseline")
    list(bench)
    return write_timings(config.out, Path(config.model).name, "mmlu", bench.table())


def test_a_damaged_file_is_reported_by_name(config):
    path = keep(config)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RunError, match=rf"{path.name}: damaged .*delete it, and time again"):
        read_timings(config.out)


def test_a_file_of_an_older_format_is_reported_by_name(config):
    table = pq.ParquetFile(keep(config)).read().drop_columns(["identity"])
    path = write_timings(config.out, "random-llada", "mmlu", table)
    with pytest.raises(RunError, match=rf"{path.name}: .*missing: identity.*; delete it"):
        read_timings(config.out)


def test_examples_must_suffice_and_warm_ups_are_those_that_follow(config):
    plan, chosen = choose_methods(replace(config, n=9), MethodChoice(["baseline"]))
    model = load_planned(plan)
    assert len(list(Bench(plan, chosen, model, PROTOCOL))) == 2 + 2 * 3
    with pytest.raises(ConfigError, match=r"9 examples of mmlu are planned, .* plan 10"):
        Bench(plan, chosen, model, TimingProtocol(n=8, warmups=2))


def test_a_bench_leaves_the_runs_alone(config):
    bench = make_bench(replace(config, seed=3), "baseline")
    list(bench)
    assert not config.out.exists()
