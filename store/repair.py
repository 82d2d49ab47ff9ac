"""Putting a run together again from its parts, which say what they belong to."""

from collections.abc import Mapping, Sequence
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
from c4.store.parts import Part, Stamp, metadata_of, naming, open_part, run_parts
from c4.store.storage import folder_exists

SHOWN = 5
"""Files that a message names before it only counts the others."""


@dataclass(frozen=True)
class Repair:
    """What became of a run that was to be repaired."""

    done: Sequence[str]
    remaining: Sequence[str]
    """What cannot be repaired, and what to do about it."""


def repair_run(folder: Location) -> Repair:
    """Rebuild a missing or damaged manifest from the run's parts. No part is touched.

    The folder is claimed only to write, so that one that cannot be written can be looked at.
    """
    if not folder_exists(folder):
        raise RunError(f"{folder}: no such folder")
    stamps, damaged = _read_stamps(folder)
    manifest = _sound_manifest(folder)
    done = []
    if manifest is None:
        run = _only_run(folder, stamps, damaged)
        with Claims(folder) as claims, claims.hold(SEAL):
            manifest = _sound_manifest(folder)  # another process may have begun a run since
            if manifest is None:
                manifest = _rebuild(folder, run)
                done.append(f"{folder / MANIFEST}: rebuilt from {counted(len(stamps), 'part')}")
    strangers = [
        f"{part.path}: belongs to another run than {MANIFEST} says; move it back where it came from"
        for part, stamp in stamps.items()
        if stamp.digest != manifest.digest
    ]
    return Repair(done, [*damaged, *strangers, *_tokenizer_problem(folder, manifest)])


def _sound_manifest(folder: Location) -> Manifest | None:
    """The manifest if it can be read; one of another format is no damage, and is refused."""
    try:
        return read_manifest(folder)
    except OtherFormatError:
        raise
    except RunError:
        return None


def _read_stamps(folder: Location) -> tuple[dict[Part, Stamp], list[str]]:
    """What each part says of its run, and what is wrong with those that say nothing."""
    stamps, damaged = {}, []
    for part in run_parts(folder, RECORDED):
        try:
            file = open_part(part)
            with naming(part.path):
                stamp = Stamp.read(metadata_of(file))
                validate_identity(stamp.identity)
            stamps[part] = stamp
        except FileNotFoundError:
            continue  # sealed away by a process that records
        except RunError as error:
            damaged.append(str(error))
    return stamps, damaged


def _only_run(folder: Location, stamps: Mapping[Part, Stamp], damaged: Sequence[str]) -> Stamp:
    """What the parts belong to, if it is one run."""
    runs: dict[str, list[Part]] = {}
    for part, stamp in stamps.items():
        runs.setdefault(stamp.digest, []).append(part)
    if not runs:
        raise RunError(
            "\n".join(
                [
                    f"{folder}: no part here says what the run was; name the folder of one run, "
                    "such as runs/model=tiny/task=math/method=baseline",
                    *damaged,
                ]
            )
        )
    if len(runs) > 1:
        raise RunError(_mixed(folder, [(stamps[parts[0]], parts) for parts in runs.values()]))
    (parts,) = runs.values()
    made = [one for part in parts for one in stamps[part].made_with]
    return Stamp(stamps[parts[0]].identity, stamps[parts[0]].tokenizer_file_sha256, made)


def _mixed(folder: Location, runs: Sequence[tuple[Stamp, Sequence[Part]]]) -> str:
    """That a folder holds parts of several runs: which, and how these differ."""
    (first, _), *others = runs
    keys = {key for stamp, _ in runs for key in stamp.identity}
    lines = [f"{folder}: parts of {len(runs)} runs; move those of all but one somewhere else"]
    for stamp, parts in runs:
        names = ", ".join(f"{p.path.parent.name}/{p.path.name}" for p in parts[:SHOWN])
        more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
        lines.append(f"run {stamp.digest}: {names}{more}")
    for stamp, _ in others:
        lines.append(f"{stamp.digest} (there) differs from {first.digest} (here):")
        lines += name_differences(stamp.identity, first.identity, sorted(keys))
    return "\n".join(lines)


def _rebuild(folder: Location, stamp: Stamp) -> Manifest:
    manifest = Manifest(
        identity=stamp.identity,
        environment=dict(stamp.made_with[0]) if stamp.made_with else {},
        tokenizer_file_sha256=stamp.tokenizer_file_sha256,
    )
    write_manifest(folder, manifest)
    return manifest


def _tokenizer_problem(folder: Location, manifest: Manifest) -> list[str]:
    try:
        read_tokenizer(folder, manifest)
        return []
    except RunError as error:
        return [
            f"{error}; or copy it from another run of the same model ({TOKENIZER} of SHA-256 "
            f"{manifest.tokenizer_file_sha256}). Until then rows and grades can be read, but texts "
            "and replays cannot be made"
        ]
