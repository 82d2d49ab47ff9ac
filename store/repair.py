"""Repair: a run's manifest, rebuilt from its parts, each of which holds the whole identity."""

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

SHOWN = 5
"""Files that a message names before it only counts the others."""


@dataclass(frozen=True)
class Repair:
    """What was repaired in a run."""

    done: Sequence[str]
    remaining: Sequence[str]
    """What cannot be repaired, and what to do about it."""


def repair_run(folder: Location) -> Repair:
    """Rebuild a missing or damaged manifest from the run's parts. No part is changed.

    The folder is claimed only to write, so a folder that cannot be written can be looked at.
    """
    if not folder_exists(folder):
        raise RunError(f"{folder}: no such folder")
    runs, damaged = _parts_by_run(folder)
    manifest = _sound_manifest(folder)
    done = []
    if manifest is None:
        rebuilt = _manifest_of(folder, runs, damaged)
        with Claims(folder) as claims, claims.hold(SEAL):
            manifest = _sound_manifest(folder)  # another process may have begun a run since
            if manifest is None:
                manifest = rebuilt
                write_manifest(folder, manifest)
                count = counted(len(runs[manifest.digest]), "part")
                done.append(f"{folder / MANIFEST}: rebuilt from {count}")
    strangers = [
        f"{part.path}: belongs to another run than {MANIFEST} says; move it back where it came from"
        for run, parts in runs.items()
        for part in parts
        if run != manifest.digest
    ]
    return Repair(done, [*damaged, *strangers, *_tokenizer_problem(folder, manifest)])


def _sound_manifest(folder: Location) -> Manifest | None:
    """The manifest if it can be read; one of another format is not damaged, and is an error."""
    try:
        return read_manifest(folder)
    except OtherFormatError:
        raise
    except RunError:
        return None


def _parts_by_run(folder: Location) -> tuple[dict[str, list[Part]], list[str]]:
    """The parts by the run that they belong to, and what is wrong with those that do not say."""
    runs: dict[str, list[Part]] = {}
    damaged = []
    for part in run_parts(folder, RECORDED):
        try:
            run = part.load().run
            with naming(part.path):
                validate_identity(part.identity)
            runs.setdefault(run, []).append(part)
        except FileNotFoundError:
            continue  # a process that records has sealed it
        except RunError as error:
            damaged.append(str(error))
        finally:
            part.forget()
    return runs, damaged


def _manifest_of(folder: Location, runs: dict[str, list[Part]], damaged: Sequence[str]) -> Manifest:
    """The manifest of the parts, if they all belong to one run."""
    if not runs:
        nothing = (
            f"{folder}: no part here says what the run was; name the folder of one run, such as "
            "runs/model=tiny/task=math/method=baseline"
        )
        raise RunError("\n".join([nothing, *damaged]))
    if len(runs) > 1:
        raise RunError(_mixed(folder, list(runs.values())))
    first = next(iter(runs.values()))[0]
    return Manifest(
        identity=first.identity,
        environment=next(iter(first.made_with), {}),
        tokenizer_file_sha256=first.tokenizer_sha256,
    )


def _mixed(folder: Location, runs: Sequence[Sequence[Part]]) -> str:
    """The message about a folder with parts of several runs: which parts, and how these differ."""
    here = runs[0][0]
    lines = [f"{folder}: parts of {len(runs)} runs; move those of all but one somewhere else"]
    for parts in runs:
        names = ", ".join(f"{part.kind}/{part.path.name}" for part in parts[:SHOWN])
        more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
        lines.append(f"run {parts[0].run}: {names}{more}")
    for there, *_ in runs[1:]:
        lines.append(f"{there.run} (there) differs from {here.run} (here):")
        keys = sorted(there.identity.keys() | here.identity.keys())
        lines += name_differences(there.identity, here.identity, keys)
    return "\n".join(lines)


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
