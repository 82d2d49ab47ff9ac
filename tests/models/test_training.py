"""What the embedded model's training shows the network, and what it must not."""

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
    sys.path.insert(0, str(FOLDER))
    try:
        import circuits
        import corpus
        import settings
        import train
        import weights

        yield {m.__name__: m for m in (circuits, corpus, settings, train, weights)}
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def codec(training):
    return training["corpus"].Codec.load(FOLDER)


@pytest.fixture(scope="module")
def network(training, codec):
    settings = training["settings"].Settings()
    torch.manual_seed(0)
    model = training["weights"].build_model(settings.model, codec.tokenizer.get_vocab_size())
    training["circuits"].start_circuits(model, settings.model.embedding_std)
    return model.eval()


def stream_of(training, codec, **changes):
    settings = training["settings"]
    phase = replace(settings.PHASES[0], batch_tokens=512, **({"lookup_share": 0.0} | changes))
    return training["corpus"].Stream(replace(settings.Settings(), pool=32), codec, phase)


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
    rows = rows_of(stream, ["mmlu", "winogrande", "truthfulqa"])
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
    whole = [batch for batch, _ in zip(stream.batches(), range(6), strict=False)]
    resumed = next(iter(stream.batches(whole[3].place)))
    np.testing.assert_array_equal(resumed.inputs, whole[4].inputs)
    np.testing.assert_array_equal(resumed.targets, whole[4].targets)
    assert {batch.sight is None for batch in whole} == {True, False}


def test_masked_rows_have_a_loss_only_at_masks(training, codec):
    stream = stream_of(training, codec, probe_share=0.0)
    tasks = list(training["settings"].MIXTURE)
    batch = stream._batch(rows_of(stream, tasks, probed=False), np.random.default_rng(1), (0, 0))
    asked = batch.weights > 0
    assert asked.any(axis=1).all()
    assert (batch.inputs[asked] == codec.mask).all()
    assert (batch.targets[asked] != codec.mask).all()


def test_the_first_heads_look_at_neighbours_from_the_start(training, codec, network):
    ids = torch.tensor([codec.prompt("A. calf\nB. puppy\nC. kid\nD. tadpole\nAnswer:")])
    network.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            seen = network.model(input_ids=ids, output_attentions=True).attentions[0][0]
    finally:
        network.set_attn_implementation("sdpa")
    inner = range(1, ids.shape[1] - 1)
    for head, offset in enumerate(training["circuits"].OFFSETS):
        found = sum(int(seen[head, i].argmax()) == i + offset for i in inner)
        assert found >= 0.9 * len(inner)
