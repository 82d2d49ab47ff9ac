"""Checkpoints with one thing wrong: each must end in a sentence that names it, and in seconds."""

import json
import random
import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import CHECKPOINTS, edit, make_whole

from c4.errors import C4Error, ConfigError, ModelError
from c4.models import find_checkpoint, load_model
from tests.cli.fuzz import judge
from tests.commands import c4


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


FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
HEADER = 4096
"""Bytes at the start of the weights that are worth damaging; behind them are only numbers."""
LINE = "record --task math --source embedded --n 1 --gen-length 8 --block-length 8 --no-grade"


def record(folder):
    """What `c4 record` makes of a checkpoint, as an exit code; it may not end otherwise."""
    words = [*LINE.split(), "--model", folder, "--out", folder.with_name("runs")]
    result = c4(*words)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert not judge(LINE.split(), result.exit_code, result.stdout, result.stderr)
    return result.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda checkpoint: checkpoint.name)
def test_the_command_refuses_a_malformed_checkpoint(tmp_path, checkpoint):
    assert record(checkpoint.make(tmp_path / "model")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", range(300))
def test_a_checkpoint_damaged_at_random_is_refused_or_loads(tmp_path, number):
    chance = random.Random(number)
    folder = make_whole(chance.choice(["llada", "dream", "bert"]), tmp_path / "model")
    path = folder / chance.choice(FILES)
    path.write_bytes(chance.choice(DAMAGES)(chance, path.read_bytes()))
    record(folder)


def flip(chance, data):
    """One bit is another."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def cut(chance, data):
    """The file ends too early."""
    return data[: chance.randrange(len(data))]


def drop(chance, data):
    """Some bytes are missing."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + data[at + chance.randrange(1, 20) :]


def insert(chance, data):
    """Some bytes are too many."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + chance.randbytes(chance.randrange(1, 20)) + data[at:]


def digit(chance, data):
    """A number is another, or absurd."""
    places = [i for i in range(min(len(data), HEADER)) if data[i : i + 1].isdigit()]
    at = chance.choice(places or [len(data) // 2])
    other = chance.choice([b"0", b"9", b"-1", b"1e9", b"999999999999", b"null", b"[]", b'"x"'])
    return data[:at] + other + data[at + 1 :]


DAMAGES = [flip, cut, drop, insert, digit]
