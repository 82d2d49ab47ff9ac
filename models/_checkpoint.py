"""Finding a checkpoint: a name, a folder or a hub id becomes a folder and its configuration.

Nothing here loads weights, so a command can check its parameters before it waits for them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4.errors import ModelError, did_you_mean, shortened
from c4.errors.system import exists, user_path
from c4.models._config import read_json, section, shown, whole

EMBEDDED = "tiny"
"""Name of the model that ships with c4."""
EMBEDDED_FOLDER = Path(__file__).parent / "tiny"
ALIASES = {
    "llada": "GSAI-ML/LLaDA-8B-Instruct",
    "llada-1.5": "GSAI-ML/LLaDA-1.5",
    "dream": "Dream-org/Dream-v0-Instruct-7B",
}
"""Short names of models, and their hub ids."""
SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PLAIN_NAME = re.compile(r"[^/\\\x00]{1,200}\.safetensors")
NATIVE_TYPES = frozenset({"llada", "Dream"})
"""Model types that become a decoder of transformers' own, whose every part is known."""
SHAPE_KEYS = ("length", "budget", "block_length")
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is known to exist; its weights may still be on the hub."""

    name: str
    """A short name that is safe as part of a path."""
    folder: Path
    config: Mapping[str, Any]
    hub_id: str | None = None
    revision: str | None = None
    """The commit on the hub; None for a local folder."""

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    @property
    def native(self) -> bool:
        """Whether it is of LLaDA's or Dream's kind, and not just any masked language model."""
        return self.model_type in NATIVE_TYPES

    @property
    def shift(self) -> bool:
        """Whether output i-1 predicts position i, as in Dream."""
        return self.model_type == "Dream"

    def shape_for(self, family: str) -> Mapping[str, int] | None:
        """The decode shape that this model was made for, if it defines one."""
        shape = section(section(self.config, "c4_shapes"), family)
        for key in shape.keys() - set(SHAPE_KEYS):
            raise ModelError(
                f"config.json: c4_shapes: {family} has {shown(key)}; a shape's keys are "
                f"{', '.join(SHAPE_KEYS)}"
            )
        return {key: whole(shape, key, most=2**20) for key in shape} or None


def find_checkpoint(name: str, revision: str | None = None) -> Checkpoint:
    """Resolve `tiny`, an alias, a local folder or a hub id. Reads only small files."""
    if name == EMBEDDED:
        if not (EMBEDDED_FOLDER / WEIGHTS).exists():
            raise ModelError(
                "this build does not contain the embedded model; name another with --model"
            )
        return _local(EMBEDDED_FOLDER, name, revision=None)
    folder = user_path(name)
    if exists(folder) and folder.is_dir() and name not in ALIASES:
        return _local(folder, folder.resolve().name, revision)
    hub_id = ALIASES.get(name, name)
    if not HUB_ID.fullmatch(hub_id):
        known = [EMBEDDED, *ALIASES]
        near = did_you_mean(name, known) or f"not one of {', '.join(known)}"
        raise ModelError(f"no model {shortened(name)!r}: not a folder, not a hub id; {near}")
    snapshot = download(hub_id, revision, SMALL_FILES)
    label = name if name in ALIASES else hub_id.replace("/", "--")
    return Checkpoint(label, snapshot, _read_config(snapshot), hub_id, snapshot.name)


def download(hub_id: str, revision: str | None, patterns: list[str]) -> Path:
    """Bring files of a hub repository into the local cache; returns the snapshot's folder.

    Of several processes that ask for a file at once, one brings it and the others wait.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                hub_id, revision=revision, allow_patterns=patterns, local_files_only=_offline()
            )
        )
    except Exception as error:  # the hub, its client, the network and the disk fail in many ways
        where = f"{hub_id}@{revision}" if revision else hub_id
        if _offline():
            raise ModelError(f"cannot get {where} from the hub: {OFFLINE}") from error
        raise ModelError(
            f"cannot get {where} from the hub ({type(error).__name__}); check the name and the "
            "network, or pass a local folder with --model"
        ) from error


OFFLINE = (
    "its cache does not hold all that is needed, and HF_HUB_OFFLINE forbids the download; run once "
    "without that variable, or pass a local folder with --model"
)


def _offline() -> bool:
    """Whether the user forbids the network, by HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def weight_files(checkpoint: Checkpoint) -> list[Path]:
    """The safetensors files of a checkpoint, downloaded if need be, in order."""
    folder = checkpoint.folder
    if checkpoint.hub_id:
        folder = download(checkpoint.hub_id, checkpoint.revision, ["*.safetensors"])
    index = folder / WEIGHTS_INDEX
    names = _indexed_names(index) if index.exists() else [WEIGHTS]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and checkpoint.hub_id and _offline():
        what = f"{missing[0]} of {checkpoint.hub_id}"
        raise ModelError(f"cannot get {what} from the hub: {OFFLINE}")
    if missing:
        raise ModelError(
            f"{folder}: no {missing[0]}; only safetensors weights are loaded (a pickled "
            "pytorch_model.bin can run code, so it is not read)"
        )
    return [folder / name for name in names]


def _indexed_names(index: Path) -> list[str]:
    """The file names of an index; each is a plain name, so no file outside the folder is read."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{index}: no weight_map from tensors to files")
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name):
            raise ModelError(
                f"{index}: {shown(name)} for tensor {tensor} is not the name of a safetensors "
                "file in the same folder"
            )
    return sorted(set(weight_map.values()))


def _local(folder: Path, name: str, revision: str | None) -> Checkpoint:
    if revision is not None:
        raise ModelError(f"--revision names a commit on the hub, but {folder} is a local folder")
    return Checkpoint(name, folder, _read_config(folder))


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        raise ModelError(f"{folder} has no config.json, so it is not a checkpoint")
    return read_json(path)
