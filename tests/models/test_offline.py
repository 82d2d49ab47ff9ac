"""With HF_HUB_OFFLINE, the hub's cache is all there is; what it lacks is said in a sentence."""

import json
import os
import subprocess
import sys

import pytest
from conftest import save_llada

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SCRIPT = """
import socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")

socket.socket.connect = socket.getaddrinfo = refuse
from c4.errors import ModelError
from c4.models import find_checkpoint
from c4.models._checkpoint import weight_files

try:
    checkpoint = find_checkpoint(sys.argv[1], sys.argv[2] or None)
    print(checkpoint.revision, *(path.name for path in weight_files(checkpoint)))
except ModelError as error:
    print(error)
"""


@pytest.fixture
def cache(tmp_path):
    """The hub's cache as it lays it out, with one snapshot: links that lead to blobs."""
    repository = tmp_path / "hub" / "models--someone--model"
    snapshot = save_llada(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "blobs").mkdir()
    (snapshot / "model.safetensors").rename(repository / "blobs" / ("a" * 64))
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{'a' * 64}")
    return snapshot


def offline(tmp_path, model, revision=""):
    """What a process says that was told to stay offline by the environment alone."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    command = [sys.executable, "-c", SCRIPT, model, revision]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("revision", ["", "main", COMMIT])
def test_a_cached_model_is_found_without_the_network(tmp_path, cache, revision):
    assert offline(tmp_path, "someone/model", revision) == f"{COMMIT} model.safetensors"


def test_a_model_that_is_not_cached_is_named(tmp_path, cache):
    message = offline(tmp_path, "someone/other")
    assert message.startswith("cannot get someone/other from the hub: its cache does not hold all")
    assert "HF_HUB_OFFLINE forbids the download; run once without that variable" in message


def test_a_revision_that_is_not_cached_is_named(tmp_path, cache):
    message = offline(tmp_path, "someone/model", "f" * 40)
    assert message.startswith(f"cannot get someone/model@{'f' * 40} from the hub: its cache")


def no_weights(snapshot):
    (snapshot / "model.safetensors").unlink()


def one_of_two_shards(snapshot):
    weight_map = {"a": "model.safetensors", "b": "second.safetensors"}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


@pytest.mark.parametrize(
    ("change", "missing"),
    [(no_weights, "model.safetensors"), (one_of_two_shards, "second.safetensors")],
)
def test_weights_that_are_not_cached_are_named(tmp_path, cache, change, missing):
    change(cache)
    message = offline(tmp_path, "someone/model")
    assert message.startswith(f"cannot get {missing} of someone/model from the hub: its cache")
