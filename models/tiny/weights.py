"""The network and its two forms: transformers' Llama in memory, LLaDA's names on disk."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from corpus import Codec
from safetensors.torch import load_file, save_file
from settings import SHAPES, ModelSettings
from transformers import LlamaConfig, LlamaForCausalLM

EPSILON = 1e-5

OUTER = {
    "model.embed_tokens": "model.transformer.wte",
    "model.norm": "model.transformer.ln_f",
    "lm_head": "model.transformer.ff_out",
}
INNER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
    "self_attn.q_proj": "q_proj",
    "self_attn.k_proj": "k_proj",
    "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "attn_out",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
}


def llada_name(name: str) -> str:
    """What LLaDA calls a Llama tensor."""
    module = name.removesuffix(".weight")
    if module in OUTER:
        return f"{OUTER[module]}.weight"
    layer, _, inner = module.removeprefix("model.layers.").partition(".")
    return f"model.transformer.blocks.{layer}.{INNER[inner]}.weight"


def build_model(settings: ModelSettings, vocabulary: int) -> LlamaForCausalLM:
    """A fresh network in which every position sees every other."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=settings.width,
        intermediate_size=settings.mlp_width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=settings.max_length,
        rms_norm_eps=EPSILON,
        initializer_range=settings.init_std,
        tie_word_embeddings=False,
        use_cache=False,
        rope_parameters={"rope_type": "default", "rope_theta": settings.rope_theta},
    )
    config.is_causal = False
    return LlamaForCausalLM(config)


def llada_config(settings: ModelSettings, vocabulary: int, codec: Codec) -> dict[str, object]:
    """LLaDA's `config.json`, with this model's shapes under a key of their own."""
    return {
        "d_model": settings.width,
        "n_heads": settings.heads,
        "n_kv_heads": settings.heads,
        "n_layers": settings.layers,
        "mlp_ratio": 4,
        "mlp_hidden_size": settings.mlp_width,
        "activation_type": "silu",
        "block_type": "llama",
        "rope": True,
        "rope_full_precision": True,
        "rope_theta": settings.rope_theta,
        "attention_dropout": 0.0,
        "residual_dropout": 0.0,
        "embedding_dropout": 0.0,
        "layer_norm_type": "rms",
        "layer_norm_with_affine": True,
        "rms_norm_eps": EPSILON,
        "include_bias": False,
        "include_qkv_bias": False,
        "bias_for_layer_norm": False,
        "max_sequence_length": settings.max_length,
        "vocab_size": vocabulary,
        "embedding_size": vocabulary,
        "weight_tying": False,
        "flash_attention": False,
        "attention_layer_norm": False,
        "init_device": "cpu",
        "mask_token_id": codec.mask,
        "alibi": False,
        "scale_logits": False,
        "input_emb_norm": False,
        "multi_query_attention": None,
        "eos_token_id": codec.end,
        "pad_token_id": codec.end,
        "init_std": settings.init_std,
        "model_type": "llada",
        "architectures": ["LLaDAModelLM"],
        "c4_shapes": {family: asdict(shape) for family, shape in SHAPES.items()},
    }


def save_llada(
    state: dict[str, torch.Tensor], settings: ModelSettings, codec: Codec, folder: Path
) -> None:
    """Write `config.json` and `model.safetensors` as LLaDA's own code would."""
    tensors = {llada_name(name): tensor.contiguous() for name, tensor in state.items()}
    vocabulary = state["lm_head.weight"].shape[0]
    config = llada_config(settings, vocabulary, codec)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load_llada(folder: Path) -> LlamaForCausalLM:
    """The network in a folder written by `save_llada`, ready to denoise."""
    config = json.loads((folder / "config.json").read_text())
    settings = ModelSettings(
        width=config["d_model"],
        layers=config["n_layers"],
        heads=config["n_heads"],
        mlp_width=config["mlp_hidden_size"],
        rope_theta=config["rope_theta"],
        max_length=config["max_sequence_length"],
    )
    model = build_model(settings, config["vocab_size"])
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({name: tensors[llada_name(name)] for name in model.state_dict()})
    return model.eval()
