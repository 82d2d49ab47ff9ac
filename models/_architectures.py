"""LLaDA and Dream as transformers' own classes, and any masked language model beside them.

The authors' modeling files need `trust_remote_code` and fail on current transformers. Both are
ordinary decoders without the causal mask, so their weights are renamed into Llama and Qwen2 with
`is_causal=False`, which makes transformers build a bidirectional mask.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from c4.errors import ModelError
from c4.models._checkpoint import Checkpoint


@dataclass(frozen=True)
class Architecture:
    """How a checkpoint becomes a module."""

    model: type[PreTrainedModel]
    config: PreTrainedConfig
    rename: Callable[[str], str]
    shift: bool = False
    """Whether output i-1 predicts position i, as in Dream."""


def architecture_of(checkpoint: Checkpoint) -> Architecture:
    """The architecture of a checkpoint, or a refusal if it could only run with foreign code."""
    make = NATIVE.get(checkpoint.model_type)
    return make(checkpoint.config) if make else _masked_lm(checkpoint)


LLADA_NAMES = {
    "wte": "model.embed_tokens",
    "ln_f": "model.norm",
    "ff_out": "lm_head",
}
LLADA_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}
LLADA_REQUIRED = {
    "block_type": "llama",
    "activation_type": "silu",
    "layer_norm_type": "rms",
    "rope": True,
    "alibi": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "attention_layer_norm": False,
    "scale_logits": False,
    "input_emb_norm": False,
}
"""What makes a LLaDA checkpoint a Llama one; any other value would load and be wrong."""


def _llada(config: Mapping[str, Any]) -> Architecture:
    for key, expected in LLADA_REQUIRED.items():
        if config.get(key, expected) != expected:
            raise ModelError(
                f"this LLaDA checkpoint has {key}={config[key]!r}; only {expected!r} is known here"
            )
    heads = config["n_heads"]
    llama = LlamaConfig(
        vocab_size=config.get("embedding_size") or config["vocab_size"],
        hidden_size=config["d_model"],
        intermediate_size=config.get("mlp_hidden_size") or config["mlp_ratio"] * config["d_model"],
        num_hidden_layers=config["n_layers"],
        num_attention_heads=heads,
        num_key_value_heads=config.get("n_kv_heads") or heads,
        max_position_embeddings=config["max_sequence_length"],
        rms_norm_eps=config.get("rms_norm_eps", 1e-5),
        rope_parameters={"rope_type": "default", "rope_theta": config.get("rope_theta", 500_000.0)},
        tie_word_embeddings=config.get("weight_tying", False),
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    return Architecture(LlamaForCausalLM, llama, llada_to_llama)


def llada_to_llama(name: str) -> str:
    """`model.transformer.blocks.3.ff_out.weight` becomes `model.layers.3.mlp.down_proj.weight`."""
    block = re.fullmatch(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.weight", name)
    if block and block[2] in LLADA_BLOCK_NAMES:
        return f"model.layers.{block[1]}.{LLADA_BLOCK_NAMES[block[2]]}.weight"
    top = re.fullmatch(r"model\.transformer\.(\w+)\.weight", name)
    if top and top[1] in LLADA_NAMES:
        return f"{LLADA_NAMES[top[1]]}.weight"
    raise ModelError(f"unknown tensor {name!r} in a LLaDA checkpoint")


def _dream(config: Mapping[str, Any]) -> Architecture:
    if config.get("use_sliding_window"):
        raise ModelError("this Dream checkpoint uses a sliding window, which is not known here")
    qwen = Qwen2Config(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        num_hidden_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        num_key_value_heads=config["num_key_value_heads"],
        max_position_embeddings=config["max_position_embeddings"],
        rms_norm_eps=config["rms_norm_eps"],
        hidden_act=config["hidden_act"],
        rope_parameters={"rope_type": "default", "rope_theta": config["rope_theta"]},
        tie_word_embeddings=config.get("tie_word_embeddings", False),
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    return Architecture(Qwen2ForCausalLM, qwen, lambda name: name, shift=True)


def _masked_lm(checkpoint: Checkpoint) -> Architecture:
    try:
        config = AutoConfig.from_pretrained(checkpoint.folder, trust_remote_code=False)
    except (ValueError, OSError) as error:
        raise ModelError(
            f"{checkpoint.name}: model type {checkpoint.model_type!r} would need code from the "
            f"checkpoint itself, which is never run; {KNOWN}"
        ) from error
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ModelError(
            f"{checkpoint.name}: {checkpoint.model_type} is not a masked language model; {KNOWN}"
        )
    model: Any = MODEL_FOR_MASKED_LM_MAPPING[type(config)]
    return Architecture(model, config, lambda name: name)


NATIVE: dict[str, Callable[[Mapping[str, Any]], Architecture]] = {"llada": _llada, "Dream": _dream}
KNOWN = f"known here: {', '.join(NATIVE)}, and every masked language model that transformers ships"
