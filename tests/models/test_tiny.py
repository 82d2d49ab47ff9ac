"""The embedded model, as it ships."""

import json

import pytest
from typer.testing import CliRunner

from c4.cli._app import app
from c4.models import find_checkpoint, load_model
from c4.models._checkpoint import EMBEDDED_FOLDER
from c4.tasks import TASKS, Family, Shape
from c4.tasks.problems import problem

BLOCKS = {Family.LETTERS: {4}, Family.LONG_REASONING: {8}, Family.CODE: set(range(8, 13))}


@pytest.fixture(scope="module")
def tiny():
    return load_model(find_checkpoint("tiny"))


def test_it_is_a_llada_of_a_few_megabytes_without_a_shift(tiny):
    weights = (EMBEDDED_FOLDER / "model.safetensors").stat().st_size
    assert tiny.checkpoint.model_type == "llada"
    assert weights <= 15 * 2**20
    assert 1e6 <= tiny.denoiser.model.num_parameters() <= 4e6
    assert not tiny.denoiser.shift
    assert len(tiny.end_ids) == 1
    assert tiny.denoiser.mask_id not in tiny.end_ids


@pytest.mark.parametrize("family", Family)
def test_its_shapes_keep_the_paper_s_block_counts(tiny, family):
    assert Shape(**tiny.checkpoint.shape_for(family)).blocks in BLOCKS[family]


@pytest.mark.parametrize("name", TASKS)
def test_answers_fit_its_shapes_and_lie_where_the_gates_look(tiny, name):
    task = TASKS[name]
    shape = Shape(**tiny.checkpoint.shape_for(task.family))
    tail = int(shape.length * 0.7)
    inside = 0
    for i in range(100):
        made = problem(name, i)
        text = made.solution
        if task.family is Family.LETTERS:
            text = f"{task.read(made.row).target}. {text}"
        encoded = tiny.tokenizer(text, return_offsets_mapping=True)
        assert len(encoded["input_ids"]) < shape.length  # with room for an end token
        answer = task.extract(text)
        first = next(
            k for k, (_, end) in enumerate(encoded["offset_mapping"]) if end > answer.start
        )
        inside += first >= tail if task.family is Family.LONG_REASONING else first < 5
    assert inside >= 97


@pytest.mark.parametrize("task", ["mmlu", "gsm8k", "mbpp"])
def test_replay_and_live_decoding_agree_on_it(task):
    result = CliRunner().invoke(app, ["verify", "--task", task, "--n", "2", "--json"])
    checks = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(checks) == 2 * 7
    assert all(check["agrees"] for check in checks)
