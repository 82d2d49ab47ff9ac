"""With HF_HUB_OFFLINE, the hub's cache is all there is; what it lacks is said in a sentence."""

import json
import os
import subprocess
import sys

import pytest
from conftest import save_llada

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SCRIPT = """
import json, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")

socket.socket.connect = socket.getaddrinfo = refuse
from c4.errors import ModelError
from c4.models import find_checkpoint
from c4.models._checkpoint import weight_files

for model, revision in json.load(sys.stdin):
    try:
        found = find_checkpoint(model, revision)
        print(found.name, found.revision, *(path.name for path in weight_files(found)))
    except ModelError as error:
        print(" ".join(str(error).split()))
"""
CASES = {
    ("someone/model", None): f"someone--model {COMMIT} model.safetensors",
    ("someone/model", "main"): f"someone--model {COMMIT} model.safetensors",
    ("someone/model", COMMIT): f"someone--model {COMMIT} model.safetensors",
    ("someone/other", None): "cannot get someone/other from the hub: its cache does not hold all",
    ("someone/model", "f" * 40): f"cannot get someone/model@{'f' * 40} from the hub: its cache",
    ("someone/bare", None): "cannot get model.safetensors of someone/bare from the hub: its cache",
    ("someone/half", None): "cannot get second.safetensors of someone/half from the hub: its cache",
}


def cache(hub, model):
    """A model in the hub's cache as it lays it out: one snapshot, with links that lead to blobs."""
    repository = hub / f"models--someone--{model}"
    snapshot = save_llada(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "blobs").mkdir()
    (snapshot / "model.safetensors").rename(repository / "blobs" / ("a" * 64))
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{'a' * 64}")
    return snapshot


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What one process says to each case that was told to stay offline by the environment alone."""
    hub = tmp_path_factory.mktemp("hub")
    cache(hub, "model")
    (cache(hub, "bare") / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model.safetensors", "b": "second.safetensors"}}
    (cache(hub, "half") / "model.safetensors.index.json").write_text(json.dumps(index))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(list(CASES)),
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(hub)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(CASES, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_offline_a_model_comes_from_the_cache_or_what_is_missing_is_named(said, case):
    assert said[case].startswith(CASES[case])
    if "cannot" in said[case]:
        assert "HF_HUB_OFFLINE forbids the download; run once without that variable" in said[case]
    else:
        assert said[case] == CASES[case]
