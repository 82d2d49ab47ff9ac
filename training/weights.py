"""The network and its two forms: transformers' Llama in memory, LLaDA's format on disk.

Sizes are written to `config.json` once, and the network is made from that file by the code that
will load the finished model. So what is trained is what c4 runs.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaForCausalLM

from c4.models import architecture_of, find_checkpoint, llama_to_llada
from training.codec import Codec
from training.settings import SHAPES, ModelSettings


def llada_config(settings: ModelSettings, codec: Codec) -> dict[str, object]:
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
        "rms_norm_eps": 1e-5,
        "include_bias": False,
        "include_qkv_bias": False,
        "bias_for_layer_norm": False,
        "max_sequence_length": settings.max_length,
        "vocab_size": codec.size,
        "embedding_size": codec.size,
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


def write_config(settings: ModelSettings, codec: Codec, folder: Path) -> None:
    """Write `config.json`, from which the network is made."""
    text = json.dumps(llada_config(settings, codec), indent=1)
    (folder / "config.json").write_text(text + "\n")


def build_network(folder: Path) -> LlamaForCausalLM:
    """A fresh network of the sizes in the folder's `config.json`; all positions see each other."""
    checkpoint = find_checkpoint(str(folder))
    config = architecture_of(checkpoint).config
    config.initializer_range = checkpoint.config["init_std"]
    config.is_causal = False
    return LlamaForCausalLM(config)


def save_weights(state: Mapping[str, Tensor], folder: Path) -> None:
    """Write `model.safetensors` under the names that LLaDA's own code gives the tensors."""
    tensors = {llama_to_llada(name): tensor.contiguous() for name, tensor in state.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
