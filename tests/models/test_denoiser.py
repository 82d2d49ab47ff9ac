import numpy as np
import pytest
import torch
from conftest import save_llada
from transformers import BertConfig, BertForMaskedLM

from c4.errors import ModelError
from c4.models import Denoiser, find_checkpoint, load_model, read_logits


@pytest.fixture(scope="module")
def denoiser(random_llada):
    return load_model(find_checkpoint(str(random_llada))).denoiser


IDS = np.random.default_rng(0).integers(0, 256, 30)


def test_signals_are_what_their_definitions_say():
    logits = torch.randn(200, 50, generator=torch.Generator().manual_seed(0)) * 5
    reading = read_logits(logits.clone(), mask_id=7)
    probability = logits.double().softmax(-1)  # the mask has its share of it
    allowed = [i for i in range(50) if i != 7]
    top = logits[:, allowed].sort(-1, descending=True).values
    best = torch.tensor(allowed)[logits[:, allowed].argmax(-1)]
    np.testing.assert_array_equal(reading.token, best.numpy())
    expected = probability.gather(1, best[:, None])[:, 0]
    np.testing.assert_allclose(reading.confidence, expected, rtol=1e-5)
    np.testing.assert_allclose(reading.gap, (top[:, 0] - top[:, 1]).numpy(), rtol=1e-6)
    entropy = -(probability * probability.log()).sum(-1)
    np.testing.assert_allclose(reading.entropy, entropy, rtol=1e-4, atol=1e-5)
    assert reading.confidence.dtype == np.float32


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


def test_the_mask_is_never_predicted_but_keeps_its_probability():
    reading = read_logits(torch.tensor([[2.0, 1.0, 3.0]]), mask_id=2)
    e2, e1, e3 = np.exp([2.0, 1.0, 3.0])
    assert reading.token.tolist() == [0]
    assert reading.gap.tolist() == [1.0]
    assert reading.confidence[0] == pytest.approx(e2 / (e1 + e2 + e3))


def test_readings_take_positions_and_attention_too(denoiser):
    attention = np.ones((30, 30), dtype=np.bool_)
    plain = denoiser.read(IDS, 10)
    explicit = denoiser.read(IDS, 10, positions=np.arange(30), attention=attention)
    np.testing.assert_array_equal(plain.token, explicit.token)
    np.testing.assert_allclose(plain.entropy, explicit.entropy, rtol=1e-4)


def test_the_usual_positions_and_attention_change_nothing(denoiser):
    explicit = denoiser.logits(
        IDS, 10, positions=np.arange(30), attention=np.ones((30, 30), dtype=np.bool_)
    )
    torch.testing.assert_close(explicit, denoiser.logits(IDS, 10))


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


def window_of(reading, window):
    return type(reading)(**{name: values[window] for name, values in vars(reading).items()})


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("window", [slice(0, 5), slice(5, 10), slice(15, 20)])
def test_a_window_of_an_unchanged_sequence_reads_as_in_a_full_pass(denoiser, window, shift):
    reader = Denoiser(denoiser.model, mask_id=denoiser.mask_id, shift=shift)
    reading, memory = reader.remember(IDS, 10, window)
    assert_close(reading, reader.read(IDS, 10))
    for _ in range(2):  # reading leaves the memory as it was
        assert_close(reader.read_window(IDS, memory), window_of(reading, window))


@pytest.mark.parametrize("shift", [False, True])
def test_a_window_sees_its_own_changes_and_no_others(one_layer, denoiser, shift):
    window = slice(5, 10)
    inside, outside = IDS.copy(), IDS.copy()
    inside[16:18] = (7, 8)
    outside[25] = 9
    exact = Denoiser(one_layer.model, mask_id=one_layer.mask_id, shift=shift)
    _, memory = exact.remember(IDS, 10, window)
    assert_close(exact.read_window(inside, memory), window_of(exact.read(inside, 10), window))
    stale = Denoiser(denoiser.model, mask_id=denoiser.mask_id, shift=shift)
    before, memory = stale.remember(IDS, 10, window)
    assert_close(stale.read_window(outside, memory), window_of(before, window))
    assert (stale.read(outside, 10).gap[window] != before.gap[window]).any()


def test_a_model_without_keys_and_values_is_refused():
    size = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1}
    config = BertConfig(vocab_size=20, num_hidden_layers=1, **size)
    reader = Denoiser(BertForMaskedLM(config), mask_id=19, shift=False)
    with pytest.raises(ModelError, match="without a cache"):
        reader.remember(np.arange(10), 4, slice(0, 3))
