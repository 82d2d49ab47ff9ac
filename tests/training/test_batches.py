"""What the embedded model's training shows the network, and what it must not."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from fresh import SETTINGS, batch_of, fresh_network, row_maker, rows_of, shipped_codec

from training.loss import batch_loss, sight_of
from training.ranks import Ranks
from training.settings import LETTER_TASKS, MIXTURE, PHASES
from training.stream import Stream


@pytest.fixture(scope="module")
def codec():
    return shipped_codec()


@pytest.fixture(scope="module")
def network():
    return fresh_network()


@torch.inference_mode()
def hidden_states(network, batch):
    sight = sight_of(batch, slice(None))
    return network.model(input_ids=torch.from_numpy(batch.inputs), **sight)[0].numpy()


def block_starts(row, batch):
    """Where in the response the block of every probed position begins."""
    group, place = batch.sight.group[0], batch.sight.positions[0] - row.prompt
    probed = range(len(row.ids), row.cost)
    return {i: place[group == group[i]].min() for i in probed}


def test_a_probe_sees_nothing_of_what_it_is_asked_for(network):
    (row,) = rows_of(["gsm8k"])
    batch = batch_of([row])
    before = hidden_states(network, batch)[0]
    stop = len(row.ids)
    starts = block_starts(row, batch)
    changed_somewhere = False
    for first in range(0, stop - row.prompt, 5):  # change the real response from here on
        batch.inputs[0, row.prompt + first : stop] = 7
        after = hidden_states(network, batch)[0]
        batch.inputs[0, :stop] = row.ids
        blind = [i for i, start in starts.items() if start <= first]
        seeing = [i for i, start in starts.items() if start > first]
        np.testing.assert_array_equal(before[blind], after[blind])
        changed_somewhere |= any((before[i] != after[i]).any() for i in seeing)
    assert changed_somewhere


def test_blocks_of_probes_do_not_see_each_other(network):
    batch = batch_of(rows_of(["math"]))
    before = hidden_states(network, batch)[0]
    group = batch.sight.group[0]
    touched = np.flatnonzero(group == 2)
    batch.inputs[0, touched] = 7
    after = hidden_states(network, batch)[0]
    assert (before[touched] != after[touched]).any()
    others = group != 2
    np.testing.assert_array_equal(before[others], after[others])


def test_every_choice_is_asked_for_its_letter_alone_and_unseen_by_the_others(codec):
    rows = rows_of(LETTER_TASKS, lookup_share=1.0)
    batch = batch_of(rows)
    for i, row in enumerate(rows):
        letters = batch.targets[i][batch.targets[i] >= 0].tolist()
        assert letters == [choice[0] for choice in row.choices]
        assert len(set(letters)) == len(row.choices) >= 2
        for number, choice in enumerate(row.choices, start=1):
            copy = batch.sight.group[i] == number
            assert batch.inputs[i][copy].tolist() == [codec.mask, *choice[1:]]
            assert (batch.sight.limit[i][copy] == 0).all()  # the prompt


def last_stream(codec):
    return Stream(replace(SETTINGS, pool=64), codec, PHASES[-1], len(PHASES) - 1)


def test_batches_are_the_same_from_any_place_on(codec):
    stream = last_stream(codec)
    whole = list(itertools.islice(stream.batches(), 6))
    resumed = next(stream.batches(whole[3].place))
    for name in ("inputs", "targets", "weights"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole[4], name))
    assert resumed.place == whole[4].place
    assert resumed.problems == whole[4].problems


def test_the_last_phase_has_probes_and_masked_rows(codec):
    batches = itertools.islice(last_stream(codec).batches(), 6)
    assert {batch.sight is None for batch in batches} == {True, False}


def test_masked_rows_have_a_loss_only_at_masks_and_most_of_it_at_numbers(codec):
    batch = batch_of(rows_of(MIXTURE, probed=False))
    asked = batch.weights > 0
    assert asked.any(axis=1).all()
    assert (batch.inputs[asked] == codec.mask).all()
    assert (batch.targets[asked] != codec.mask).all()
    numbers = asked & np.isin(batch.targets, codec.numbers)
    texts = {codec.tokenizer.id_to_token(i) for i in batch.targets[numbers].tolist()}
    assert texts
    assert all(text.isascii() and text.isdecimal() for text in texts)
    assert (batch.weights[numbers] == SETTINGS.number_weight).all()


def test_a_sheet_asks_for_the_results_of_its_calculations_alone(codec):
    row = row_maker().sheet(np.random.default_rng(0))
    asked = np.flatnonzero(batch_of([row]).weights[0] > 0).tolist()
    assert asked == list(row.results)
    assert len(asked) == SETTINGS.sheet_calculations
    text = codec.tokenizer.decode(row.ids[row.prompt :], skip_special_tokens=False)
    found = re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)\.", text)
    work = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}
    assert len(found) == len(asked)
    assert all(work[sign](int(a), int(b)) == int(c) for a, sign, b, c in found)
    masked = [codec.tokenizer.id_to_token(row.ids[i]) for i in asked]
    assert masked == [c[-2:] for *_, c in found]


@pytest.mark.parametrize("probed", [True, False])
def test_the_shares_of_two_processes_add_up_to_the_loss_of_the_batch(network, probed):
    batch = batch_of(rows_of(["gsm8k", "mmlu", "mbpp"], probed=probed))
    whole = batch_loss(network, batch, Ranks())
    shares = [batch_loss(network, batch, Ranks(rank, 2)) for rank in range(2)]
    torch.testing.assert_close(sum(shares), whole)


def test_a_process_without_a_row_adds_nothing_and_still_has_gradients():
    network = fresh_network()
    loss = batch_loss(network, batch_of(rows_of(["gsm8k"])), Ranks(rank=1, world=2))
    loss.backward()
    assert loss.item() == 0
    assert all((param.grad == 0).all() for param in network.parameters())
