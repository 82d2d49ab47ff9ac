"""The timing protocol, without looking at a clock."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from c4.errors import ConfigError
from c4.record import (
    BENCH,
    Bench,
    Protocol,
    RecordConfig,
    load_planned,
    read_bench,
    write_bench,
)
from c4.replay import MethodChoice, choose_live

PROTOCOL = Protocol(n=3, warmups=2, passes=2)


@pytest.fixture
def config(random_llada, tmp_path):
    return RecordConfig(
        task="mmlu",
        model=str(random_llada),
        source="embedded",
        n=PROTOCOL.examples,
        skip=40,
        out=tmp_path / "runs",
        graded=False,
    )


def make_bench(config, *methods):
    plan, chosen = choose_live(config, MethodChoice(methods))
    return Bench(plan, chosen, load_planned(plan), PROTOCOL)


def test_the_defaults_are_the_paper_s():
    assert Protocol() == Protocol(n=20, warmups=2, passes=3)
    with pytest.raises(ConfigError, match="passes is at least 1, not 0"):
        Protocol(passes=0)


def test_warm_ups_come_first_and_methods_take_turns(config, monkeypatch):
    bench = make_bench(config, "baseline", "fast-dllm")
    seen = []
    real = Bench._time
    monkeypatch.setattr(
        Bench,
        "_time",
        lambda self, method, prompt: (
            seen.append((method.label, next(i for i, p in enumerate(self._prompts) if p is prompt)))
            or real(self, method, prompt)
        ),
    )
    order = list(bench)
    assert len(order) == len(bench) == 2 * (2 + 2 * 3)
    warm = [(label, i) for label in ("baseline", "fast-dllm") for i in (3, 4)]
    timed = [(label, i) for label in ("baseline", "fast-dllm") for i in (0, 1, 2)]
    assert seen == warm + timed + timed
    assert order == [label for label, _ in seen]


def test_a_table_holds_the_definitions(config, monkeypatch):
    clock = iter(range(10_000))
    bench = make_bench(config, "baseline", "fast-dllm")
    monkeypatch.setattr("c4.record._bench.time.perf_counter", lambda: float(next(clock)))
    list(bench)
    table = bench.table()
    assert table.schema == BENCH
    for row in table.to_pylist():
        assert row["tps"] == pytest.approx(16 / row["mean_seconds"])
        assert row["tokens_per_forward"] == pytest.approx(16 / row["mean_passes"])
        assert row["tps_before_end"] <= row["tps"]
        assert row["cv"] == pytest.approx(0)  # both passes tick alike
    base, fast = table.to_pylist()
    assert (base["speedup"], base["step_ratio"], base["mean_passes"]) == (1, 1, 16)
    assert fast["speedup"] == pytest.approx(base["mean_seconds"] / fast["mean_seconds"])
    assert fast["step_ratio"] == pytest.approx(16 / fast["mean_passes"])


def test_no_baseline_no_speedup(config):
    bench = make_bench(config, "cvee")
    assert bench.baseline is None
    list(bench)
    (row,) = bench.table().to_pylist()
    assert row["speedup"] is None
    assert row["step_ratio"] is None


def test_a_baseline_under_another_label_is_one(config):
    plan, chosen = choose_live(config, MethodChoice(["baseline"], label="whole"))
    bench = Bench(plan, chosen, load_planned(plan), PROTOCOL)
    list(bench)
    (row,) = bench.table().to_pylist()
    assert (row["method"], row["speedup"]) == ("whole", 1)


def test_the_newest_timing_of_each_method_counts(config):
    for methods in (("baseline", "cvee"), ("cvee",)):
        bench = make_bench(config, *methods)
        list(bench)
        path = write_bench(bench.plan, bench.table())
        assert pq.ParquetFile(path).schema_arrow.equals(BENCH)
    table = read_bench(config.out)
    rows = {row["method"]: row for row in table.to_pylist()}
    assert rows.keys() == {"baseline", "cvee"}
    assert rows["baseline"]["speedup"] == 1
    assert rows["cvee"]["speedup"] is None  # of the second call
    assert {(row["model"], row["task"]) for row in rows.values()} == {("random-llada", "mmlu")}
    assert read_bench(config.out / "nothing").num_rows == 0


def test_a_bench_leaves_the_live_runs_alone(config):
    bench = make_bench(replace(config, seed=3), "baseline")
    list(bench)
    assert not config.out.exists()
