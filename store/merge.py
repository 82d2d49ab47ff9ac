"""Merge: bring the parts of a run that another folder holds into this one.

Both must be parts of one run, decoded on two machines or in two folders. Parts and grades that the
target lacks are copied as they are.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from c4.errors import RunError
from c4.store.claims import SEAL
from c4.store.grades import list_grades, read_added
from c4.store.locations import Location, parse_location, resolve_location
from c4.store.manifest import is_run, name_differences, read_tokenizer, run_folder
from c4.store.parts import Part
from c4.store.rows import Row
from c4.store.runs import Run, find_runs, open_run
from c4.store.storage import file_exists, put_file
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Merged:
    """What a merge added to a run."""

    folder: Location
    added: int
    """Trajectories that the target lacked."""
    known: int
    """Trajectories that both had; the target's stay."""


def plan_merge(source: Location, target: Location) -> "list[Merge]":
    """The merges of every run below a source into a target, all of them checked.

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
        theirs = {row.trajectory: row.decode_checksum for row in _written_rows(source)}
        readings = _readings(source)
        if not is_run(self.folder):
            return
        target = open_run(self.folder)
        self._require_same_run(target)
        for row in _written_rows(target):
            if theirs.get(row.trajectory, row.decode_checksum) != row.decode_checksum:
                raise self._contradiction(row.trajectory, "decodes")
        for reading in readings:
            self._require_same_grades(reading)

    def _require_same_run(self, target: Run) -> None:
        here, there = self.source.manifest, target.manifest
        keys = sorted(here.identity.keys() | there.identity.keys())
        differ = name_differences(there.identity, here.identity, keys)
        if differ:
            raise RunError(
                f"{self.source.folder} cannot be merged into {self.folder}, which is another run:\n"
                + "\n".join(differ)
            )
        if here.made_with != there.made_with:
            log.warning(
                "%s was made with other devices or programs than %s",
                self.source.folder,
                self.folder,
            )

    def _require_same_grades(self, reading: AnswerReading) -> None:
        theirs = {
            row.trajectory: (row.answer, row.verdict)
            for row in open_run(self.source.folder, reading).rows()
            if row.correct is not None
        }
        for row in open_run(self.folder, reading).rows():
            ours = row.answer, row.verdict
            if row.correct is not None and theirs.get(row.trajectory, ours) != ours:
                raise self._contradiction(row.trajectory, f"grades under the reading {reading}")

    def _contradiction(self, number: int, what: str) -> RunError:
        return RunError(
            f"trajectory {number} has different {what} in {self.source.folder} and in "
            f"{self.folder}; nothing was merged"
        )

    def run(self) -> Merged:
        """Write what the target lacks. It can be repeated after a kill."""
        source = self.source
        with RunWriter(self.folder) as writer:
            # What a kill left half done is for a recording to undo. If it was a merge that was
            # killed, this one brings the rows of the cells that are there already.
            writer.begin(source.manifest, read_tokenizer(source.folder, source.manifest))
            with writer.claims.hold(SEAL):  # nobody seals what is brought
                have = set(open_run(self.folder).indices)
                for part in [*list_grades(source.folder), *source.parts]:
                    self._bring(part, have, writer)
        known = len(have & set(source.indices))
        return Merged(self.folder, len(source.indices) - known, known)

    def _bring(self, part: Part, have: set[int], writer: RunWriter) -> None:
        """Copy a part; of one with trajectories that are there already, only the others."""
        if part.kind == "grades" or have.isdisjoint(part.trajectories):
            if part.sealed_cells is not None:  # before the rows, which say that they are there
                self._copy(part.sealed_cells)
            self._copy(part)
            if part.kind == "rows":
                writer.note_sealed(part)
        elif not have.issuperset(part.trajectories):
            cells = dict(self.source.read_cells(part)) if self.source.has_cells else {}
            for row in part.rows():
                if row.trajectory not in have:
                    writer.add(row, cells.get(row.trajectory), part.made_with)
        part.forget()

    def _copy(self, part: Part) -> None:
        path = self.folder / part.kind / part.path.name
        if not file_exists(path):
            put_file(path, part.data)
        part.forget()


def _written_rows(run: Run) -> Iterator[Row]:
    """Rows as they were written, without the grades that were added since."""
    for part in run.parts:
        yield from part.load(run.manifest.digest).rows()
        part.forget()


def _readings(run: Run) -> list[AnswerReading]:
    """The readings under which a run was graded."""
    rows = _written_rows(run)
    found = {(row.style, row.ending, row.grader) for row in rows if row.verdict is not None}
    added = read_added(run.folder, run.manifest.digest)
    found |= {(grade["style"], grade["ending"], grade["grader"]) for grade in added}
    return [AnswerReading.parse(*map(str, words)) for words in sorted(found)]
