"""A batched pass: what it computes, and that no sequence depends on the others or on its place."""

import numpy as np
import pytest
import torch
from conftest import save_llada
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.decode.rules.wino import shadow_layout
from c4.errors import ConfigError
from c4.models import Denoiser, find_checkpoint, load_model
from c4.models._architectures import NATIVE
from c4.models._checkpoint import NATIVE_TYPES
from c4.models.batch import BatchDenoiser, Request, find_batch

LENGTH = 12


@pytest.fixture(scope="module")
def models(random_llada, tmp_path_factory):
    """A random model, the same with shifted outputs, the embedded one, and a single wide layer."""
    wide = save_llada(
        tmp_path_factory.mktemp("models") / "wide",
        d_model=512,
        n_heads=8,
        n_kv_heads=8,
        n_layers=1,
        mlp_hidden_size=1376,
    )
    paths = {"random": str(random_llada), "embedded": "tiny", "wide": str(wide)}
    found = {name: load_model(find_checkpoint(path)).denoiser for name, path in paths.items()}
    random = found["random"]
    found["shifted"] = Denoiser(random.model, mask_id=random.mask_id, shift=True)
    return found


def request_of(kind, start, length=LENGTH, seed=0):
    """A request as rules make them: plain, of a front, or with a shadow of a block behind it."""
    ids = np.random.default_rng(seed).integers(0, 256, start + length)
    if kind == "front":
        return Request(ids[: start + length // 2], start)
    if kind == "shadow":
        twins = np.arange(start + 4, start + 8)
        positions, attention = shadow_layout(len(ids), twins)
        shadowed = np.concatenate([ids, np.full(4, 257)])
        return Request(shadowed, start, positions, attention)
    return Request(ids, start)


def alone(denoiser, request):
    return denoiser.logits(
        request.ids, request.start, positions=request.positions, attention=request.attention
    )


@pytest.mark.parametrize("name", ["random", "shifted", "embedded"])
@pytest.mark.parametrize("kind", ["plain", "front", "shadow"])
@pytest.mark.parametrize(("start", "prompt"), [(0, 0), (1, 32), (31, 32), (32, 32), (40, 64)])
def test_padding_hides_nothing_and_moves_nothing(models, name, kind, start, prompt):
    request = request_of(kind, start)
    batch = BatchDenoiser(models[name], size=3, prompt=prompt, length=LENGTH)
    answers = batch.logits([None, request, None])
    assert (answers[0], answers[2]) == (None, None)
    expected = alone(models[name], request)
    torch.testing.assert_close(answers[1].float(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "size", "length", "threads"),
    [
        *((name, 2, 12, 1) for name in ("embedded", "wide", "shifted")),
        *((name, 3, 33, threads) for name in ("embedded", "wide") for threads in (1, 2)),
        *((name, 8, 32, 1) for name in ("embedded", "wide", "shifted")),
    ],
)
def test_neighbours_and_places_do_not_change_a_bit(models, name, size, length, threads):
    """Lengths of 33 too: the last of an odd number of rows has a program of its own in a BLAS."""
    torch.set_num_threads(threads)
    try:
        batch = BatchDenoiser(models[name], size=size, prompt=64, length=length)
        own = request_of("plain", 50, length)
        expected = batch.logits([own, *[None] * (size - 1)])[0].clone()
        for place in range(size):
            kinds = ["plain", "front", "plain"] * size
            others = [
                request_of(kinds[i], 33 + (7 * i + place) % 31, length, seed=1 + i + place)
                for i in range(size)
            ]
            others[place] = own
            assert torch.equal(batch.logits(others)[place], expected)
    finally:
        torch.set_num_threads(1)


@settings(max_examples=25)
@given(data=st.data())
def test_requests_of_all_kinds_share_a_batch_and_stay_themselves(models, data):
    size = data.draw(st.integers(2, 4))
    kinds = st.sampled_from(["plain", "front", "shadow", None])
    batch = BatchDenoiser(models["random"], size=size, prompt=32, length=LENGTH)
    chosen = data.draw(st.lists(kinds, min_size=size, max_size=size))
    requests = [
        kind and request_of(kind, data.draw(st.integers(1, 32)), seed=data.draw(st.integers(0, 9)))
        for kind in chosen
    ]
    together = batch.logits(requests)
    for request, answer in zip(requests, together, strict=True):
        if request is None:
            assert answer is None
        else:
            by_itself = batch.logits([request, *[None] * (size - 1)])[0]
            assert torch.equal(answer, by_itself)


def test_every_pass_has_all_places_and_one_shape(models, monkeypatch):
    shapes = []
    model = models["random"].model
    real = model.forward

    def watch(*args, **inputs):
        shapes.append(tuple(inputs["input_ids"].shape))
        return real(*args, **inputs)

    monkeypatch.setattr(model, "forward", watch)
    batch = BatchDenoiser(models["random"], size=4, prompt=32, length=LENGTH)
    batch.logits([request_of("plain", 20), None, request_of("front", 31), None])
    batch.logits([None, None, None, request_of("plain", 1)])
    assert set(shapes) == {(4, 64)}
    with_checks = len(shapes)
    batch.logits([request_of("plain", 20)] * 4)
    assert len(shapes) == with_checks + 1  # the form was checked before, and is not again


def test_a_device_on_which_places_matter_is_refused(models, monkeypatch):
    batch = BatchDenoiser(models["random"], size=4, prompt=32, length=LENGTH)
    real = BatchDenoiser._pass

    def skewed(self, requests, form):
        output = real(self, requests, form).clone()
        output[-1] *= 1 + 2**-22
        return output

    monkeypatch.setattr(BatchDenoiser, "_pass", skewed)
    with pytest.raises(ConfigError, match=r"depend on its place in a batch of 4; .* --batch 1"):
        batch.logits([request_of("plain", 20), None, None, None])


def test_what_does_not_fit_says_what_to_type(models, monkeypatch):
    def full(*args, **inputs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(models["random"].model, "forward", full)
    batch = BatchDenoiser(models["random"], size=4, prompt=32, length=LENGTH)
    with pytest.raises(ConfigError, match=r"4 sequences of 64 positions .* --batch auto"):
        batch.logits([request_of("plain", 20), None, None, None])


def test_on_a_cpu_one_sequence_at_a_time_is_what_auto_takes(models):
    assert find_batch(models["random"], prompt=32, length=LENGTH, most=100) == 1


@pytest.mark.parametrize(
    ("room", "most", "found"), [(1, 100, 1), (7, 100, 4), (8, 100, 8), (500, 5, 4), (500, 999, 64)]
)
def test_on_a_gpu_auto_doubles_while_it_fits(models, monkeypatch, room, most, found):
    class Elsewhere(Denoiser):
        device = torch.device("cuda")

    monkeypatch.setattr(BatchDenoiser, "fits", lambda self: self.size <= room)
    gpu = Elsewhere(models["random"].model, mask_id=257, shift=False)
    assert find_batch(gpu, prompt=32, length=LENGTH, most=most) == found


def test_the_native_types_are_those_that_can_be_built():
    assert set(NATIVE) == NATIVE_TYPES
