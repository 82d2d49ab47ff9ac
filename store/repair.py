"""Repair: rebuild a run's manifest from its parts, each of which holds the whole identity."""

from collections.abc import Sequence
from dataclasses import dataclass

from c4.errors import RunError
from c4.errors.text import counted
from c4.store.claims import SEAL, Claims
from c4.store.locations import Location
from c4.store.manifest import (
    MANIFEST,
    RECORDED,
    TOKENIZER,
    Manifest,
    OtherFormatError,
    name_differences,
    read_manifest,
    read_tokenizer,
    validate_identity,
    write_manifest,
)
from c4.store.parts import Part, naming, run_parts
from c4.store.storage import folder_exists


@dataclass(frozen=True)
class Repair:
    """The result of repairing a run."""

    done: Sequence[str]
    remaining: Sequence[str]
    """Problems that cannot be repaired, with advice for each."""


def repair_run(folder: Location) -> Repair:
    """Rebuild a missing or damaged manifest from the run's parts. No part is changed.

    The run is claimed only to write the manifest, so a read-only folder can still be inspected.
    """
    if not folder_exists(folder):
        raise RunError(f"{folder}: no such folder")
    parts, done, remaining = [], [], []
    for part in run_parts(folder, RECORDED):
        try:
            part.load()
            with naming(part.path):
                validate_identity(part.identity)
            parts.append((part, part.run))
        except FileNotFoundError:  # a recording process has just sealed it
            pass
        except RunError as error:
            remaining.append(str(error))
        part.forget()
    manifest = _sound_manifest(folder)
    if manifest is None:
        rebuilt = _manifest_of(folder, parts, remaining)
        with Claims(folder) as claims, claims.hold(SEAL):
            manifest = _sound_manifest(folder)  # another process may have written one meanwhile
            if manifest is None:
                manifest = rebuilt
                write_manifest(folder, manifest)
                done.append(f"{folder / MANIFEST}: rebuilt from {counted(len(parts), 'part')}")
    remaining += [
        f"{part.path}: belongs to another run than {MANIFEST} says; move it back where it came from"
        for part, run in parts
        if run != manifest.digest
    ]
    try:
        read_tokenizer(folder, manifest)
    except RunError as error:
        remaining.append(
            f"{error}; or copy it from another run of the same model ({TOKENIZER} of SHA-256 "
            f"{manifest.tokenizer_file_sha256}). Until then rows and grades can be read, but texts "
            "and replays cannot be made"
        )
    return Repair(done, remaining)


def _sound_manifest(folder: Location) -> Manifest | None:
    """Return the manifest, or None if it is missing or damaged; another format is an error."""
    try:
        return read_manifest(folder)
    except OtherFormatError:
        raise
    except RunError:
        return None


def _manifest_of(
    folder: Location, parts: Sequence[tuple[Part, str]], damaged: Sequence[str]
) -> Manifest:
    """Build the manifest from the parts, which must all belong to one run."""
    if not parts:
        nothing = (
            f"{folder}: no part here says what the run was; name the folder of one run, such as "
            "runs/model=tiny/task=math/method=baseline"
        )
        raise RunError("\n".join([nothing, *damaged]))
    first, run = parts[0]
    other = next((part for part, its_run in parts if its_run != run), None)
    if other is not None:
        keys = sorted(other.identity.keys() | first.identity.keys())
        raise RunError(
            f"{folder}: parts of several runs; move those of all but one somewhere else. "
            f"{other.kind}/{other.path.name} (there) differs from {first.kind}/{first.path.name} "
            "(here):\n" + "\n".join(name_differences(other.identity, first.identity, keys))
        )
    return Manifest(
        identity=first.identity,
        environment=next(iter(first.made_with), {}),
        tokenizer_file_sha256=first.tokenizer_sha256,
    )
