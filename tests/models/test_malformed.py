"""Checkpoints with one thing wrong: each must end in a sentence that names it, and in seconds."""

import json
import os
import random
import shutil
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import torch
from conftest import byte_tokenizer, save_bert
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from c4 import templates
from c4.errors import C4Error, ConfigError, ModelError
from c4.models import find_checkpoint, load_model
from tests.cli.fuzz import judge
from tests.commands import c4

REFERENCE = Path(__file__).parents[1] / "data" / "checkpoints"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def make_whole(base, folder):
    """A checkpoint with nothing wrong, and with a tokenizer: `llada`, `dream` or `bert`."""
    if base == "bert":
        return save_bert(folder)
    shutil.copytree(REFERENCE / f"{base}-random", folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    named = {"eos_token": "<|end|>", "mask_token": "<|mask|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return folder


def edit(folder, file="config.json", /, without=(), **changes):
    values = json.loads((folder / file).read_text()) | changes
    (folder / file).write_text(json.dumps({k: v for k, v in values.items() if k not in without}))


ROPE = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5e5}
MOE = {"num_experts": 64, "num_experts_per_tok": 8, "hidden_size": 2048, "num_hidden_layers": 16}
CHANGES = [
    # LLaDA: keys that are missing, of another type, or absurd
    ("llada", {"n_layers": None}, "config.json lacks n_layers"),
    ("llada", {"n_heads": None}, "config.json lacks n_heads"),
    ("llada", {"d_model": None}, "config.json lacks d_model"),
    ("llada", {"max_sequence_length": None}, "config.json lacks max_sequence_length"),
    ("llada", {"mlp_hidden_size": None, "mlp_ratio": None}, "config.json lacks mlp_ratio"),
    ("llada", {"vocab_size": None, "embedding_size": None}, "config.json lacks vocab_size"),
    ("llada", {"n_layers": "two"}, 'n_layers is "two", not a whole number'),
    ("llada", {"n_layers": 2.0}, "n_layers is 2.0, not a whole number"),
    ("llada", {"n_layers": True}, "n_layers is true, not a whole number"),
    ("llada", {"n_layers": 0}, "n_layers is 0, not a whole number from 1"),
    ("llada", {"n_layers": -3}, "n_layers is -3"),
    ("llada", {"n_layers": 10**9}, "n_layers is 1000000000"),
    ("llada", {"n_layers": 9_999}, "asks for 9999 layers, but the weights hold 30 tensors"),
    ("llada", {"n_layers": 2}, "has an unknown tensor model.layers.2"),
    ("llada", {"n_layers": [3]}, "n_layers is [3]"),
    ("llada", {"d_model": 10**9}, "d_model is 1000000000"),
    ("llada", {"d_model": 2**20}, "wrong shape for tensor"),
    ("llada", {"d_model": 66}, "d_model 66 cannot be split into n_heads 4"),
    ("llada", {"n_heads": 5}, "d_model 64 cannot be split into n_heads 5"),
    ("llada", {"n_heads": 0}, "n_heads is 0"),
    ("llada", {"n_kv_heads": 3}, "n_kv_heads 3 does not divide"),
    ("llada", {"n_kv_heads": 8}, "n_kv_heads is 8"),
    ("llada", {"n_kv_heads": 2}, "wrong shape for tensor model.layers.0.self_attn.k_proj.weight"),
    ("llada", {"multi_query_attention": True}, "multi_query_attention asks for 1"),
    ("llada", {"mlp_hidden_size": 97}, "wrong shape for tensor model.layers.0.mlp"),
    ("llada", {"mlp_hidden_size": 10**12}, "mlp_hidden_size is 1000000000000"),
    ("llada", {"vocab_size": 301}, "embedding_size is 300, not a whole number from 301"),
    ("llada", {"embedding_size": 10**15}, "embedding_size is 1000000000000000"),
    ("llada", {"embedding_size": 301}, "wrong shape for tensor"),
    ("llada", {"rms_norm_eps": 0}, "rms_norm_eps is 0, not a number above zero"),
    ("llada", {"rms_norm_eps": float("nan")}, "rms_norm_eps is NaN"),
    ("llada", {"rms_norm_eps": 10**400}, "rms_norm_eps is 1000"),
    ("llada", {"rope_theta": "5e5"}, 'rope_theta is "5e5"'),
    ("llada", {"rope_theta": float("inf")}, "rope_theta is Infinity"),
    ("llada", {"weight_tying": "no"}, 'weight_tying is "no", neither true nor false'),
    ("llada", {"weight_tying": True}, "ties the output layer to the embedding, but"),
    # LLaDA: settings that would load and be wrong
    ("llada", {"block_type": "sequential"}, 'has block_type="sequential"'),
    ("llada", {"alibi": True}, "has alibi=true"),
    ("llada", {"clip_qkv": 8.0}, "checkpoint has clip_qkv=8.0; only null is supported"),
    ("llada", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling is"),
    ("llada", {"rope_parameters": ROPE}, "rope_parameters is"),
    ("llada", {"rope_parameters": {"rope_theta": 1e4}}, "name different bases"),
    ("llada", {"rope_parameters": [1]}, "rope_parameters is [1], not an object"),
    ("llada", {"layer_norm_type": "default"}, 'has layer_norm_type="default"'),
    ("llada", {"layer_norm_with_affine": False}, "has layer_norm_with_affine=false"),
    ("llada", {"bias_for_layer_norm": True}, "has bias_for_layer_norm=true"),
    ("llada", {"block_group_size": 3}, "has block_group_size=3"),
    ("llada", {"attention_layer_norm": True}, "has attention_layer_norm=true"),
    ("llada", {"scale_logits": True}, "has scale_logits=true"),
    ("llada", {"quantization_config": {"bits": 4}}, "the weights are quantized"),
    ("llada", MOE, "this is LLaDA-MoE, a mixture of experts (config.json has num_experts)"),
    ("llada", {"model_type": "llada_moe"}, "this is LLaDA-MoE"),
    ("llada", {"model_type": "llada2_moe"}, "LLaDA 2 mixture of experts"),
    ("llada", {"d_model": None, "hidden_size": 64}, "hidden_size instead of d_model"),
    ("llada", {"model_type": None}, "config.json lacks model_type"),
    ("llada", {"model_type": ["llada"]}, "would need code from the checkpoint itself"),
    # Special tokens
    ("llada", {"mask_token_id": "<|mask|>"}, 'mask_token_id is "<|mask|>", not a token id'),
    ("llada", {"mask_token_id": 299.0}, "mask_token_id is 299.0"),
    ("llada", {"mask_token_id": True}, "mask_token_id is true"),
    ("llada", {"mask_token_id": -1}, "mask_token_id is -1"),
    ("llada", {"mask_token_id": 300}, "mask_token_id is 300, not a token id from 0 to 299"),
    ("llada", {"mask_token_id": [299]}, "mask_token_id is [299]"),
    ("llada", {"mask_token_id": 1}, "token 1 is named as the mask and as an end of text"),
    ("llada", {"eos_token_id": "</s>"}, 'eos_token_id is "</s>"'),
    ("llada", {"eos_token_id": 1.5}, "eos_token_id is 1.5"),
    ("llada", {"eos_token_id": -100}, "eos_token_id is -100"),
    ("llada", {"eos_token_id": [1, 300]}, "eos_token_id is 300"),
    ("llada", {"eos_token_id": {"id": 1}}, 'eos_token_id is {"id": 1}'),
    # Dream
    ("dream", {"num_hidden_layers": None}, "config.json lacks num_hidden_layers"),
    ("dream", {"hidden_size": None}, "config.json lacks hidden_size"),
    ("dream", {"rms_norm_eps": None}, "config.json lacks rms_norm_eps"),
    ("dream", {"rope_theta": None}, "config.json lacks rope_theta"),
    ("dream", {"hidden_act": "sillu"}, 'hidden_act is "sillu"'),
    ("dream", {"hidden_act": 3}, "hidden_act is 3, not a string"),
    ("dream", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
    ("dream", {"num_hidden_layers": 4}, "lacks tensor model.layers.3"),
    ("dream", {"vocab_size": 301}, "wrong shape for tensor"),
    ("dream", {"vocab_size": 257, "mask_token_id": 5}, "last token is '<|mask|>' with id 257"),
    ("dream", {"intermediate_size": -96}, "intermediate_size is -96"),
    ("dream", {"num_key_value_heads": None}, "wrong shape for tensor"),
    ("dream", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling is"),
    ("dream", {"rope_scaling": "yarn"}, 'rope_scaling is "yarn"'),
    ("dream", {"rope_parameters": ROPE}, "rope_parameters is"),
    ("dream", {"use_sliding_window": True}, "has use_sliding_window=true"),
    ("dream", {"layer_types": ["sliding_attention"] * 3}, 'layer_types is ["sliding_attention"'),
    ("dream", {"layer_types": 3}, "layer_types is 3"),
    ("dream", {"partial_rotary_factor": 0.5}, "has partial_rotary_factor=0.5"),
]


BERT = [
    ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
    ({"num_hidden_layers": "one"}, 'num_hidden_layers is "one"'),
    ({"num_hidden_layers": 2}, "lacks tensor bert.encoder.layer.1"),
    ({"hidden_size": "wide"}, "transformers refuses what config.json says"),
    ({"hidden_size": 15}, "transformers cannot build this model"),
    ({"hidden_size": 32}, "wrong shape for tensor"),
    ({"intermediate_size": 10**9}, "wrong shape for tensor"),
    ({"hidden_act": "sillu"}, "transformers cannot build this model"),
    ({"vocab_size": 257}, "the tokenizer's last token is '<|mask|>'"),
    ({"mask_token_id": 258}, "mask_token_id is 258"),
    ({"max_position_embeddings": 10**10}, "wrong shape for tensor"),
]


def raw(file, data):
    return lambda folder: (folder / file).write_bytes(data)


def text(file, words):
    return raw(file, words.encode())


def tensors(change):
    """An edit of the weights' dictionary."""

    def apply(folder):
        weights = load_file(folder / WEIGHTS)
        save_file(change(weights), folder / WEIGHTS, metadata={"format": "pt"})

    return apply


def index(weight_map):
    return text(INDEX, json.dumps({"weight_map": weight_map}))


def other_dtype(dtype):
    return tensors(lambda w: w | {"model.norm.weight": w["model.norm.weight"].to(dtype)})


def two_shards(folder):
    (folder / WEIGHTS).rename(folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    index({"x": "a.safetensors", "y": "b.safetensors"})(folder)


def cut(share):
    def apply(folder):
        data = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(data[: int(len(data) * share)])

    return apply


def whole_header(change):
    """An edit of the whole header, as text."""

    def apply(folder):
        data = (folder / WEIGHTS).read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        new = change(data[8 : 8 + size])
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(new)) + new + data[8 + size :])

    return apply


def header(change):
    """An edit of one tensor's header, which may then lie about the bytes behind it."""

    def changed(text):
        values = json.loads(text)
        change(values["model.norm.weight"])
        return json.dumps(values).encode()

    return whole_header(changed)


def outside(folder):
    (folder / WEIGHTS).rename(folder.parent / "outside.safetensors")
    index({"x": "../outside.safetensors"})(folder)


def absolute(folder):
    outside(folder)
    index({"x": str(folder.parent / "outside.safetensors")})(folder)


def replaced(file, make):
    """An edit that puts something else in the place of a file."""

    def apply(folder):
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return apply


def template(words):
    return lambda folder: edit(folder, "tokenizer_config.json", chat_template=words)


DAMAGE = {
    "config null": (text("config.json", "null"), "config.json: holds null"),
    "config list": (text("config.json", "[1, 2]"), "config.json: holds [1, 2]"),
    "config number": (text("config.json", "7"), "config.json: holds 7"),
    "config text": (text("config.json", '"llada"'), 'config.json: holds "llada"'),
    "config folder": (replaced("config.json", os.mkdir), "config.json: not a file"),
    "config empty": (text("config.json", ""), "config.json: not valid JSON"),
    "config open": (text("config.json", '{"model_type": '), "config.json: not valid JSON"),
    "config bytes": (raw("config.json", b'{"a": "\xff"}'), "config.json: not valid JSON"),
    "config nested": (text("config.json", "[" * 10**6), "config.json: not valid JSON"),
    "config digits": (text("config.json", f'{{"a": {"9" * 9999}}}'), "config.json: not valid"),
    "generation text": (text("generation_config.json", "eos"), "generation_config.json: not"),
    "generation list": (text("generation_config.json", "[]"), "generation_config.json: holds"),
    "generation end": (
        text("generation_config.json", '{"eos_token_id": [1, 9999]}'),
        "generation_config.json: eos_token_id is 9999",
    ),
    "index without a map": (text(INDEX, "{}"), "no weight_map"),
    "index null": (text(INDEX, '{"weight_map": null}'), "no weight_map"),
    "index list": (index(["a.safetensors"]), "no weight_map"),
    "index empty": (index({}), "no weight_map"),
    "index broken": (text(INDEX, "{"), "index.json: not valid JSON"),
    "index of an array": (text(INDEX, "[]"), "index.json: holds []"),
    "index number": (index({"x": 3}), "3 for tensor x is not the name"),
    "index outside": (outside, "is not the name of a safetensors file in the same folder"),
    "index absolute": (absolute, "is not the name of a safetensors file in the same folder"),
    "index backslash": (index({"x": "..\\a.safetensors"}), "is not the name"),
    "index pickle": (index({"x": "pytorch_model.bin"}), "is not the name of a safetensors"),
    "index of no file": (index({"x": "gone.safetensors"}), "no gone.safetensors"),
    "twice": (two_shards, "is also in a.safetensors"),
    "weights gone": (lambda folder: (folder / WEIGHTS).unlink(), "no model.safetensors"),
    "weights folder": (replaced(WEIGHTS, os.mkdir), "no model.safetensors"),
    "weights empty": (raw(WEIGHTS, b""), "model.safetensors: damaged"),
    "weights short": (raw(WEIGHTS, b"abc"), "model.safetensors: damaged"),
    "weights text": (raw(WEIGHTS, b"version https://git-lfs" * 9), "model.safetensors: damaged"),
    "weights cut": (cut(0.5), "model.safetensors: damaged"),
    "weights cut in the header": (cut(0.001), "model.safetensors: damaged"),
    "header of terabytes": (raw(WEIGHTS, struct.pack("<Q", 2**42) + b"{}"), "damaged"),
    "header shape": (header(lambda t: t.update(shape=[65])), "damaged"),
    "header offsets": (header(lambda t: t.update(data_offsets=[0, 2**40])), "damaged"),
    "header type": (header(lambda t: t.update(dtype="F99")), "damaged"),
    "shape": (
        tensors(lambda w: w | {"model.norm.weight": torch.ones(65)}),
        "wrong shape for tensor model.norm.weight: [65], where config.json asks for [64]",
    ),
    "rank": (tensors(lambda w: w | {"model.norm.weight": torch.ones(64, 1)}), "wrong shape for"),
    "int": (other_dtype(torch.int64), "tensor model.norm.weight is stored as I64"),
    "float8": (other_dtype(torch.float8_e4m3fn), "tensor model.norm.weight is stored as F8_E4M3"),
    "bool": (other_dtype(torch.bool), "tensor model.norm.weight is stored as BOOL"),
    "more": (tensors(lambda w: w | {"extra": torch.ones(1)}), "has an unknown tensor extra"),
    "less": (
        tensors(lambda w: {k: v for k, v in w.items() if k != "model.norm.weight"}),
        "lacks tensor model.norm",
    ),
    "none": (
        tensors(lambda w: {str(i): torch.ones(1) for i in range(9)}),
        "lacks tensor lm_head.weight",
    ),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        "no usable tokenizer (neither tokenizer.json",
    ),
    "tokenizer null": (text("tokenizer.json", "null"), "no usable tokenizer"),
    "tokenizer empty": (text("tokenizer.json", ""), "no usable tokenizer"),
    "tokenizer nested": (text("tokenizer.json", "[" * 10**6), "no usable tokenizer"),
    "tokenizer model": (text("tokenizer.json", '{"model": {}}'), "no usable tokenizer"),
    "tokenizer config": (text("tokenizer_config.json", "[]"), "no usable tokenizer"),
    "tokenizer config bytes": (raw("tokenizer_config.json", b"\xff"), "no usable tokenizer"),
    "template syntax": (template("{% for %}"), "the chat template fails on a user's message"),
    "template number": (template(7), "template"),
    "template raise": (template("{{ raise_exception('never') }}"), "TemplateError: never"),
    "template none": (template("{{ messages[9].content.x }}"), "UndefinedError"),
    "template range": (template("{% for i in range(10**9) %}{% endfor %}"), "OverflowError"),
    "template loop": (
        template("{% set r = range(99999) %}" + "{% for i in r %}" * 3 + "{% endfor %}" * 3),
        "it takes more than 2 seconds",
    ),
    "template memory": (template("{{ ('a' * 10**10) | length }}"), "1 GB of memory"),
    "template length": (template("{{ 'a' * 10**7 }}"), "1,000,000 characters"),
    "template escape": (template("{{ ''.__class__.__mro__ }}"), "SecurityError"),
    "template mute": (template("Hello."), "the chat template leaves out the user's message"),
    "template empty": (template(""), "the chat template leaves out the user's message"),
    "template recursion": (
        template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
        "the chat template",
    ),
    "templates": (template([{"name": "rag", "template": "x"}]), "no chat template can be chosen"),
}


def link(target):
    return lambda path: path.symlink_to(target)


def sparse(size):
    """A file of so many bytes that takes no room."""

    def make(path):
        path.touch()
        os.truncate(path, size)

    return make


def tensor_named(name):
    return tensors(lambda w: {name if key == "model.norm.weight" else key: w[key] for key in w})


def code_of_its_own(file, **named):
    """Settings that name a class in a Python file of the checkpoint's own."""

    def apply(folder):
        (folder / "evil.py").write_text("raise SystemExit('it ran')\n")
        edit(folder, file, **named)

    return apply


def tokens(**changes):
    return lambda folder: edit(folder, "tokenizer.json", **changes)


def added(*contents):
    """An edit that gives the tokenizer more tokens."""
    facts = {"special": True, "single_word": False, "lstrip": False, "rstrip": False}

    def apply(folder):
        values = json.loads((folder / "tokenizer.json").read_text())
        for number, content in enumerate(contents, start=258):
            token = facts | {"id": number, "content": content, "normalized": False}
            values["added_tokens"].append(token)
        (folder / "tokenizer.json").write_text(json.dumps(values))

    return apply


EVIL = "evil\x1b[2J\u202e"
SHAPES = {"length": 10**9, "budget": 10**9, "block_length": 10**9}
DAMAGE |= {
    # Files that are none, or without end
    "config circle": (replaced("config.json", link("config.json")), "config.json"),
    "config of zeros": (replaced("config.json", link("/dev/zero")), "config.json: not a file"),
    "config pipe": (replaced("config.json", os.mkfifo), "config.json: not a file"),
    "config sparse": (replaced("config.json", sparse(2**40)), "bytes are too many"),
    "config link to nothing": (replaced("config.json", link("gone")), "no config.json"),
    "generation pipe": (replaced("generation_config.json", os.mkfifo), "not a file"),
    "tokenizer pipe": (replaced("tokenizer.json", os.mkfifo), "tokenizer.json: not a file"),
    "tokenizer of zeros": (replaced("tokenizer.json", link("/dev/zero")), "not a file"),
    "tokenizer sparse": (replaced("tokenizer.json", sparse(2**40)), "bytes are too many"),
    "tokenizer config pipe": (replaced("tokenizer_config.json", os.mkfifo), "not a file"),
    "tokenizer config sparse": (replaced("tokenizer_config.json", sparse(2**40)), "too many"),
    "special tokens pipe": (replaced("special_tokens_map.json", os.mkfifo), "not a file"),
    "template pipe": (replaced("chat_template.jinja", os.mkfifo), "not a file"),
    "template folder": (replaced("chat_template.jinja", os.mkdir), "not a file"),
    "weights pipe": (replaced(WEIGHTS, os.mkfifo), "no model.safetensors"),
    "weights circle": (replaced(WEIGHTS, link(WEIGHTS)), "model.safetensors"),
    "weights of zeros": (replaced(WEIGHTS, link("/dev/zero")), "no model.safetensors"),
    "weights link to nothing": (replaced(WEIGHTS, link("gone")), "no model.safetensors"),
    "weights sparse": (replaced(WEIGHTS, sparse(2**40)), "model.safetensors: damaged"),
    "index pipe": (replaced(INDEX, os.mkfifo), "not a file"),
    "index circle": (replaced(INDEX, link(INDEX)), INDEX),
    "index null byte": (index({"x": "a\0.safetensors"}), "is not the name"),
    "index empty name": (index({"x": ".safetensors"}), "is not the name"),
    "index long name": (index({"x": "x" * 300 + ".safetensors"}), "is not the name"),
    "index control": (index({"x": f"{EVIL}.safetensors"}), "no evil"),
    "index of many": (
        index({str(i): f"{i}.safetensors" for i in range(10**4)}),
        "no 0.safetensors",
    ),
    # Headers
    "header not text": (whole_header(lambda h: b"\xff" * len(h)), "damaged"),
    "header null": (whole_header(lambda h: b"null"), "damaged"),
    "header list": (whole_header(lambda h: b"[]"), "damaged"),
    "header nested": (whole_header(lambda h: b"[" * 10**6), "damaged"),
    "header empty": (whole_header(lambda h: b"{}"), "damaged"),
    "header twice": (
        whole_header(lambda h: h.replace(b'"model.norm.weight"', b'"lm_head.weight"')),
        "",
    ),
    "header negative": (header(lambda t: t.update(shape=[-64])), "damaged"),
    "header overflow": (header(lambda t: t.update(shape=[2**33, 2**33])), "damaged"),
    "header text": (header(lambda t: t.update(shape="64")), "damaged"),
    "header overlap": (header(lambda t: t.update(data_offsets=[0, 256])), "damaged"),
    "header backwards": (header(lambda t: t.update(data_offsets=[256, 0])), "damaged"),
    "header integers": (header(lambda t: t.update(dtype="I32")), "stored as I32"),
    "header length": (
        lambda folder: (folder / WEIGHTS).write_bytes(
            b"\xff" * 8 + (folder / WEIGHTS).read_bytes()[8:]
        ),
        "damaged",
    ),
    "tensor without a name": (tensor_named(""), "lacks tensor model.norm.weight"),
    "tensor of control": (tensor_named(EVIL), "lacks tensor model.norm.weight"),
    "no number": (
        tensors(lambda w: w | {"model.norm.weight": torch.ones(0)}),
        "wrong shape for tensor model.norm.weight: [0]",
    ),
    # Code of the checkpoint's own, which is never run
    "code for the model": (
        code_of_its_own("config.json", auto_map={"AutoModel": "evil.Evil"}, model_type="evil"),
        "would need code from the checkpoint itself",
    ),
    "code for the tokenizer": (
        code_of_its_own(
            "tokenizer_config.json",
            auto_map={"AutoTokenizer": ["evil.Evil", None]},
            tokenizer_class="Evil",
            chat_template="{{ x.y.z }}",
        ),
        "the chat template fails",
    ),
    # Shapes of its own
    "shapes of text": (lambda folder: edit(folder, c4_shapes="wide"), "c4_shapes is"),
    "shapes of lists": (lambda folder: edit(folder, c4_shapes={"long_reasoning": []}), "is []"),
    "shapes of billions": (
        lambda folder: edit(folder, c4_shapes={"long_reasoning": SHAPES}),
        "is 1000000000",
    ),
    "shapes of another kind": (
        lambda folder: edit(folder, c4_shapes={"long_reasoning": {EVIL: 1}}),
        "a shape's keys are",
    ),
    # Tokenizers
    "tokenizer version": (tokens(version="9.0"), "no usable tokenizer"),
    "tokenizer without a model": (tokens(model=None), "no usable tokenizer"),
    "tokenizer decoder": (tokens(decoder={"type": "Evil"}), "no usable tokenizer"),
    "tokenizer normalizer": (
        tokens(normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": ""}),
        "no usable tokenizer",
    ),
    "tokenizer added list": (tokens(added_tokens=[7]), "no usable tokenizer"),
    "tokenizer of many": (added(*(f"<|{i}|>" for i in range(100))), "last token is '<|99|>'"),
    "tokenizer class": (
        lambda folder: edit(folder, "tokenizer_config.json", mask_token={"content": [1]}),
        "no usable tokenizer",
    ),
    "mask that is none": (
        lambda folder: edit(folder, "tokenizer_config.json", extra_special_tokens=7),
        "no usable tokenizer",
    ),
    # More templates
    "template import": (template("{% import 'os' as os %}{{ os }}"), "the chat template"),
    "template include": (template("{% include '/etc/passwd' %}"), "the chat template"),
    "template extends": (template("{% extends '/etc/passwd' %}"), "the chat template"),
    "template globals": (template("{{ cycler.__init__.__globals__ }}"), "SecurityError"),
    "template builtins": (
        template("{{ messages.__class__.__base__.__subclasses__() }}"),
        "SecurityError",
    ),
    "template power": (template("{{ 10 ** 10 ** 10 }}"), "the chat template"),
    "template format": (template("{{ '%1000000000d' % 1 }}"), "the chat template"),
    "template format map": (template("{{ '{0.__class__}'.format(1) }}"), "the chat template"),
    "template deep": (template("(" * 10**5), "the chat template"),
    "template nested": (template("{{ " + "(" * 10**5 + ")" * 10**5 + " }}"), "the chat template"),
    "template list": (template([7]), "no usable tokenizer"),
    "template object": (template({"default": 7}), "template"),
    "template surrogate": (template("{{ messages[0].content }}\ud800"), "half of a surrogate pair"),
}


def named(changes):
    return ", ".join(f"{key}={str(value)[:40]}" for key, value in changes.items())


def change(changes, folder):
    edit(folder, **changes)


CASES = {
    **{f"{base}, {named(c)}": (base, partial(change, c), said) for base, c, said in CHANGES},
    **{f"bert, {named(c)}": ("bert", partial(change, c), said) for c, said in BERT},
    **{name: ("dream", spoil, said) for name, (spoil, said) in DAMAGE.items()},
}
"""By name: the checkpoint that it was before, what is done to it, what the refusal must say."""


@pytest.mark.parametrize(("base", "mask_id"), [("llada", 299), ("dream", 299), ("bert", 257)])
def test_the_checkpoints_that_are_broken_below_load_as_they_are(tmp_path, base, mask_id):
    loaded = load_model(find_checkpoint(str(make_whole(base, tmp_path / base))))
    assert loaded.denoiser.mask_id == mask_id


@pytest.mark.parametrize("name", CASES)
def test_a_malformed_checkpoint_is_refused_with_a_message(tmp_path, name, monkeypatch):
    monkeypatch.setattr(templates, "CPU_SECONDS", 0.3)  # so that endless templates end soon
    base, spoil, message = CASES[name]
    spoil(make_whole(base, tmp_path / "model"))
    with pytest.raises((ModelError, ConfigError)) as refused:
        load_whole(tmp_path / "model")
    assert message in str(refused.value)


def load_whole(folder):
    """Read all of a checkpoint that a recording reads."""
    found = find_checkpoint(str(folder))
    found.shape_for("long_reasoning")
    return load_model(found)


LINE = "record --task math --source embedded --n 1 --gen-length 8 --block-length 8 --no-grade"


def record(folder):
    """The exit code of `c4 record` with a checkpoint, which may not end in any other way."""
    result = c4(*LINE.split(), "--model", folder, "--out", folder.with_name("runs"))
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert not judge(LINE.split(), result.exit_code, result.stdout, result.stderr)
    return result.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_recording_with_a_malformed_checkpoint_ends_with_code_2(tmp_path, name):
    base, spoil, _ = CASES[name]
    spoil(make_whole(base, tmp_path / "model"))
    assert record(tmp_path / "model") == 2


FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
HEADER = 4096
"""Bytes at the start of the weights that are worth damaging; behind them are only numbers."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(300))
def test_a_recording_with_a_file_damaged_at_random_works_or_is_refused(tmp_path, number):
    chance = random.Random(number)
    folder = make_whole(chance.choice(["llada", "dream", "bert"]), tmp_path / "model")
    path = folder / chance.choice(FILES)
    data = path.read_bytes()
    at = chance.randrange(min(len(data), HEADER))
    digits = [i for i in range(min(len(data), HEADER)) if data[i : i + 1].isdigit()] or [at]
    place = chance.choice(digits)
    other = chance.choice([b"0", b"9", b"-1", b"1e9", b"999999999999", b"null", b"[]", b'"x"'])
    damages = {
        "a bit flips": data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :],
        "cut": data[: chance.randrange(len(data))],
        "bytes are missing": data[:at] + data[at + chance.randrange(1, 20) :],
        "bytes too many": data[:at] + chance.randbytes(chance.randrange(1, 20)) + data[at:],
        "another number": data[:place] + other + data[place + 1 :],
    }
    path.write_bytes(chance.choice(list(damages.values())))
    record(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@pytest.mark.parametrize("base", ["llada", "dream"])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_of_any_key_loads_or_is_refused(tmp_path, base, data):
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    make_whole(base, folder)
    key = data.draw(st.sampled_from(sorted(json.loads((folder / "config.json").read_text()))))
    edit(folder, **{key: data.draw(JSON)})
    with suppress(C4Error):
        load_model(find_checkpoint(str(folder)))
