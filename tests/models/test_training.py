"""What the embedded model's training shows the network, and what it must not."""

import importlib
import itertools
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[2] / "models" / "tiny"


@pytest.fixture(scope="module")
def training():
    """The training's own modules, which stand beside the weights and import each other by name."""
    names = {path.stem for path in FOLDER.glob("*.py")}
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in sorted(names)}
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def codec(training):
    return training["corpus"].Codec.load(FOLDER)


@pytest.fixture
def network(training, codec):
    """As a training starts with it."""
    settings = training["settings"].Settings()
    torch.manual_seed(settings.seed)
    model = training["weights"].build_model(settings.model, codec.tokenizer.get_vocab_size())
    training["circuits"].start_circuits(model, settings.circuits, settings.model.embedding_std)
    return model


def stream_of(training, codec, lookup_share=0.0):
    settings = training["settings"]
    phase = replace(settings.PHASES[0], lookup_share=lookup_share)
    return training["corpus"].Stream(settings.Settings(), codec, phase)


def rows_of(stream, tasks, probed=True):
    rng = np.random.default_rng(0)
    return [stream._row(task, 50_000 + i, probed, rng) for i, task in enumerate(tasks)]


@torch.inference_mode()
def hidden_states(training, network, batch):
    sight = training["train"].sight_of(batch, slice(None))
    return network.model(input_ids=torch.from_numpy(batch.inputs), **sight)[0].numpy()


def test_a_probe_sees_nothing_of_what_it_is_asked_for(training, codec, network):
    stream = stream_of(training, codec)
    (row,) = rows_of(stream, ["gsm8k"])
    batch = stream._batch([row], np.random.default_rng(1), (0, 0))
    before = hidden_states(training, network, batch)[0]
    stop = len(row.ids)
    group, limit = batch.sight.group[0], batch.sight.limit[0]
    changed_somewhere = False
    for first in range(0, stop - row.prompt, 5):  # change the real response from here on
        batch.inputs[0, row.prompt + first : stop] = 7
        after = hidden_states(training, network, batch)[0]
        batch.inputs[0, :stop] = row.ids
        blind = [i for i in range(stop, group.size) if group[i] > 0 and limit[i] <= first]
        seeing = [i for i in range(stop, group.size) if limit[i] > first]
        np.testing.assert_array_equal(before[blind], after[blind])
        changed_somewhere |= any((before[i] != after[i]).any() for i in seeing)
    assert changed_somewhere


def test_blocks_of_probes_do_not_see_each_other(training, codec, network):
    stream = stream_of(training, codec)
    (row,) = rows_of(stream, ["math"])
    batch = stream._batch([row], np.random.default_rng(1), (0, 0))
    before = hidden_states(training, network, batch)[0]
    group = batch.sight.group[0]
    touched = np.flatnonzero(group == 2)
    batch.inputs[0, touched] = 7
    after = hidden_states(training, network, batch)[0]
    assert (before[touched] != after[touched]).any()
    others = group != 2
    np.testing.assert_array_equal(before[others], after[others])


def test_every_choice_is_asked_for_its_letter_alone_and_unseen_by_the_others(training, codec):
    stream = stream_of(training, codec, lookup_share=1.0)
    rows = rows_of(stream, training["settings"].LETTER_TASKS)
    batch = stream._batch(rows, np.random.default_rng(1), (0, 0))
    for i, row in enumerate(rows):
        letters = batch.targets[i][batch.targets[i] >= 0].tolist()
        assert letters == [choice[0] for choice in row.choices]
        assert len(set(letters)) == len(row.choices) >= 2
        for number, choice in enumerate(row.choices, start=1):
            copy = batch.sight.group[i] == number
            assert batch.inputs[i][copy].tolist() == [codec.mask, *choice[1:]]
            assert (batch.sight.limit[i][copy] == 0).all()  # the prompt


def test_batches_are_the_same_from_any_place_on(training, codec):
    settings = training["settings"]
    few = replace(settings.Settings(), pool=64)
    stream = training["corpus"].Stream(few, codec, settings.PHASES[-1])
    whole = list(itertools.islice(stream.batches(), 6))
    resumed = next(stream.batches(whole[3].place))
    assert vars(resumed).keys() == vars(whole[4]).keys()
    for name in ("inputs", "targets", "weights"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole[4], name))
    assert resumed.place == whole[4].place


def test_the_last_phase_has_probes_and_masked_rows(training, codec):
    settings = training["settings"]
    few = replace(settings.Settings(), pool=64)
    stream = training["corpus"].Stream(few, codec, settings.PHASES[-1])
    kinds = {batch.sight is None for batch in itertools.islice(stream.batches(), 6)}
    assert kinds == {True, False}


def test_masked_rows_have_a_loss_only_at_masks_and_most_of_it_at_numbers(training, codec):
    stream = stream_of(training, codec)
    tasks = list(training["settings"].MIXTURE)
    batch = stream._batch(rows_of(stream, tasks, probed=False), np.random.default_rng(1), (0, 0))
    asked = batch.weights > 0
    assert asked.any(axis=1).all()
    assert (batch.inputs[asked] == codec.mask).all()
    assert (batch.targets[asked] != codec.mask).all()
    numbers = asked & np.isin(batch.targets, codec.numbers)
    texts = {codec.tokenizer.id_to_token(i) for i in batch.targets[numbers].tolist()}
    assert texts
    assert all(text.isascii() and text.isdecimal() for text in texts)
    assert (batch.weights[numbers] == stream.settings.number_weight).all()


def test_a_sheet_asks_for_the_results_of_its_calculations_alone(training, codec):
    stream = stream_of(training, codec)
    row = stream._sheet(np.random.default_rng(0))
    batch = stream._batch([row], np.random.default_rng(1), (0, 0))
    asked = np.flatnonzero(batch.weights[0] > 0).tolist()
    assert asked == list(row.results)
    assert len(asked) == stream.settings.sheet_calculations
    text = codec.tokenizer.decode(row.ids[row.prompt :], skip_special_tokens=False)
    found = re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)\.", text)
    work = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}
    assert len(found) == len(asked)
    assert all(work[sign](int(a), int(b)) == int(c) for a, sign, b, c in found)


def attention(network, ids, layer):
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        return network.model(input_ids=ids, output_attentions=True).attentions[layer][0]


def test_the_first_heads_look_at_neighbours_from_the_start(training, codec, network):
    ids = torch.tensor([codec.prompt("A. calf\nB. puppy\nC. kid\nD. tadpole\nAnswer:")])
    seen = attention(network, ids, layer=0)
    inner = range(1, ids.shape[1] - 1)
    for head, offset in enumerate(training["circuits"].OFFSETS):
        found = sum(int(seen[head, i].argmax()) == i + offset for i in inner)
        assert found >= 0.9 * len(inner)


def test_a_mask_before_a_choice_looks_at_its_letter_from_the_start(training, codec, network):
    prompt = codec.prompt("Which?\nA. calf\nB. puppy\nC. kid\nD. tadpole\nAnswer:")
    letters = [codec.response(f"{letter}. x")[0] for letter in "ABCD"]
    places = [prompt.index(letter) for letter in letters]
    for right, text in enumerate(("calf", "puppy", "kid", "tadpole")):
        ids = [*prompt, codec.mask, *codec.response(f"A. {text}")[1:]]
        seen = attention(network, torch.tensor([ids]), layer=1)[1, len(prompt)]
        assert int(seen[places].argmax()) == right


def test_what_is_held_stays_and_the_rest_is_trained(training, codec, network):
    stream = stream_of(training, codec)
    batch = stream._batch(rows_of(stream, ["mmlu", "gsm8k"]), np.random.default_rng(1), (0, 0))
    optimizers = training["optimizer"].make_optimizers(
        network, training["settings"].PHASES[0], training["ranks"].Ranks()
    )
    before = {name: param.detach().clone() for name, param in network.named_parameters()}
    training["train"].batch_loss(network, batch, training["ranks"].Ranks()).backward()
    training["circuits"].hold_circuits(network)
    for optimizer in optimizers:
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


def test_every_parameter_has_one_optimizer(training, network):
    phase = training["settings"].PHASES[0]
    optimizers = training["optimizer"].make_optimizers(network, phase, training["ranks"].Ranks())
    held = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(param) for param in network.parameters())
    rates = [o.param_groups[0]["lr"] for o in optimizers]
    assert rates == [phase.matrix_rate, phase.embedding_rate, phase.other_rate]
