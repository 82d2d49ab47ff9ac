import json
import shutil

import numpy as np
import pytest
import torch
from conftest import llada_tensors, save_bert, save_llada
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, Qwen2Config, Qwen2ForCausalLM

from c4.errors import ModelError
from c4.models import find_checkpoint, load_model, resolve_device
from c4.models._architectures import architecture_of, llada_to_llama
from c4.models._build import build_model
from c4.models._checkpoint import weight_files
from c4.models._hash import weights_hash

ROUNDING = 2e-5
"""Logits of about 7 in float32; sums may be ordered differently on another processor."""


def load_bare(folder):
    """A model without its tokenizer, which the reference checkpoints do not have."""
    checkpoint = find_checkpoint(str(folder))
    architecture = architecture_of(checkpoint)
    model = build_model(architecture, checkpoint, weight_files(checkpoint), "cpu", torch.float32)
    return model, architecture


@pytest.mark.parametrize("name", ["llada-random", "dream-random"])
def test_logits_are_those_of_the_authors_own_code(reference, name):
    model, _ = load_bare(reference / name)
    expected = load_file(reference / name / "expected.safetensors")
    with torch.inference_mode():
        logits = model(input_ids=expected["input_ids"]).logits
    assert (logits - expected["logits"]).abs().max() < ROUNDING
    assert torch.equal(logits.argmax(-1), expected["logits"].argmax(-1))


@pytest.mark.parametrize("name", ["llada-random", "dream-random"])
@pytest.mark.parametrize("extra", [{}, {"rope_scaling": {"rope_type": "default"}}])
def test_transformers_5_writes_the_rotary_base_elsewhere(reference, tmp_path, name, extra):
    folder = shutil.copytree(reference / name, tmp_path / name)
    config = json.loads((folder / "config.json").read_text())
    rope = {"rope_type": "default", "rope_theta": config.pop("rope_theta"), "factor": None}
    (folder / "config.json").write_text(json.dumps(config | {"rope_parameters": rope} | extra))
    model, _ = load_bare(folder)
    expected = load_file(folder / "expected.safetensors")
    with torch.inference_mode():
        logits = model(input_ids=expected["input_ids"]).logits
    assert (logits - expected["logits"]).abs().max() < ROUNDING


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_llada_s_blocks_compute_what_its_equations_say(tmp_path, kv_heads):
    """The forward pass written out, with LLaDA's own tensor names."""
    folder = save_llada(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"n_kv_heads": kv_heads}
    weights = llada_tensors(config, config["vocab_size"])
    width, heads = config["d_model"], config["n_heads"]
    size = width // heads
    for name in list(weights):
        if "k_proj" in name or "v_proj" in name:
            weights[name] = weights[name][: kv_heads * size].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    ids = torch.randint(0, 256, (20,), generator=torch.Generator().manual_seed(1))

    def w(name):
        return weights[f"model.transformer.{name}.weight"]

    def norm(x, scale):
        return scale * x * (x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"]).rsqrt()

    angles = torch.arange(20)[:, None] / 10000.0 ** (torch.arange(0, size, 2) / size)
    cos, sin = (torch.cat([f(angles)] * 2, dim=-1) for f in (torch.cos, torch.sin))

    def rotate(x):  # (heads, 20, size)
        left, right = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-right, left], dim=-1) * sin

    def split(x):
        return x.view(20, -1, size).transpose(0, 1)

    x = w("wte")[ids]
    for i in range(config["n_layers"]):
        h = norm(x, w(f"blocks.{i}.attn_norm"))
        q, k, v = (split(h @ w(f"blocks.{i}.{n}_proj").T) for n in "qkv")
        k, v = (t.repeat_interleave(heads // kv_heads, dim=0) for t in (k, v))
        scores = (rotate(q) @ rotate(k).transpose(1, 2) / size**0.5).softmax(-1)  # no causal mask
        x = x + (scores @ v).transpose(0, 1).reshape(20, width) @ w(f"blocks.{i}.attn_out").T
        h = norm(x, w(f"blocks.{i}.ff_norm"))
        gate = torch.nn.functional.silu(h @ w(f"blocks.{i}.ff_proj").T)
        x = x + (gate * (h @ w(f"blocks.{i}.up_proj").T)) @ w(f"blocks.{i}.ff_out").T
    expected = norm(x, w("ln_f")) @ w("ff_out").T

    model, _ = load_bare(folder)
    with torch.inference_mode():
        logits = model(input_ids=ids[None]).logits[0]
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


@pytest.fixture
def random_dream(tmp_path, random_llada):
    config = Qwen2Config(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    torch.manual_seed(0)
    folder = tmp_path / "dream"
    Qwen2ForCausalLM(config).save_pretrained(folder)
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    keys += ("num_attention_heads", "num_key_value_heads", "max_position_embeddings")
    keys += ("rms_norm_eps", "hidden_act")
    dream = {key: getattr(config, key) for key in keys}
    dream |= {"model_type": "Dream", "rope_theta": 1e6, "mask_token_id": 257, "eos_token_id": 256}
    (folder / "config.json").write_text(json.dumps(dream))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((random_llada / name).read_bytes())
    return folder


def test_dream_s_output_is_shifted_right_by_one_and_the_first_repeated(random_dream):
    loaded = load_model(find_checkpoint(str(random_dream)))
    ids = np.arange(12, dtype=np.int64)
    with torch.inference_mode():
        plain = loaded.denoiser.model(input_ids=torch.from_numpy(ids)[None]).logits[0]
    assert loaded.denoiser.shift
    assert torch.equal(loaded.denoiser.logits(ids, 5), plain[4:11])
    assert torch.equal(loaded.denoiser.logits(ids, 0), plain[[0, *range(11)]])


def test_a_sharded_checkpoint_is_the_same_model(random_llada, tmp_path):
    folder = save_llada(tmp_path / "sharded")
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = {"a.safetensors": {}, "b.safetensors": {}}
    for i, (name, tensor) in enumerate(tensors.items()):
        halves["ab"[i % 2] + ".safetensors"][name] = tensor
    for name, part in halves.items():
        save_file(part, folder / name)
    index = {name: file for file, part in halves.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    ids = np.arange(40, dtype=np.int64)
    whole, sharded = (
        load_model(find_checkpoint(str(f))).denoiser.logits(ids, 8) for f in (random_llada, folder)
    )
    assert torch.equal(whole, sharded)
    assert len(weight_files(find_checkpoint(str(folder)))) == 2


def test_what_is_special_is_read_from_the_checkpoint(random_llada):
    loaded = load_model(find_checkpoint(str(random_llada)))
    assert (loaded.denoiser.mask_id, loaded.end_ids, loaded.denoiser.shift) == (257, (256,), False)
    assert loaded.checkpoint.shape_for("code") == {"length": 16, "budget": 8, "block_length": 4}
    assert (loaded.device, loaded.dtype) == (resolve_device("auto"), "float32")


def test_any_masked_language_model_of_transformers_loads(tmp_path):
    loaded = load_model(find_checkpoint(str(save_bert(tmp_path))))
    ids = np.arange(20, dtype=np.int64)
    bert = BertForMaskedLM.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        expected = bert(input_ids=torch.from_numpy(ids)[None]).logits[0, 4:]
    assert loaded.denoiser.mask_id == 257
    torch.testing.assert_close(loaded.denoiser.logits(ids, 4), expected)


def refusal(folder, **kwargs):
    with pytest.raises(ModelError) as caught:
        load_model(find_checkpoint(str(folder)), **kwargs)
    return str(caught.value)


def test_a_model_that_is_no_masked_one_is_told_apart_from_one_that_needs_code(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    assert "gpt2 is not a masked language model" in refusal(tmp_path)


def test_an_alias_is_not_shadowed_by_a_folder_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "llada").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="cannot get GSAI-ML/LLaDA-8B-Instruct from the hub"):
        find_checkpoint("llada")


def test_pickled_weights_are_refused(tmp_path):
    folder = save_llada(tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "a pickled pytorch_model.bin can run code" in refusal(folder)


def test_an_unknown_tensor_is_named():
    with pytest.raises(ModelError, match=r"unknown tensor 'model\.transformer\.extra\.weight'"):
        llada_to_llama("model.transformer.extra.weight")


def test_a_checkpoint_without_a_mask_token_is_refused(tmp_path):
    folder = save_llada(tmp_path / "maskless", mask_token_id=None)
    (folder / "tokenizer_config.json").write_text("{}")
    assert "names a mask token, so this is not a masked diffusion model" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such-model", "not a folder, not a hub id; not one of tiny, llada, llada-1.5, dream"),
        ("nobody/nothing", "cannot get nobody/nothing from the hub"),
    ],
)
def test_a_model_that_cannot_be_found_says_what_was_tried(name, message):
    with pytest.raises(ModelError, match=message):
        find_checkpoint(name)


def test_a_revision_makes_no_sense_for_a_folder(random_llada):
    with pytest.raises(ModelError, match="--revision names a commit on the hub"):
        find_checkpoint(str(random_llada), "main")


def test_a_snapshot_of_links_to_blobs_loads_in_shards(tmp_path):
    """As the hub's cache lays it out: an index beside links that lead outside the folder."""
    folder = save_llada(tmp_path / "snapshots" / "commit")
    (tmp_path / "blobs").mkdir()
    for name, blob in (("model.safetensors", "a" * 64), ("config.json", "b" * 40)):
        (folder / name).rename(tmp_path / "blobs" / blob)
        (folder / name).symlink_to(f"../../blobs/{blob}")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    weight_map = {"model.transformer.wte.weight": "model-00001-of-00001.safetensors"}
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_model(find_checkpoint(str(folder))).denoiser.mask_id == 257


def test_the_hash_of_a_cached_weight_file_is_its_blob_s_name(tmp_path):
    (tmp_path / "file").write_bytes(b"weights")
    plain = weights_hash([tmp_path / "file"])
    blob = tmp_path / "9bfbb1a2a5a2d6e5a1c6b0a1c1b2f5c8e1c2d3b4a5968778695a4b3c2d1e0f10"
    blob.write_bytes(b"weights")
    (tmp_path / "link").symlink_to(blob)
    assert weights_hash([tmp_path / "link"]) != plain  # the name is trusted, the bytes not read
