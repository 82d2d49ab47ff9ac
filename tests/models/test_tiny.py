"""The embedded model, as it ships."""

import json

import pytest

from c4.models import find_checkpoint, load_model
from c4.models._checkpoint import EMBEDDED_FOLDER
from c4.tasks import Family, Shape
from tests.commands import c4

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


@pytest.mark.parametrize("task", ["mmlu", "gsm8k", "mbpp"])
def test_replay_and_live_decoding_agree_on_it(task):
    result = c4("verify", "--task", task, "--n", "1", "--json")
    checks = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(checks) == 7
    assert all(check["agrees"] for check in checks)
