"""Finding a checkpoint: a name, a folder or a hub id becomes a folder and its configuration.

Nothing here loads weights, so a command can check its parameters before it waits for them.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4.errors import ModelError

EMBEDDED = "tiny"
EMBEDDED_FOLDER = Path(__file__).parent / "tiny"
ALIASES = {
    "llada": "GSAI-ML/LLaDA-8B-Instruct",
    "llada-1.5": "GSAI-ML/LLaDA-1.5",
    "dream": "Dream-org/Dream-v0-Instruct-7B",
}
SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is known to exist; its weights may still be on the hub."""

    name: str
    """A short label, safe as part of a path."""
    folder: Path
    config: Mapping[str, Any]
    hub_id: str | None = None
    revision: str | None = None
    """The commit on the hub; None for a local folder."""

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    def shape_for(self, family: str) -> Mapping[str, int] | None:
        """The decode shape this model was made for, if it brings its own."""
        shapes: Mapping[str, Mapping[str, int]] = self.config.get("c4_shapes", {})
        return shapes.get(family)


def find_checkpoint(name: str, revision: str | None = None) -> Checkpoint:
    """Resolve `tiny`, an alias, a local folder or a hub id. Reads only small files."""
    if name == EMBEDDED:
        if not (EMBEDDED_FOLDER / WEIGHTS).exists():
            raise ModelError(
                "this build does not carry the embedded model; name another with --model"
            )
        return _local(EMBEDDED_FOLDER, name, revision=None)
    folder = Path(name).expanduser()
    if folder.is_dir() and name not in ALIASES:
        return _local(folder, folder.resolve().name, revision)
    hub_id = ALIASES.get(name, name)
    if not HUB_ID.fullmatch(hub_id):
        known = ", ".join([EMBEDDED, *ALIASES])
        raise ModelError(f"no model {name!r}: not a folder, not a hub id, not one of {known}")
    snapshot = download(hub_id, revision, SMALL_FILES)
    label = name if name in ALIASES else hub_id.replace("/", "--")
    return Checkpoint(label, snapshot, _read_config(snapshot), hub_id, snapshot.name)


def download(hub_id: str, revision: str | None, patterns: list[str]) -> Path:
    """Bring files of a hub repository into the local cache; returns the snapshot's folder."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        where = f"{hub_id}@{revision}" if revision else hub_id
        raise ModelError(
            f"cannot get {where} from the hub ({type(error).__name__}); check the name and the "
            "network, or pass a local folder with --model"
        ) from error


def weight_files(checkpoint: Checkpoint) -> list[Path]:
    """The safetensors files of a checkpoint, downloaded if need be, in order."""
    folder = checkpoint.folder
    if checkpoint.hub_id:
        folder = download(checkpoint.hub_id, checkpoint.revision, ["*.safetensors"])
    index = folder / WEIGHTS_INDEX
    if index.exists():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    else:
        names = [WEIGHTS]
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise ModelError(
            f"{folder}: no {missing[0]}; only safetensors weights are loaded (a pickled "
            "pytorch_model.bin can run code, so it is not read)"
        )
    return [folder / name for name in names]


def weights_hash(files: Sequence[Path]) -> str:
    """SHA-256 over the weight files' own SHA-256s."""
    return hashlib.sha256("".join(map(_file_hash, files)).encode()).hexdigest()


def _file_hash(path: Path) -> str:
    blob = path.resolve().name
    if path.is_symlink() and re.fullmatch(r"[0-9a-f]{64}", blob):
        return blob  # the hub cache names a large file by its SHA-256; 16 GB need not be read
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _local(folder: Path, name: str, revision: str | None) -> Checkpoint:
    if revision is not None:
        raise ModelError(f"--revision names a commit on the hub, but {folder} is a local folder")
    return Checkpoint(name, folder, _read_config(folder))


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.json"
    try:
        config: Mapping[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ModelError(f"{folder}: no config.json, so not a checkpoint") from None
    except ValueError as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from None
    return config


def read_tensors(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """Every tensor of the files, one at a time."""
    from safetensors import SafetensorError, safe_open

    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    yield name, file.get_tensor(name)
        except SafetensorError as error:
            raise ModelError(f"{path}: damaged safetensors file ({error})") from error
