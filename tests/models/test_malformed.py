"""Checkpoints with one thing wrong: each must end in a sentence that names it, and in seconds."""

import json
import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import CHECKPOINTS, edit, make_whole

from c4.errors import C4Error, ConfigError, ModelError
from c4.models import find_checkpoint, load_model


@pytest.mark.parametrize(("base", "mask_id"), [("llada", 299), ("dream", 299), ("bert", 257)])
def test_the_checkpoints_that_are_broken_below_load_as_they_are(tmp_path, base, mask_id):
    loaded = load_model(find_checkpoint(str(make_whole(base, tmp_path / base))))
    assert loaded.denoiser.mask_id == mask_id


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda checkpoint: checkpoint.name)
def test_a_malformed_checkpoint_is_refused_in_words(tmp_path, checkpoint):
    folder = checkpoint.make(tmp_path / "model")
    with pytest.raises((ModelError, ConfigError)) as refused:
        load_whole(folder)
    assert checkpoint.message in str(refused.value)


def load_whole(folder):
    """Read all of a checkpoint that a recording reads."""
    found = find_checkpoint(str(folder))
    found.shape_for("long_reasoning")
    return load_model(found)


def test_there_are_many_of_them_and_no_two_have_one_name():
    assert len({checkpoint.name for checkpoint in CHECKPOINTS}) == len(CHECKPOINTS) >= 60


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@pytest.mark.parametrize("base", ["llada", "dream"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_of_any_key_loads_or_is_refused(tmp_path, base, data):
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    make_whole(base, folder)
    key = data.draw(st.sampled_from(sorted(json.loads((folder / "config.json").read_text()))))
    edit(folder, **{key: data.draw(JSON)})
    with suppress(C4Error):
        load_model(find_checkpoint(str(folder)))
