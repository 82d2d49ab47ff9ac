import numpy as np
import pytest
import torch
from conftest import save_llada
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertForMaskedLM

from c4.decode.rules.wino import shadow_layout
from c4.errors import ModelError
from c4.models import Denoiser, find_checkpoint, load_model, read_logits


@pytest.fixture(scope="module")
def denoiser(random_llada):
    return load_model(find_checkpoint(str(random_llada))).denoiser


IDS = np.random.default_rng(0).integers(0, 256, 30)


def test_certainty_has_no_negative_entropy():
    logits = torch.zeros(3, 10)
    logits[:, 4] = 200.0
    reading = read_logits(logits, mask_id=0)
    assert (reading.token == 4).all()
    assert (reading.confidence == 1).all()
    assert (reading.entropy == 0).all()


def test_only_the_generated_positions_are_read(denoiser):
    assert denoiser.logits(IDS, 0).shape == (30, 258)
    torch.testing.assert_close(denoiser.logits(IDS, 12), denoiser.logits(IDS, 0)[12:])
    assert denoiser.read(IDS, 12).token.shape == (18,)


def test_the_usual_positions_and_attention_change_nothing(denoiser):
    usual = {"positions": np.arange(30), "attention": np.ones((30, 30), dtype=np.bool_)}
    assert_close(denoiser.read(IDS, 10, **usual), denoiser.read(IDS, 10))


def test_a_hidden_key_does_not_matter(denoiser):
    attention = np.ones((30, 30), dtype=np.bool_)
    attention[:, 5] = False
    changed = IDS.copy()
    changed[5] = (IDS[5] + 1) % 256
    seen, hidden = (
        [denoiser.logits(ids, 10, attention=mask) for ids in (IDS, changed)]
        for mask in (None, attention)
    )
    assert not torch.allclose(*seen)
    torch.testing.assert_close(*hidden)


def test_a_shadow_behind_the_sequence_that_nobody_sees_changes_nothing(denoiser):
    """What WINO needs: more rows, at positions that are taken, behind an attention mask."""
    longer = np.concatenate([IDS, np.full(4, denoiser.mask_id)])
    positions = np.concatenate([np.arange(30), np.arange(26, 30)])
    attention = np.ones((34, 34), dtype=np.bool_)
    attention[:30, 30:] = False
    with_shadow = denoiser.logits(longer, 10, positions=positions, attention=attention)
    torch.testing.assert_close(with_shadow[:20], denoiser.logits(IDS, 10))
    assert with_shadow.shape[0] == 24


def assert_close(one, other):
    np.testing.assert_array_equal(one.token, other.token)
    for name in ("confidence", "gap", "entropy"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-4)


@pytest.fixture(scope="module")
def one_layer(tmp_path_factory):
    """What a position of the only layer shows to others depends on its own token alone."""
    folder = save_llada(tmp_path_factory.mktemp("models") / "one-layer", n_layers=1)
    return load_model(find_checkpoint(str(folder))).denoiser


def outputs(denoiser, ids, rows):
    """What a full pass computes at some rows."""
    plain = Denoiser(denoiser.model, mask_id=denoiser.mask_id, shift=False)
    return plain.logits(ids, 0)[rows]


@pytest.mark.parametrize("rows", [range(10, 15), range(15, 20), range(15, 30), [12, 13, 28, 29]])
def test_rows_of_an_unchanged_sequence_are_recalled_as_in_a_full_pass(denoiser, rows):
    rows = np.array(rows)
    logits, memory = denoiser.remember(IDS, 10, rows)
    torch.testing.assert_close(logits, denoiser.logits(IDS, 10))
    for _ in range(2):  # recalling leaves the memory as it was
        torch.testing.assert_close(denoiser.recall(IDS, memory), outputs(denoiser, IDS, rows))


def test_recalled_rows_see_their_own_changes_and_no_others(one_layer, denoiser):
    rows = np.arange(15, 20)
    inside, outside = IDS.copy(), IDS.copy()
    inside[16:18] = (7, 8)
    outside[25] = 9
    _, memory = one_layer.remember(IDS, 10, rows)
    recalled = one_layer.recall(inside, memory)
    torch.testing.assert_close(recalled, outputs(one_layer, inside, rows))
    _, memory = denoiser.remember(IDS, 10, rows)
    torch.testing.assert_close(denoiser.recall(outside, memory), outputs(denoiser, IDS, rows))
    assert not torch.allclose(outputs(denoiser, outside, rows), outputs(denoiser, IDS, rows))


def test_what_lies_behind_a_shorter_sequence_is_hidden_from_recalled_rows(one_layer):
    rows = np.arange(15, 20)
    _, memory = one_layer.remember(IDS, 10, rows)
    front = one_layer.recall(IDS[:18], memory)
    torch.testing.assert_close(front, outputs(one_layer, IDS[:18], rows[:3]))


def test_recalled_rows_take_positions_and_attention_of_the_whole(denoiser):
    """What WINO needs: a shadow behind the sequence, computed anew with the block it stands for."""
    twins = np.arange(26, 30)
    longer = np.concatenate([IDS, np.full(4, denoiser.mask_id)])
    positions, attention = shadow_layout(30, twins)
    rows = np.concatenate([twins, np.arange(30, 34)])
    given = {"positions": positions, "attention": attention}
    logits, memory = denoiser.remember(longer, 10, rows, **given)
    torch.testing.assert_close(denoiser.recall(longer, memory, **given), logits[rows - 10])


def test_a_model_without_keys_and_values_is_refused():
    size = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1}
    config = BertConfig(vocab_size=20, num_hidden_layers=1, **size)
    reader = Denoiser(BertForMaskedLM(config), mask_id=19, shift=False)
    with pytest.raises(ModelError, match="without a cache"):
        reader.remember(np.arange(10), 4, np.arange(3))


LOGITS = st.lists(st.floats(-40, 40, width=32), min_size=4, max_size=60)


@given(st.lists(st.integers(0, 2**32), min_size=2, max_size=9), st.sampled_from([5, 20, 40]))
def test_odds_keep_the_order_of_exact_probabilities_where_confidences_are_all_1(seeds, top):
    rows = [np.random.default_rng(seed).normal(0, 1, 500).clip(-4, 4) for seed in seeds]
    logits = torch.tensor(np.array(rows), dtype=torch.float32)
    logits[:, 0] = top + torch.arange(len(rows)) / 64
    odds = read_logits(logits.clone(), mask_id=499).odds
    against = (logits[:, 1:].double() - logits[:, :1].double()).exp().sum(-1)
    np.testing.assert_allclose(odds, against, rtol=1e-5)
    np.testing.assert_array_equal(odds.argsort(kind="stable"), against.argsort(stable=True))


@given(LOGITS, st.integers(0, 3))
def test_a_reading_is_the_softmax_s(values, mask_id):
    """The mask has its share of the probability, and is never what is predicted."""
    # More rows than are read at a time.
    logits = torch.tensor([values, values[::-1]] * 40, dtype=torch.float32)
    reading = read_logits(logits.clone(), mask_id)
    exact = logits.double()
    p = exact.softmax(-1)
    exact[:, mask_id] = -torch.inf
    top = exact.topk(2, dim=-1).values
    token = torch.from_numpy(reading.token)[:, None]
    own = p.gather(1, token)[:, 0]
    assert torch.equal(exact.gather(1, token)[:, 0], top[:, 0])
    assert reading.confidence.dtype == np.float32
    np.testing.assert_allclose(reading.confidence, own, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(reading.gap, top[:, 0] - top[:, 1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(reading.entropy, torch.special.entr(p).sum(-1), rtol=1e-4, atol=1e-4)


def test_a_token_that_cannot_come_changes_nothing():
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    impossible = torch.cat([logits, torch.full((3, 5), -torch.inf)], dim=-1)
    assert_close(read_logits(impossible, 49), read_logits(logits.clone(), 49))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_are_never_a_reading(value):
    logits = torch.zeros(4, 10)
    logits[2, 7] = value
    with pytest.raises(ModelError, match="not a number at generated position 2"):
        read_logits(logits, mask_id=9)
