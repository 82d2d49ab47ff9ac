"""Merge: copy the parts of a run from another folder into this one.

Both folders must hold parts of one run, decoded on two machines or in two folders. Parts and grades
that the target lacks are copied unchanged.
"""

import logging
from dataclasses import asdict, dataclass
from typing import Any

from c4.errors import RunError
from c4.store.claims import SEAL
from c4.store.grades import list_grades, read_added
from c4.store.locations import Location, parse_location, resolve_location
from c4.store.manifest import is_run, name_differences, read_tokenizer, run_folder
from c4.store.parts import Part
from c4.store.runs import Run, find_runs, open_run
from c4.store.storage import file_exists, put_file
from c4.store.writer import RunWriter
from c4.tasks import Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Merged:
    """The result of a merge."""

    folder: Location
    added: int
    """Number of trajectories that the target lacked."""
    known: int
    """Number of trajectories that both had; the target keeps its own."""


def plan_merge(source: Location, target: Location) -> "list[Merge]":
    """Plan and check the merges of every run below a source into a target.

    Args:
        target: a folder of runs, or a run.
    """
    folders, target = find_runs(source), parse_location(target)
    if not folders:
        raise RunError(f"{source}: no runs to merge")
    into_one = is_run(target) or target.name.startswith("method=")
    if into_one and len(folders) > 1:
        raise RunError(f"{source} holds {len(folders)} runs, and {target} is one: name a folder")
    merges = []
    for folder in folders:
        run = open_run(folder)
        label = str(run.manifest.identity["label"])
        merge = Merge(
            run, target if into_one else run_folder(target, run.model, run.task_name, label)
        )
        merge.check()
        merges.append(merge)
    return merges


@dataclass(frozen=True)
class Merge:
    """One run that is to be merged into a folder. The source is only read."""

    source: Run
    folder: Location

    def check(self) -> None:
        """Refuse a source that is damaged or contradicts the target, before anything is written."""
        source = self.source
        if resolve_location(self.folder) == resolve_location(source.folder):
            raise RunError(f"{self.folder}: source and target are the same run")
        read_tokenizer(source.folder, source.manifest)
        for _ in source.cells() if source.has_cells else ():
            pass  # a damaged part is an error
        theirs = _results(source)
        if not is_run(self.folder):
            return
        target = open_run(self.folder)
        here, there = source.manifest, target.manifest
        keys = sorted(here.identity.keys() | there.identity.keys())
        differ = name_differences(there.identity, here.identity, keys)
        if differ:
            raise RunError(
                f"cannot merge {source.folder} into {self.folder}: they were recorded with "
                "different settings:\n" + "\n".join(differ)
            )
        if here.made_with != there.made_with:
            log.warning(
                "%s was made with other devices or programs than %s", source.folder, self.folder
            )
        for key, result in _results(target).items():
            if theirs.get(key, result) != result:
                number, what, *_ = key
                raise RunError(
                    f"trajectory {number} has different {what} in {source.folder} and in "
                    f"{self.folder}; nothing was merged"
                )

    def run(self) -> Merged:
        """Copy the parts and trajectories that the target lacks; can be repeated after a kill."""
        source = self.source
        with RunWriter(self.folder) as writer:
            # Do not recover here: that is left to the next recording. If a merge was killed, this
            # one copies the rows that belong to the cells already there.
            writer.begin(source.manifest, read_tokenizer(source.folder, source.manifest))
            with writer.claims.hold(SEAL):  # no other worker seals meanwhile
                have = set(open_run(self.folder).indices)
                for part in [*list_grades(source.folder), *source.parts]:
                    self._bring(part, have, writer)
        known = len(have & set(source.indices))
        return Merged(self.folder, len(source.indices) - known, known)

    def _bring(self, part: Part, have: set[int], writer: RunWriter) -> None:
        """Copy a part; if the target has some of its trajectories, copy only the others."""
        if part.kind == "grades" or have.isdisjoint(part.trajectories):
            # Cells before the rows that name them.
            for one in filter(None, (part.sealed_cells, part)):
                path = self.folder / one.kind / one.path.name
                if not file_exists(path):
                    put_file(path, one.data)
                one.forget()
            if part.kind == "rows":
                writer.note_sealed(part)
        elif not have.issuperset(part.trajectories):
            cells = dict(self.source.read_cells(part)) if self.source.has_cells else {}
            for row in part.rows():
                if row.trajectory not in have:
                    writer.add(row, cells.get(row.trajectory), part.made_with)
        part.forget()


def _results(run: Run) -> dict[tuple[Any, ...], Any]:
    """Return the decode of every trajectory of a run, and its last grade under each reading."""
    found: dict[tuple[Any, ...], Any] = {}
    own = []
    for part in run.parts:
        for row in part.load(run.manifest.digest).rows():
            found[row.trajectory, "decodes"] = row.decode_checksum
            own.append(asdict(row))
        part.forget()
    added = sorted(read_added(run.folder, run.manifest.digest), key=lambda row: row["number"])
    for grade in [*own, *added]:
        if grade["verdict"] not in (None, Verdict.NOT_GRADABLE):
            reading = (grade["style"], grade["ending"], grade["grader"])
            found[grade["trajectory"], "grades", *reading] = grade["answer"], grade["verdict"]
    return found
