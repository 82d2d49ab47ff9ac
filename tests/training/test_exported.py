"""What a training writes is a checkpoint that c4 loads, and the one that ships was written so."""

import json

import pytest
import torch
from fresh import FOLDER, SETTINGS, fresh_network, shipped_codec
from safetensors.torch import load_file

from c4.errors import ModelError
from c4.models import find_checkpoint, llama_to_llada, load_model
from c4.models._architectures import llada_to_llama
from training.codec import save_tokenizer
from training.weights import llada_config, save_weights, write_config


def test_names_go_to_llada_and_back():
    names = list(fresh_network().state_dict())
    assert [llada_to_llama(llama_to_llada(name)) for name in names] == names
    assert {llama_to_llada(name) for name in names} == load_file(
        FOLDER / "model.safetensors"
    ).keys()


@pytest.mark.parametrize(
    "name", ["lm_head.bias", "model.rotary.weight", "model.layers.0.lm_head.weight", "mlp.up_proj"]
)
def test_a_tensor_that_llada_does_not_have_is_refused(name):
    with pytest.raises(ModelError, match=name):
        llama_to_llada(name)


def test_the_configuration_that_ships_is_the_one_that_is_written():
    assert json.loads((FOLDER / "config.json").read_text()) == llada_config(
        SETTINGS.model, shipped_codec()
    )


def test_the_tokenizer_that_ships_is_the_one_that_is_written(tmp_path):
    save_tokenizer(shipped_codec().tokenizer, tmp_path, SETTINGS.model.max_length)
    assert {path.name for path in tmp_path.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    for path in tmp_path.iterdir():
        assert json.loads(path.read_text()) == json.loads((FOLDER / path.name).read_text())


def test_what_is_written_loads_as_the_network_it_was(tmp_path):
    network, codec = fresh_network().eval(), shipped_codec()
    save_weights(network.state_dict(), tmp_path)
    write_config(SETTINGS.model, codec, tmp_path)
    save_tokenizer(codec.tokenizer, tmp_path, SETTINGS.model.max_length)
    loaded = load_model(find_checkpoint(str(tmp_path)))
    assert loaded.denoiser.mask_id == codec.mask
    assert loaded.end_ids == (codec.end,)
    ids = torch.tensor([[*codec.prompt("Which?"), codec.mask, codec.mask]])
    with torch.inference_mode():
        torch.testing.assert_close(
            loaded.denoiser.model(input_ids=ids).logits, network(input_ids=ids).logits
        )
