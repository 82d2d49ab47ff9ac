import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4.errors import ConfigError, DataError
from c4.tasks import TASKS, Shape, find_task, load_samples, problems
from c4.tasks.examples import code_digest, shuffled

ROWS = [{"question": f"How many? {i}", "answer": f"work\n#### {i:,}"} for i in range(3000, 3030)]


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def test_jsonl_and_parquet_give_the_same_examples(rows_file, tmp_path):
    parquet = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), parquet)
    from_jsonl = load_samples(TASKS["gsm8k"], str(rows_file), n=5, skip=2)
    from_parquet = load_samples(TASKS["gsm8k"], str(parquet), n=5, skip=2)
    assert from_jsonl.samples == from_parquet.samples
    assert from_jsonl.origin != from_parquet.origin


def test_skip_passes_over_the_head_of_one_fixed_shuffle(rows_file):
    whole = load_samples(TASKS["gsm8k"], str(rows_file), skip=0, n=30).samples
    assert [s.source_row for s in whole] != sorted(s.source_row for s in whole)
    assert load_samples(TASKS["gsm8k"], str(rows_file), skip=10, n=5).samples == whole[10:15]
    assert [s.index for s in whole] == list(range(30))


def test_another_seed_gives_another_order(rows_file):
    first, second = (
        load_samples(TASKS["gsm8k"], str(rows_file), skip=0, n=30, seed=seed) for seed in (0, 1)
    )
    assert first.samples != second.samples


@pytest.mark.parametrize("rows", [1, 2, 30, 1319])
@pytest.mark.parametrize("seed", [0, 1, 42])
def test_a_split_is_shuffled_as_the_hub_s_library_shuffles_it(rows, seed):
    datasets = pytest.importorskip("datasets")
    split = datasets.Dataset.from_dict({"row": list(range(rows))})
    assert shuffled(rows, seed) == split.shuffle(seed)["row"][:]


@pytest.mark.parametrize("seed", [0, 7])
def test_rows_that_cannot_be_used_are_dropped_after_the_shuffle(tmp_path, seed):
    """The order of the others does not depend on which rows are left out."""
    letters = {"text": ["a", "b", "c", "d"], "label": list("ABCD")}
    digits = letters | {"label": list("1234")}
    rows = [
        {"question": f"{i}?", "choices": digits if i % 3 == 0 else letters, "answerKey": "A"}
        for i in range(40)
    ]
    path = tmp_path / "arc.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    order = [i for i in np.random.default_rng(seed).permutation(40).tolist() if i % 3]
    loaded = load_samples(TASKS["arc_c"], str(path), seed=seed, skip=4, n=10)
    assert [s.source_row for s in loaded.samples] == order[4:14]
    assert [s.index for s in loaded.samples] == list(range(4, 14))
    assert (loaded.usable, loaded.left_out) == (26, 14)


def test_embedded_problems_are_shuffled_alike_and_made_one_by_one(monkeypatch):
    made = []
    monkeypatch.setattr(
        "c4.tasks.examples.problem", lambda task, i: made.append(i) or problems.problem(task, i)
    )
    loaded = load_samples(TASKS["gsm8k"], "embedded", seed=3, skip=40, n=5)
    order = np.random.default_rng(3).permutation(problems.EVALUATION)[40:45].tolist()
    assert [s.source_row for s in loaded.samples] == made == order


def test_a_seed_below_0_is_refused():
    with pytest.raises(DataError, match="a seed is at least 0, not -1"):
        load_samples(TASKS["gsm8k"], "embedded", seed=-1)


def test_a_short_source_gives_what_it_has_unless_asked_for_more(rows_file):
    assert len(load_samples(TASKS["gsm8k"], str(rows_file), skip=10).samples) == 20
    with pytest.raises(DataError, match=r"30 usable .* use --n of at most 20"):
        load_samples(TASKS["gsm8k"], str(rows_file), skip=10, n=21)


def test_a_damaged_parquet_file_is_refused_by_name(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"rows\.parquet: not a readable Parquet file"):
        load_samples(TASKS["gsm8k"], str(path))


@pytest.mark.parametrize("source", ["nowhere.jsonl", "embeded"])
def test_a_source_that_does_not_exist_names_the_choices(source):
    with pytest.raises(DataError, match="give embedded, hub, or a"):
        load_samples(TASKS["gsm8k"], source)


def test_a_folder_in_the_hub_s_form_is_read_by_the_hub_s_library(tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "gsm8k"
    (folder / "main").mkdir(parents=True)
    datasets.Dataset.from_list(ROWS).to_parquet(folder / "main" / "test-00000-of-00001.parquet")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n"
        "  - split: test\n    path: main/test-*\n---\n"
    )
    loaded = load_samples(TASKS["gsm8k"], str(folder), n=3, skip=0)
    assert loaded.origin.startswith("hub:openai/gsm8k/main/test@")
    assert {s.example.target for s in loaded.samples} <= {str(i) for i in range(3000, 3030)}


def test_an_unreachable_hub_says_what_to_do_instead(monkeypatch):
    datasets = pytest.importorskip("datasets")

    def refuse(*args, **kwargs):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match=r"no route.*use --source embedded, or --source FILE"):
        load_samples(TASKS["gsm8k"], "hub")


def test_a_misspelt_task_is_met_with_the_nearest():
    with pytest.raises(ConfigError, match="no task named 'gsm8'; did you mean gsm8k"):
        find_task("gsm8")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((100, 100, 32), "100 is not a multiple of block length 32"),
        ((64, 30, 16), "30 steps cannot be shared evenly by 4 blocks"),
        ((64, 128, 16), "use at most 64 steps"),
        ((64, 0, 16), "budget must be at least 1"),
    ],
)
def test_a_shape_that_cannot_be_meant_is_refused(shape, message):
    length, budget, block_length = shape
    with pytest.raises(ConfigError, match=message):
        Shape(length=length, budget=budget, block_length=block_length)


def test_other_generators_are_other_problems(tmp_path, monkeypatch):
    folder = tmp_path / "problems"
    shutil.copytree(Path(problems.__file__).parent, folder)
    monkeypatch.setattr(problems, "__file__", str(folder / "__init__.py"))
    digests = {code_digest.__wrapped__()}
    for source in sorted(folder.glob("*.py")):
        source.write_text(source.read_text() + "\n# changed\n")
        digests.add(code_digest.__wrapped__())
    assert len(digests) == 1 + len(list(folder.glob("*.py")))


def test_a_code_row_whose_tests_ask_nothing_of_the_program_is_refused(tmp_path):
    row = {
        "prompt": "Add.",
        "code": "def add(a, b): return a + b",
        "test_imports": [],
        "test_list": ["assert abs(sum([1, 2])) == 3"],
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(DataError, match=r"row 0: its tests call nothing that the reference"):
        load_samples(TASKS["mbpp"], str(path), skip=0, n=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ("[" * 100_000, "line 2: not valid JSON"),
        ("9" * 5_000, "line 2: not valid JSON"),
        ("7", "row 1: "),
        ("null", "row 1: "),
        ("{}", "row 1: no field 'answer'; gsm8k expects the fields of openai/gsm8k"),
        ('{"question": "\\ud800", "answer": "#### 3"}', "row 1: .* holds half of a surrogate pair"),
        ('{"question": "How many?", "answer": 3}', "row 1: "),
    ],
)
def test_one_bad_row_is_named(tmp_path, line, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROWS[0])}\n{line}\n")
    with pytest.raises(DataError, match=message):
        load_samples(TASKS["gsm8k"], str(path), skip=0, n=1)


@pytest.mark.parametrize("name", ["a\0b.jsonl", "x" * 300 + ".jsonl", "~nobody-at-all/rows.jsonl"])
def test_a_name_that_no_file_can_have_is_no_source(name):
    with pytest.raises(DataError, match="no source"):
        load_samples(TASKS["gsm8k"], name)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_an_empty_file_has_no_examples(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    path.touch()
    with pytest.raises(DataError, match=r"has 0 usable examples|not a readable Parquet file"):
        load_samples(TASKS["gsm8k"], str(path))


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zeros.jsonl").symlink_to("/dev/zero")
    for name in ("pipe.jsonl", "zeros.jsonl"):
        with pytest.raises(DataError, match="this is not a file"):
            load_samples(TASKS["gsm8k"], str(tmp_path / name))
