"""Weights are read tensor by tensor into the module that transformers would have made of them."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import LLADA, llada_tensors, save_bert, save_llada
from safetensors.torch import load_file, save_file

from c4.errors import ModelError
from c4.models import _build, _load_progress, find_checkpoint
from c4.models._architectures import architecture_of
from c4.models._build import build_model
from c4.models._checkpoint import weight_files

WEIGHTS = "model.safetensors"
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def build(folder, dtype=torch.float32):
    checkpoint = find_checkpoint(str(folder))
    return build_model(
        architecture_of(checkpoint), checkpoint, weight_files(checkpoint), "cpu", dtype
    )


def refusal(folder, dtype=torch.float32):
    with pytest.raises(ModelError) as caught:
        build(folder, dtype)
    return str(caught.value)


def loaded_whole(folder, dtype):
    """The same module from tensors that are all in memory, as transformers itself loads them."""
    architecture = architecture_of(find_checkpoint(str(folder)))
    architecture.config.is_causal = False
    stored = load_file(folder / WEIGHTS)
    # Copies, because a tensor that safetensors maps into memory changes with its file.
    tensors = {architecture.rename(name): t.to(dtype, copy=True) for name, t in stored.items()}
    return architecture.model.from_pretrained(
        None, config=architecture.config, state_dict=tensors, dtype=dtype
    )


def assert_same(model, expected):
    """Every parameter and every buffer, also those that are in no checkpoint, bit by bit."""
    for kind in ("named_parameters", "named_buffers"):
        found, wanted = dict(getattr(model, kind)()), dict(getattr(expected, kind)())
        assert found.keys() == wanted.keys()
        for name, tensor in wanted.items():
            assert found[name].dtype == tensor.dtype, name
            assert torch.equal(found[name], tensor), name
    assert model.config.to_dict() == expected.config.to_dict()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stored", [*DTYPES, torch.float64])
@pytest.mark.parametrize("name", ["llada-random", "dream-random"])
def test_a_model_is_what_transformers_would_have_loaded(reference, tmp_path, name, stored, dtype):
    folder = shutil.copytree(reference / name, tmp_path / name)
    tensors = {key: tensor.to(stored) for key, tensor in load_file(folder / WEIGHTS).items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    model = build(folder, dtype)
    assert_same(model, loaded_whole(folder, dtype))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def tied(folder, change=0.0, *, stored=True):
    """A checkpoint whose output layer may be stored beside the embedding it is tied to."""
    save_llada(folder, weight_tying=True)
    tensors = load_file(folder / WEIGHTS)
    head = tensors["model.transformer.wte.weight"].clone()
    head[-1, -1] += change
    if not stored:
        del tensors["model.transformer.ff_out.weight"]
        save_file(tensors, folder / WEIGHTS)
        return folder
    save_file(tensors | {"model.transformer.ff_out.weight": head}, folder / WEIGHTS)
    return folder


@pytest.mark.parametrize("stored", [True, False])
def test_a_tied_output_layer_is_the_embedding(tmp_path, stored):
    model = build(tied(tmp_path / "tied", stored=stored), torch.bfloat16)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert model.get_input_embeddings().weight.is_contiguous()


def test_a_tied_output_layer_that_differs_in_its_last_number_is_refused(tmp_path):
    assert "the weights hold two different ones" in refusal(tied(tmp_path / "tied", change=1.0))


def test_a_model_does_not_change_with_its_file(tmp_path):
    folder = save_llada(tmp_path / "model")
    model = build(folder)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(bytes((folder / WEIGHTS).stat().st_size))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("dtype", DTYPES)
def test_another_class_is_what_transformers_would_have_loaded(tmp_path, dtype):
    folder = save_bert(tmp_path / "bert")
    assert_same(build(folder, dtype), loaded_whole(folder, dtype))


def test_another_class_may_have_old_names_and_tensors_that_are_not_used(tmp_path):
    """As the first BERT checkpoints have them."""
    folder = save_bert(tmp_path / "bert")
    expected = loaded_whole(folder, torch.float32)
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = load_file(folder / WEIGHTS)
    for new, name in old.items():
        tensors = {key.replace(new, name): tensor for key, tensor in tensors.items()}
    tensors["bert.embeddings.position_ids"] = torch.arange(32)
    tensors["cls.seq_relationship.weight"] = torch.ones(2, 16)
    tensors["unused"] = torch.ones(2).to(torch.float8_e4m3fn)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    assert_same(build(folder), expected)


def cut(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut, "damaged safetensors file (Error while deserializing header"),
        (lambda path: path.unlink(), "damaged safetensors file (No such file or directory"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_file_that_is_damaged_meanwhile_is_named(tmp_path, monkeypatch, change, message, dtype):
    folder = save_llada(tmp_path / "model")
    check = _build._check_memory
    monkeypatch.setattr(
        _build, "_check_memory", lambda *args: [check(*args), change(folder / WEIGHTS)]
    )
    assert f"{WEIGHTS}: {message}" in refusal(folder, dtype)


def test_a_device_that_is_full_is_said_to_be(tmp_path, monkeypatch):
    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(_build, "read_tensor", full)
    message = refusal(save_llada(tmp_path / "model"))
    assert "cpu has too little free memory for the weights, which need 0.0 GB" in message


def test_a_user_who_waits_for_weights_is_told(tmp_path, monkeypatch, caplog):
    folder = save_llada(tmp_path / "model")
    build(folder)
    assert not caplog.text
    monkeypatch.setattr(_load_progress, "QUIET_SECONDS", -1.0)
    build(folder)
    assert caplog.text.count("loading weights: 0.0 of 0.0 GB") == 1


@pytest.fixture
def unread(monkeypatch):
    """No tensor may be read."""

    def fail(*args):
        raise AssertionError("a tensor was read")

    monkeypatch.setattr(_build, "read_tensor", fail)


PARAMETERS = 258 * 32 * 2 + 2 * (4 * 32**2 + 3 * 32 * 48 + 2 * 32) + 32


@pytest.mark.parametrize(
    ("dtype", "free", "message"),
    [
        (
            torch.float32,
            4e9,
            "need 4.8 GB of memory as float32, and 4.0 GB are available; --",
        ),
        (torch.float32, 4e9, "; --dtype bfloat16 needs 2.4 GB"),
        (torch.float32, 1e9, "1.0 GB are available; even --dtype bfloat16 needs 2.4 GB"),
        (torch.bfloat16, 1e9, "1.0 GB are available; use a smaller model or a machine with more"),
        (torch.float16, 1e9, "need 2.4 GB of memory as float16, and 1.0 GB are available; use a"),
    ],
)
def test_weights_that_do_not_fit_are_refused_unread(
    tmp_path, monkeypatch, unread, dtype, free, message
):
    folder = save_llada(tmp_path / "model")
    scale = 4.8e9 / (PARAMETERS * 4)  # as if every number stood for many
    monkeypatch.setattr(_build, "_gigabytes", lambda count: f"{count * scale / 1e9:.1f} GB")
    monkeypatch.setattr(_build, "available_memory", lambda: int(free / scale))
    assert message in refusal(folder, dtype)


@pytest.mark.parametrize("name", ["llada", "tied", "bert"])
def test_weights_that_just_fit_are_loaded(tmp_path, monkeypatch, name):
    makers = {"llada": save_llada, "tied": tied, "bert": save_bert}
    folder = makers[name](tmp_path / name)
    weights = sum(tensor.nbytes for tensor in build(folder).parameters())
    monkeypatch.setattr(_build, "available_memory", lambda: weights)
    assert build(folder)
    monkeypatch.setattr(_build, "available_memory", lambda: weights - 1)
    assert "--dtype bfloat16 needs" in refusal(folder)
    monkeypatch.setattr(_build, "available_memory", lambda: None)
    assert build(folder)  # nothing is known about memory, so nothing is refused


PEAK = """
import sys
from pathlib import Path
import torch
from c4.models import find_checkpoint
from c4.models._architectures import architecture_of
from c4.models._build import build_model
from c4.models._checkpoint import weight_files

def memory(key):
    (line,) = [s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith(key)]
    return int(line.split()[1]) * 1024

def build(folder, dtype):
    found = find_checkpoint(folder)
    return build_model(architecture_of(found), found, weight_files(found), "cpu", dtype)

build(sys.argv[1], torch.float32)  # whatever is imported late is there now
for dtype in (torch.bfloat16, torch.float32):  # the highest mark never falls: the smaller one first
    before = memory("VmRSS")
    model = build(sys.argv[2], dtype)
    print(memory("VmHWM") - before - sum(p.nbytes for p in model.parameters()))
    del model
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_at_most_one_tensor_is_in_memory_twice(tmp_path):
    small, large = save_llada(tmp_path / "small"), tmp_path / "large"
    large.mkdir()
    config = LLADA | {"d_model": 1024, "n_layers": 2, "vocab_size": 20_000}
    (large / "config.json").write_text(json.dumps(config))
    tensors = llada_tensors(config, config["vocab_size"])
    shards = {name: f"{int('ff_out' in name)}.safetensors" for name in tensors}
    for shard in set(shards.values()):
        part = {n: tensors[n].to(torch.bfloat16) for n in tensors if shards[n] == shard}
        save_file(part, large / shard)
    (large / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    command = [sys.executable, "-c", PEAK, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    beyond = [int(line) for line in done.stdout.split()]
    embedding = config["vocab_size"] * config["d_model"] * 2
    assert max(beyond) < 1.2 * embedding, beyond
