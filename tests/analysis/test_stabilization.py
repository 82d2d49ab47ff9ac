import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4.analysis.stabilization import settled_by

fractions = st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.25, 0.5, 1.0])), min_size=1)


@given(fractions, st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_s_p_is_the_smallest_progress_by_which_a_share_has_settled(values, share):
    found = settled_by(pl.Series(values, dtype=pl.Float64), share)
    candidates = sorted({v for v in values if v is not None})
    by_hand = [
        u for u in candidates if np.mean([v is not None and v <= u for v in values]) >= share - 1e-9
    ]
    assert found == (by_hand[0] if by_hand else None)


def test_a_cohort_that_never_settles_has_no_s_p():
    assert settled_by(pl.Series([None, None], dtype=pl.Float64), 0.9) is None
    assert settled_by(pl.Series([0.2, 0.4, None]), 0.5) == pytest.approx(0.4)
