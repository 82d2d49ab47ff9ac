"""Replay and live decoding are the same decisions, bit for bit."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from conftest import byte_tokenizer, made_reading
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.decode.loop import decode
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.gates.candidates import CandidateReader, filled_predictions
from c4.gates.gate import exit_step
from c4.gates.live import LiveGate, LiveSignals
from c4.gates.oracle import Oracle
from c4.gates.registry import GATES, make_gate
from c4.gates.signals import NONE, Signals, read_signals, stabilization_step
from c4.gates.steps import CellRecorder
from c4.models import read_logits
from c4.store.cells import Cells
from c4.store.origins import Origin
from c4.tasks import TASKS, AnswerReading, Candidate, Ending, ReadingStyle, Shape
from c4.tasks.vocabulary import Vocabulary

TOKENIZER = byte_tokenizer([" 12", "1,", "234", "def f(x):", "\n    return", "\\boxed{", "漢"])
END = TOKENIZER.token_to_id("<|end|>")
MASK = TOKENIZER.token_to_id("<|mask|>")
VOCABULARY = Vocabulary(TOKENIZER.to_str(), [END])
BYTES = [TOKENIZER.token_to_id(c) for c in "ABĠ.7-4}Ċ"]
WORDS = [TOKENIZER.token_to_id(w) for w in (" 12", "1,", "234", "def f(x):", "\n    return")]
WORDS += [TOKENIZER.token_to_id(w) for w in ("\\boxed{", "漢", "<|end|>")]
SHAPE = Shape(length=12, budget=12, block_length=4)
LOGITS = np.array([5.0, 6.0, 7.5, 9.0], dtype=np.float32)
"""Of the token on top, all others being 0: confidences of 0.36, 0.60, 0.87 and 0.97."""
FAMILIES = ["mmlu", "gsm8k", "math", "humaneval"]
USUAL = AnswerReading()
READINGS = [AnswerReading(style, ending) for style in ReadingStyle for ending in Ending]
CHOICES = ("red", "blue")
readings = st.sampled_from(READINGS)
offers = st.sampled_from([(), CHOICES])


class Dreamer:
    """A denoiser whose predictions grow firm with time, and are full of ties."""

    mask_id = MASK
    shift = False

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.token = self.rng.choice(BYTES + WORDS, SHAPE.length)
        self.logit = self.rng.choice(LOGITS, SHAPE.length)

    def dream_on(self):
        """Some positions change their minds."""
        flip = self.rng.random(SHAPE.length) < 0.2
        self.token = np.where(flip, self.rng.choice(BYTES + WORDS, SHAPE.length), self.token)
        doubt = self.rng.random(SHAPE.length) < 0.5
        self.logit = np.where(doubt, self.rng.choice(LOGITS, SHAPE.length), self.logit)

    def logits(self, ids, start, *, positions=None, attention=None):
        """One token above all others at each position; a shadow thinks as its twin does."""
        self.dream_on()
        places = (np.arange(len(ids)) if positions is None else positions)[start:] - start
        logits = torch.zeros(len(places), TOKENIZER.get_vocab_size())
        chosen = torch.from_numpy(self.token[places])
        logits[torch.arange(len(places)), chosen] = torch.from_numpy(self.logit[places])
        return logits

    def interpret(self, logits):
        return read_logits(logits, self.mask_id)

    def read(self, ids, start):
        self.dream_on()
        confidence = self.rng.choice([0.3, 0.7, 0.7, 0.95], SHAPE.length).astype(np.float32)
        gap = self.rng.choice([0.5, 3.3, 7.7, 9.0], SHAPE.length).astype(np.float32)
        return made_reading(self.token.copy(), confidence, gap, 1 - confidence)


RULES = [
    Schedule(),
    CCTC(tau=0.7),
    Threshold(tau=0.7),
    SlowFast(tau=0.9),
    KLASS(tau=0.6),
    WINO(tau=0.7),
]


def recorded(seed, rule=None):
    recorder = CellRecorder()
    decoded = decode(Dreamer(seed), np.array([1, 2]), SHAPE, rule=rule, observer=recorder)
    return recorder.cells(), decoded


def test_klass_and_wino_do_here_what_sets_them_apart():
    klass = (recorded(seed, KLASS(tau=0.6))[1] for seed in range(200))
    assert any((decoded.origin == Origin.ACCEPTED).any() for decoded in klass)
    wino = (recorded(seed, WINO(tau=0.7))[1] for seed in range(200))
    assert any(decoded.revoked for decoded in wino)


@pytest.mark.parametrize("task", FAMILIES)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), rule=st.sampled_from(RULES), reading=readings, choices=offers)
def test_live_signals_are_the_recorded_ones_to_the_last_bit(task, seed, rule, reading, choices):
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, reading)
    cells, _ = recorded(seed, rule)
    from_disk = read_signals(cells[None], SHAPE, reader, [choices])[0]
    live = LiveSignals(SHAPE, CandidateReader(TASKS[task], VOCABULARY, 12, reading), choices)
    seen = []

    class Watch:
        def observe(self, view):
            seen.append(live.append(view))

    decode(Dreamer(seed), np.array([1, 2]), SHAPE, rule=rule, observer=Watch())
    for spec in fields(Signals):
        expected, got = getattr(from_disk, spec.name)[0], getattr(seen[-1], spec.name)
        assert got.dtype == expected.dtype, spec.name
        np.testing.assert_array_equal(got, expected, err_msg=spec.name)


@pytest.mark.parametrize("task", FAMILIES)
@pytest.mark.parametrize("name", [n for n, g in GATES.items() if not hasattr(g, "needs_future")])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), rule=st.sampled_from(RULES), reading=readings, choices=offers)
def test_every_gate_exits_live_where_it_does_on_replay(task, name, seed, rule, reading, choices):
    gate = make_gate(name, TASKS[task].family)
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, reading)
    cells, full = recorded(seed, rule)
    signals = read_signals(cells[None], SHAPE, reader, [choices])[0]
    step = int(exit_step(gate.fires(signals))[0])
    watch = LiveGate(gate, SHAPE, reader, choices)
    live = decode(Dreamer(seed), np.array([1, 2]), SHAPE, rule=rule, gate=watch)
    assert live.exited == (step > 0)
    assert live.steps == (step or full.steps)
    after_fill = filled_predictions(cells.token, cells.masked)[live.steps - 1]
    assert live.ids.tolist() == after_fill.tolist()
    if not step:
        assert live.ids.tolist() == full.ids.tolist()


CUT, SKIP = (AnswerReading(ending=ending) for ending in Ending)


def read(task, text_tokens, reading=CUT):
    """The candidate in a prediction made of these tokens, padded with end tokens."""
    ids = np.array([TOKENIZER.token_to_id(t) for t in text_tokens], dtype=np.int32)
    ids = np.append(ids, np.full(SHAPE.length - len(ids), END)).astype(np.int32)
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, reading)
    ((found, _),) = reader.read(ids[None], [()])
    return found


def test_last_looks_only_into_the_tail_and_keeps_the_span_s_place():
    found = read("gsm8k", ["A"] * 8 + ["1,", "234"])  # the tail starts at int(12 * 0.7) = 8
    assert (found.value, found.span) == ("1234", (8, 10))
    assert read("gsm8k", ["7"] + ["A"] * 8) is None


def test_text_behind_an_end_token_is_no_text_unless_endings_are_skipped():
    tokens = ["A"] * 9 + ["<|end|>", "7"]
    assert read("gsm8k", tokens, CUT) is None
    found = read("gsm8k", tokens, SKIP)
    assert (found.value, found.span) == ("7", (10, 11))


def test_a_skipped_end_token_does_not_glue_what_stands_around_it():
    found = read("gsm8k", ["A"] * 8 + ["1,", "<|end|>", "234"], SKIP)
    assert (found.value, found.span) == ("234", (10, 11))
    found = read("mmlu", ["B", "<|end|>", "4"], SKIP)
    assert (found.value, found.span) == ("B", (0, 1))


def test_a_reader_keeps_examples_with_other_choices_apart():
    def offered(text, choices=()):
        return Candidate("|".join(choices), 0, 1)

    task = replace(TASKS["mmlu"], extract=offered)
    reader = CandidateReader(task, VOCABULARY, SHAPE.length, AnswerReading())
    row = np.full(SHAPE.length, BYTES[0], dtype=np.int32)
    read = reader.read(np.stack([row, row, row]), [("a", "b"), ("c",), ("a", "b")])
    assert [found.value for found, _ in read] == ["a|b", "c", "a|b"]


def test_a_letter_has_a_span_only_near_the_start():
    assert read("mmlu", [" 12", "B"]) is None  # 12B is no letter that stands alone
    found = read("mmlu", ["7", ".", "B", "."])
    assert (found.value, found.span) == ("B", (2, 3))
    late = read("mmlu", ["7", ".", "7", ".", "7", ".", "B"])
    assert (late.value, late.span) == ("B", None)


def test_code_reaches_from_the_start_through_the_body():
    found = read("humaneval", ["def f(x):", "\n    return", " 12", "Ċ", "A"])
    assert found.value == "def f(x):\n    return 12"
    assert found.span == (0, 3)


def test_a_span_beyond_the_current_block_has_no_confidence():
    reader = CandidateReader(TASKS["gsm8k"], VOCABULARY, SHAPE.length, USUAL)
    cells, _ = recorded(0)
    seven = np.full_like(cells.token, TOKENIZER.token_to_id("7"))
    signals = read_signals(replace(cells, token=seven)[None], SHAPE, reader, [()])[0]
    assert (signals.candidate == 0).all()
    assert np.isnan(signals.confidence[0, :8]).all()  # the tail lies in the third block
    assert not np.isnan(signals.confidence[0, 8:]).any()
    assert signals.run[0].tolist() == list(range(1, 13))


@pytest.mark.parametrize("task", FAMILIES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_candidates_and_answers_have_one_numbering(task, seed):
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, USUAL)
    cells, _ = recorded(seed)
    signals, (values,) = read_signals(cells[None], SHAPE, reader, [()])
    assert len(set(values)) == len(values)
    filled = filled_predictions(cells.token, cells.masked)
    read = reader.read(filled, [()] * len(filled))
    for t, (found, answer) in enumerate(read):
        candidate, number = (getattr(signals, n)[0, t] for n in ("candidate", "answer"))
        assert candidate == NONE or values[candidate] == found.value
        assert (number == NONE) == (answer is None)
        assert number == NONE or values[number] == answer


@pytest.mark.parametrize(
    ("task", "tokens", "settled"),
    [
        ("math", [*"A" * 8, " 12"], 1),
        ("math", ["\\boxed{", "7", "}", *"A" * 5, " 12"], 13),  # the box stands before the tail
        ("gsm8k", [*"A" * 8, "234"], 1),
        ("gsm8k", [*"A" * 7, "1,", "234"], 13),  # and so does the front of 1,234
        ("gsm8k", ["7", *"A" * 11], 13),  # an answer that no gate sees
    ],
)
def test_an_answer_settles_only_where_the_candidate_is_the_full_decode_s(task, tokens, settled):
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, USUAL)
    ids = [TOKENIZER.token_to_id(t) for t in tokens]
    cells, _ = recorded(0)
    same = np.broadcast_to(np.array(ids + [END] * (12 - len(ids)), np.int32), cells.token.shape)
    signals = read_signals(replace(cells, token=same.copy())[None], SHAPE, reader, [()])[0]
    assert stabilization_step(signals).tolist() == [settled]
    assert exit_step(Oracle().fires(signals)).tolist() == [settled % 13]


@pytest.mark.parametrize("task", FAMILIES)
def test_many_trajectories_at_once_are_each_of_them_alone(task):
    many = [recorded(seed)[0] for seed in range(5)]
    stacked = Cells(*(np.stack([getattr(c, f.name) for c in many]) for f in fields(Cells)))
    reader = CandidateReader(TASKS[task], VOCABULARY, SHAPE.length, USUAL)
    together, values = read_signals(stacked, SHAPE, reader, [()] * len(stacked.token))
    for i, cells in enumerate(many):
        alone, its_values = read_signals(cells[None], SHAPE, reader, [()])
        assert [values[i]] == its_values
        for spec in fields(Signals):
            np.testing.assert_array_equal(
                getattr(together, spec.name)[i], getattr(alone, spec.name)[0]
            )


def test_a_reader_that_forgets_reads_the_same(monkeypatch):
    cells = recorded(3)[0]
    readers = [CandidateReader(TASKS["math"], VOCABULARY, 12, USUAL) for _ in range(2)]
    first, values = read_signals(cells[None], SHAPE, readers[0], [()])
    monkeypatch.setattr("c4.gates.candidates.MOST_REMEMBERED", 1)
    again, same_values = read_signals(cells[None], SHAPE, readers[1], [()])
    assert values == same_values
    np.testing.assert_array_equal(first.answer, again.answer)
