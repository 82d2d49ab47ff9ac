"""Checkpoints: resolve a name, a folder or a hub id to a folder and its configuration.

Nothing here loads weights, so commands can check their parameters before that wait.
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
"""Hub ids of models by short name."""
SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PLAIN_NAME = re.compile(r"[^/\\\x00]{1,200}\.safetensors")
NATIVE_TYPES = frozenset({"llada", "Dream"})
"""Model types that are loaded as a known decoder class of transformers."""
SHAPE_KEYS = ("length", "budget", "block_length")
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose configuration was found; its weights may not be downloaded yet."""

    name: str
    """Short name that is safe in a path."""
    folder: Path
    config: Mapping[str, Any]
    hub_id: str | None = None
    revision: str | None = None
    """Commit on the hub; None for a local folder."""

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    @property
    def native(self) -> bool:
        """Whether this is LLaDA or Dream, as opposed to another masked language model."""
        return self.model_type in NATIVE_TYPES

    @property
    def shift(self) -> bool:
        """Whether output i-1 predicts position i, as in Dream."""
        return self.model_type == "Dream"

    def shape_for(self, family: str) -> Mapping[str, int] | None:
        """Decode shape that config.json defines for a task family, if any."""
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
    """Download files of a hub repository into the local cache and return the snapshot's folder.

    If several processes request a file at once, one downloads it and the others wait.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                hub_id, revision=revision, allow_patterns=patterns, local_files_only=_offline()
            )
        )
    except Exception as error:  # hub, client, network and disk raise many error types
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
    """Whether HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE disables network access."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def weight_files(checkpoint: Checkpoint) -> list[Path]:
    """Return a checkpoint's safetensors files in order, downloading them if necessary."""
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
    """Return an index's file names, checked to be plain names so that no other folder is read."""
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
