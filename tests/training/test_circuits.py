"""The heads that a training starts with, and how they are held while the rest learns."""

import pytest
import torch
from fresh import batch_of, fresh_network, rows_of, shipped_codec

from training.circuits import OFFSETS, hold_circuits
from training.loss import batch_loss
from training.optimizer import make_optimizers, orthogonalise
from training.ranks import Ranks
from training.settings import PHASES


@pytest.fixture
def network():
    return fresh_network()


@pytest.fixture(scope="module")
def codec():
    return shipped_codec()


def attention(network, ids, layer):
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        return network.model(input_ids=ids, output_attentions=True).attentions[layer][0]


def test_the_first_heads_look_at_neighbours_from_the_start(codec, network):
    ids = torch.tensor([codec.prompt("A. calf\nB. puppy\nC. kid\nD. tadpole\nAnswer:")])
    seen = attention(network, ids, layer=0)
    inner = range(1, ids.shape[1] - 1)
    for head, offset in enumerate(OFFSETS):
        found = sum(int(seen[head, i].argmax()) == i + offset for i in inner)
        assert found >= 0.9 * len(inner)


def test_a_mask_before_a_choice_looks_at_its_letter_from_the_start(codec, network):
    prompt = codec.prompt("Which?\nA. calf\nB. puppy\nC. kid\nD. tadpole\nAnswer:")
    letters = [codec.response(f"{letter}. x")[0] for letter in "ABCD"]
    places = [prompt.index(letter) for letter in letters]
    for right, text in enumerate(("calf", "puppy", "kid", "tadpole")):
        ids = [*prompt, codec.mask, *codec.response(f"A. {text}")[1:]]
        seen = attention(network, torch.tensor([ids]), layer=1)[1, len(prompt)]
        assert int(seen[places].argmax()) == right


def test_what_is_held_stays_and_the_rest_is_trained(network):
    before = {name: param.detach().clone() for name, param in network.named_parameters()}
    batch_loss(network, batch_of(rows_of(["mmlu", "gsm8k"])), Ranks()).backward()
    hold_circuits(network)
    for optimizer in make_optimizers(network, PHASES[0], Ranks()):
        optimizer.step()
    heads = slice(0, 2 * network.model.layers[0].self_attn.head_dim)
    same = {name: (before[name] == param).detach() for name, param in network.named_parameters()}
    for layer, kinds in ((0, "qkv"), (1, "qk")):
        for kind in kinds:
            kept = same[f"model.layers.{layer}.self_attn.{kind}_proj.weight"]
            assert kept[heads].all()
            assert not kept[heads.stop :].any()
    assert same["model.layers.0.self_attn.o_proj.weight"][:, heads].all()
    assert same["model.embed_tokens.weight"][:, 0].all()
    assert not same["model.layers.1.self_attn.v_proj.weight"].any()
    assert not same["lm_head.weight"].all()


def test_every_parameter_has_one_optimizer(network):
    phase = PHASES[0]
    optimizers = make_optimizers(network, phase, Ranks())
    held = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(param) for param in network.parameters())
    rates = [o.param_groups[0]["lr"] for o in optimizers]
    assert rates == [phase.matrix_rate, phase.embedding_rate, phase.other_rate]


@pytest.mark.parametrize("shape", [(3, 8, 24), (3, 24, 8), (1, 16, 16)])
def test_singular_values_come_close_to_one(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert values.min() > 0.3
    assert values.max() < 1.3
