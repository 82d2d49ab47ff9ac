import numpy as np
from conftest import Scripted
from hypothesis import given
from hypothesis import strategies as st

from c4.decode.loop import decode
from c4.gates.steps import CellRecorder, fixed_point
from c4.models import Reading
from c4.store.columns import HIGHEST, RESOLUTION
from c4.tasks import Shape


@st.composite
def scripted_decodes(draw):
    """A shape and scripted predictions for it, with many ties."""
    block = draw(st.integers(1, 6))
    blocks = draw(st.integers(1, 3))
    per_block = draw(st.integers(1, block))
    shape = Shape(length=block * blocks, budget=per_block * blocks, block_length=block)
    size = (shape.budget, shape.length)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tokens = rng.integers(0, 9, size)
    confidence = rng.choice([0.25, 0.5, 0.5, 0.75, 1.0], size)
    return shape, tokens, confidence


def transcription(shape, tokens, confidence):
    """Section 2's baseline decode, word by word."""
    x = [None] * shape.length
    t = 0
    for n in range(shape.blocks):
        block = range(n * shape.block_length, (n + 1) * shape.block_length)
        m = sum(x[i] is None for i in block)
        q, r = m // shape.steps_per_block, m % shape.steps_per_block
        for s in range(1, shape.steps_per_block + 1):
            masked = [i for i in block if x[i] is None]
            best = sorted(masked, key=lambda i: (-confidence[t][i], i))
            for i in best[: q + (1 if s <= r else 0)]:
                x[i] = tokens[t][i]
            t += 1
    return x


@given(scripted_decodes())
def test_the_baseline_is_the_specification_s(case):
    shape, tokens, confidence = case
    decoded = decode(Scripted(tokens, confidence), np.array([7, 8]), shape)
    assert decoded.ids.tolist() == transcription(shape, tokens, confidence)
    assert decoded.steps == shape.budget


def test_rules_see_raw_confidence_and_observers_the_rounded_one():
    """Two confidences that round to one number still commit in their own order."""
    close = [0.5, 0.5 + 2.0**-20]
    shape = Shape(length=2, budget=2, block_length=2)
    recorder = CellRecorder()
    predictor = Scripted([[1, 2], [3, 4]], [close, close])
    decoded = decode(predictor, np.array([7]), shape, observer=recorder)
    assert decoded.ids.tolist() == [3, 2]
    assert [ids.tolist() for ids in predictor.inputs] == [[7, 99, 99], [7, 99, 2]]
    assert recorder.cells().confidence[0].tolist() == [0.5, 0.5]


@given(st.sampled_from(sorted(RESOLUTION)), st.lists(st.floats(0, 1, width=32), min_size=1))
def test_rounding_is_idempotent_and_close(signal, values):
    raw = np.array(values, dtype=np.float32) * np.float32(HIGHEST[signal])
    once = fixed_point(signal, raw)
    assert once.dtype == np.float32
    np.testing.assert_array_equal(fixed_point(signal, once), once)
    assert np.abs(once - raw).max() <= RESOLUTION[signal] / 2


def test_a_gap_beyond_all_measure_is_cut_where_float32_stops_being_exact():
    raw = np.array([3e5, 65536.0, 1e30], dtype=np.float32)
    assert fixed_point("gap", raw).tolist() == [65536.0] * 3


def test_views_do_not_change_when_the_decode_goes_on():
    views = []

    class Keep:
        def observe(self, view):
            views.append(view)

    confidence = np.full((2, 2), 0.5, dtype=np.float32)
    decode(
        Scripted([[1, 2], [3, 4]], confidence),
        np.array([7]),
        Shape(length=2, budget=2, block_length=2),
        observer=Keep(),
    )
    assert views[0].masked.tolist() == [True, True]
    assert views[1].masked.tolist() == [False, True]


def test_a_reading_s_arrays_are_not_written_to():
    reading = Reading(*(np.arange(4) for _ in range(5)))
    before = reading.confidence.copy()

    class Fixed:
        mask_id = 99

        def read(self, ids, start):
            return reading

    decode(
        Fixed(), np.array([1]), Shape(length=4, budget=4, block_length=4), observer=CellRecorder()
    )
    np.testing.assert_array_equal(reading.confidence, before)
