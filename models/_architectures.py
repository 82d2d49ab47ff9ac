"""Architectures: LLaDA and Dream as transformers' own classes, and other masked language models.

The authors' modeling files need `trust_remote_code` and fail on current transformers. Both models
are ordinary decoders without the causal mask, so their weights are renamed to those of Llama and
Qwen2 with `is_causal=False`, which makes transformers build a bidirectional mask. Settings that
these classes would ignore are rejected, because the model would load but compute something else.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.activations import ACT2FN

from c4.errors import ModelError
from c4.models._checkpoint import Checkpoint
from c4.models._config import flag, positive, section, shown, whole, word

LAYERS = 10_000
WIDTH = 2**20
VOCABULARY = 2**24
POSITIONS = 2**31
"""Upper limits for numbers in config.json; larger values must be mistakes."""


@dataclass(frozen=True)
class Architecture:
    """Model class, configuration and tensor names with which a checkpoint is loaded."""

    model: type[PreTrainedModel]
    config: PreTrainedConfig
    rename: Callable[[str], str] = str
    """Maps a tensor's name in the files to its name in the module."""


def architecture_of(checkpoint: Checkpoint) -> Architecture:
    """Return a checkpoint's architecture; raise `ModelError` if it is not supported."""
    make = NATIVE.get(checkpoint.model_type)
    try:
        _refuse_unsupported(checkpoint.config)
        return make(checkpoint.config) if make else _masked_lm(checkpoint)
    except ModelError as error:
        raise named(checkpoint, error) from error
    except Exception as error:  # transformers validates configurations with various errors
        raise ModelError(
            f"{checkpoint.folder}: transformers refuses what config.json says ({brief(error)})"
        ) from error


def named(checkpoint: Checkpoint, error: ModelError) -> ModelError:
    """Prefix an error with the checkpoint's folder, unless the message already contains it."""
    folder, words = str(checkpoint.folder), str(error)
    return ModelError(words if folder in words else f"{folder}: {words}")


def brief(error: BaseException) -> str:
    """Shorten another library's error message to one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:2]])[:300]


EXPERTS = ("num_experts", "num_experts_per_tok", "expert_intermediate_size", "moe_layer_freq")
NO_EXPERTS = "only dense checkpoints such as GSAI-ML/LLaDA-8B-Instruct can be loaded"


def _refuse_unsupported(config: Mapping[str, Any]) -> None:
    """Raise an error for quantized weights and LLaDA's mixtures of experts."""
    model_type = str(config.get("model_type", ""))
    found = [key for key in EXPERTS if config.get(key)]  # the first LLaDA-MoE has type `llada` too
    if model_type.startswith("llada2"):
        raise ModelError(f"{model_type!r} is a LLaDA 2 mixture of experts; {NO_EXPERTS}")
    if model_type in ("llada_moe", "lladamoe") or (model_type == "llada" and found):
        why = f" (config.json has {found[0]})" if found else ""
        raise ModelError(f"this is LLaDA-MoE, a mixture of experts{why}; {NO_EXPERTS}")
    if "quantization_config" in config:
        raise ModelError(
            "the weights are quantized (config.json has quantization_config), and read as plain "
            "numbers they would be wrong; use the checkpoint they were made from"
        )


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
    "block_group_size": 1,
    "activation_type": "silu",
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "bias_for_layer_norm": False,
    "rope": True,
    "alibi": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "attention_layer_norm": False,
    "scale_logits": False,
    "input_emb_norm": False,
    "clip_qkv": None,
}
"""Settings with which LLaDA is equivalent to Llama; others would load but be wrong."""


def _llada(config: Mapping[str, Any]) -> Architecture:
    _refuse_other_values("LLaDA", config, LLADA_REQUIRED)
    if "d_model" not in config and "hidden_size" in config:
        raise ModelError(
            "config.json has model type 'llada' but another model's keys (hidden_size instead of "
            "d_model); known here is the format of GSAI-ML/LLaDA-8B-Instruct"
        )
    heads = whole(config, "n_heads", most=WIDTH)
    width = _width(config, "d_model", "n_heads", heads)
    if "mlp_hidden_size" in config:
        inner = whole(config, "mlp_hidden_size", most=WIDTH)
    else:
        inner = whole(config, "mlp_ratio", most=WIDTH // width) * width
    rows = "embedding_size" if "embedding_size" in config else "vocab_size"
    tokens = whole(config, "vocab_size", 1, most=VOCABULARY)  # the embedding may have more rows
    usual = 1 if flag(config, "multi_query_attention", False) else heads
    kv_heads = _kv_heads(config, "n_kv_heads", heads, usual)
    if "multi_query_attention" in config and kv_heads != usual:
        raise ModelError(
            f"config.json: n_kv_heads is {kv_heads}, but multi_query_attention asks for {usual}"
        )
    llama = LlamaConfig(
        vocab_size=whole(config, rows, least=tokens, most=VOCABULARY),
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=whole(config, "n_layers", most=LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=whole(config, "max_sequence_length", most=POSITIONS),
        rms_norm_eps=positive(config, "rms_norm_eps", 1e-5),
        rope_parameters=_rope(config, 500_000.0),
        tie_word_embeddings=flag(config, "weight_tying", False),
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    return Architecture(LlamaForCausalLM, llama, llada_to_llama)


def llada_to_llama(name: str) -> str:
    """Map `model.transformer.blocks.3.ff_out.weight` to `model.layers.3.mlp.down_proj.weight`."""
    block = re.fullmatch(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.weight", name)
    if block and block[2] in LLADA_BLOCK_NAMES:
        return f"model.layers.{block[1]}.{LLADA_BLOCK_NAMES[block[2]]}.weight"
    top = re.fullmatch(r"model\.transformer\.(\w+)\.weight", name)
    if top and top[1] in LLADA_NAMES:
        return f"{LLADA_NAMES[top[1]]}.weight"
    raise ModelError(f"unknown tensor {name!r} in a LLaDA checkpoint")


def llama_to_llada(name: str) -> str:
    """Map a Llama tensor name to LLaDA's; the inverse of `llada_to_llama`."""
    parts = re.fullmatch(r"(?:model\.layers\.(\d+)\.)?(.+)\.weight", name)
    layer, inner = parts.groups() if parts else (None, "")
    names = LLADA_NAMES if layer is None else LLADA_BLOCK_NAMES
    stored = next((llada for llada, llama in names.items() if llama == inner), None)
    if stored is None:
        raise ModelError(f"unknown tensor {name!r} in a Llama model")
    block = "" if layer is None else f"blocks.{layer}."
    return f"model.transformer.{block}{stored}.weight"


DREAM_REQUIRED = {"use_sliding_window": False, "partial_rotary_factor": 1}
"""Settings with which Dream is equivalent to Qwen2; others would load but be wrong."""


def _dream(config: Mapping[str, Any]) -> Architecture:
    _refuse_other_values("Dream", config, DREAM_REQUIRED)
    kinds = config.get("layer_types", [])
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise ModelError(
            f"config.json: layer_types is {shown(kinds)}; only full attention is known"
        )
    heads = whole(config, "num_attention_heads", most=WIDTH)
    act = word(config, "hidden_act")
    if act not in ACT2FN:
        raise ModelError(f"config.json: hidden_act is {shown(act)}, which transformers lacks")
    qwen = Qwen2Config(
        vocab_size=whole(config, "vocab_size", most=VOCABULARY),
        hidden_size=_width(config, "hidden_size", "num_attention_heads", heads),
        intermediate_size=whole(config, "intermediate_size", most=WIDTH),
        num_hidden_layers=whole(config, "num_hidden_layers", most=LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=_kv_heads(config, "num_key_value_heads", heads, heads),
        max_position_embeddings=whole(config, "max_position_embeddings", most=POSITIONS),
        rms_norm_eps=positive(config, "rms_norm_eps"),
        hidden_act=act,
        rope_parameters=_rope(config),
        tie_word_embeddings=flag(config, "tie_word_embeddings", False),
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    return Architecture(Qwen2ForCausalLM, qwen)


def _refuse_other_values(
    family: str, config: Mapping[str, Any], required: Mapping[str, Any]
) -> None:
    for key, expected in required.items():
        if key in config and config[key] != expected:
            raise ModelError(
                f"this {family} checkpoint has {key}={shown(config[key])}; only {shown(expected)} "
                "is supported, and ignoring it would give wrong numbers"
            )


def _width(config: Mapping[str, Any], key: str, heads_key: str, heads: int) -> int:
    """Model width, checked to split evenly into heads of even size, as rotary embeddings need."""
    width = whole(config, key, most=WIDTH)
    if width % (2 * heads):
        raise ModelError(
            f"config.json: {key} {width} cannot be split into {heads_key} {heads} heads of an "
            "even size"
        )
    return width


def _kv_heads(config: Mapping[str, Any], key: str, heads: int, usual: int) -> int:
    kv_heads = whole(config, key, usual, most=heads)
    if heads % kv_heads:
        raise ModelError(f"config.json: {key} {kv_heads} does not divide the {heads} heads")
    return kv_heads


def _rope(config: Mapping[str, Any], usual: float | None = None) -> dict[str, Any]:
    """Convert rotary embedding settings to transformers 5; only the plain kind is supported."""
    rope = section(config, "rope_parameters")
    for key, given in (
        ("rope_parameters", rope),
        ("rope_scaling", section(config, "rope_scaling")),
    ):
        kind = given.get("rope_type", given.get("type", "default"))
        other = given.keys() - {"rope_type", "type", "rope_theta"}
        if kind != "default" or other:
            raise ModelError(
                f"config.json: {key} is {shown(given)}; only plain rotary embeddings are known "
                "here, and to ignore the rest would give wrong numbers"
            )
    thetas = {
        positive(given, "rope_theta") for given in (rope, config) if "rope_theta" in given
    } or {positive(config, "rope_theta", usual)}
    if len(thetas) > 1:
        raise ModelError("config.json: rope_theta and rope_parameters name different bases")
    return {"rope_type": "default", "rope_theta": thetas.pop()}


LAYER_KEYS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")


def _masked_lm(checkpoint: Checkpoint) -> Architecture:
    name, model_type = checkpoint.name, checkpoint.model_type
    if not model_type:
        raise ModelError(f"config.json lacks model_type; {KNOWN}")
    if model_type not in CONFIG_MAPPING:
        raise ModelError(
            f"{name}: model type {model_type!r} would need code from the checkpoint itself, "
            f"which is never run; {KNOWN}"
        )
    for key in LAYER_KEYS:
        whole(checkpoint.config, key, 1, least=0, most=LAYERS)
    config = AutoConfig.from_pretrained(checkpoint.folder, trust_remote_code=False)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ModelError(f"{name}: {model_type} is not a masked language model; {KNOWN}")
    model: Any = MODEL_FOR_MASKED_LM_MAPPING[type(config)]
    return Architecture(model, config)


NATIVE: dict[str, Callable[[Mapping[str, Any]], Architecture]] = {"llada": _llada, "Dream": _dream}
KNOWN = f"known here: {', '.join(NATIVE)}, and every masked language model that transformers ships"
