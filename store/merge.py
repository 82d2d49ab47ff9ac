"""Joining two halves of one run: what was decoded on two machines, or in two folders."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from c4.errors import RunError
from c4.store.cells import SIGNALS, Cells
from c4.store.claims import SEAL
from c4.store.contents import Contents
from c4.store.grades import Grades, read_added
from c4.store.locations import Location, parse_location, resolve_location
from c4.store.manifest import is_run, name_differences, read_tokenizer, run_folder
from c4.store.parts import Part, read_part
from c4.store.rows import GRADE, Row
from c4.store.runs import Run, RunPart, find_runs, open_run
from c4.store.storage import file_exists, put_file
from c4.store.writer import Decode, RunWriter
from c4.tasks import AnswerReading, Grade, Verdict

log = logging.getLogger(__name__)

OwnGrade = Mapping[str, Any]
"""The columns of a grade, as a row was written with them."""
UNGRADED: OwnGrade = dict.fromkeys(GRADE)


@dataclass(frozen=True)
class Merged:
    """What a merge brought."""

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


class Merge:
    """One run to be brought into a folder. The source is only read."""

    def __init__(self, source: Run, folder: Location) -> None:
        self.source = source
        self.folder = folder

    @cached_property
    def target(self) -> Run | None:
        """The run that is there already."""
        return open_run(self.folder) if is_run(self.folder) else None

    def check(self) -> None:
        """Refuse what is not a half of the same run, before anything is written."""
        if resolve_location(self.folder) == resolve_location(self.source.folder):
            raise RunError(f"{self.folder}: source and target are the same run")
        read_tokenizer(self.source.folder, self.source.manifest)
        target = self.target
        if target is not None:
            self._refuse_other_run(target)
        have = set() if target is None else set(target.indices)
        for part in self.source.parts:
            theirs = {row.trajectory: (row, cells) for row, cells in _decodes(self.source, part)}
            known = theirs.keys() & have
            if target is not None and known:
                for row, cells in _some_decodes(target, known):
                    self._refuse_other_decode(theirs[row.trajectory], (row, cells))
        self._grades_to_bring(target)

    def _refuse_other_run(self, target: Run) -> None:
        here, there = self.source.manifest, target.manifest
        keys = sorted(here.identity.keys() | there.identity.keys())
        differ = name_differences(there.identity, here.identity, keys)
        if differ:
            raise RunError(
                f"{self.source.folder} is not a half of the run in {self.folder}, which has:\n"
                + "\n".join(differ)
            )
        if here.made_with != there.made_with:
            log.warning(
                "%s was made with other devices or programs than %s",
                self.source.folder,
                self.folder,
            )

    def _refuse_other_decode(
        self, theirs: tuple[Row, Cells | None], ours: tuple[Row, Cells | None]
    ) -> None:
        differ = [*_other_columns(theirs[0], ours[0]), *_other_signals(theirs[1], ours[1])]
        if differ:
            raise RunError(
                f"trajectory {ours[0].trajectory} is not the same in {self.source.folder} and in "
                f"{self.folder}: they differ in {', '.join(differ)}; nothing was merged"
            )

    def run(self) -> Merged:
        """Write what the target lacks. It can be repeated after a kill."""
        source = self.source
        with RunWriter(self.folder) as writer:
            # What a kill left half done is for a recording to undo. If it was a merge that was
            # killed, this one brings the rows of the cells that are there already.
            writer.begin(source.manifest, read_tokenizer(source.folder, source.manifest))
            with writer.claims.hold(SEAL):  # nobody seals what is brought
                # Grades first: a row that came before its grade would contradict it after a kill.
                target = open_run(self.folder)
                for reading, grades in self._grades_to_bring(target).items():
                    writer.add_grades(grades, reading)
                have = set(target.indices)
                for part in source.parts:
                    self._bring(part, have, writer)
        known = len(have & set(source.indices))
        return Merged(self.folder, len(source.indices) - known, known)

    def _bring(self, part: RunPart, have: Collection[int], writer: RunWriter) -> None:
        """Bring the new trajectories of one part."""
        contents = Contents.of(part.rows, self.source.manifest)
        new = [number for number in contents.numbers if number not in have]
        if len(new) == len(contents.numbers):
            # The rows last: they say that the cells are there.
            if part.cells not in (None, part.rows):
                self._copy(part.cells)
            self._copy(part.rows)
            if not part.is_pending:
                writer.note_sealed(self.folder / "rows" / part.rows.path.name)
        elif new:
            for row, cells in _decodes(self.source, part):
                if row.trajectory in new:
                    writer.add(Decode(row, cells), contents.stamp)

    def _copy(self, part: Part) -> None:
        path = self.folder / part.path.parent.name / part.path.name
        if not file_exists(path):
            put_file(path, read_part(part))

    def _grades_to_bring(self, target: Run | None) -> dict[AnswerReading, dict[int, Grade]]:
        """By reading, the source's grades that the target lacks, or that a machine failed at."""
        theirs = {row.trajectory: _grade(row) for row in _rows(self.source)}
        ours = {} if target is None else {row.trajectory: _grade(row) for row in _rows(target)}
        added = read_added(self.source.folder, self.source.manifest.digest)
        found = {
            reading: self._lacking(reading, theirs, ours)
            for reading in _readings([*theirs.values(), *added])
        }
        return {reading: grades for reading, grades in found.items() if grades}

    def _lacking(
        self, reading: AnswerReading, theirs: Mapping[int, OwnGrade], ours: Mapping[int, OwnGrade]
    ) -> dict[int, Grade]:
        """The same under one reading, by trajectory."""
        digest = self.source.manifest.digest
        source, target = (Grades(f, digest, reading) for f in (self.source.folder, self.folder))
        lacking = {}
        for number, own in theirs.items():
            given = _resolve(source, number, own)
            if given is None:
                continue
            there = _resolve(target, number, ours.get(number, UNGRADED))
            self._refuse_other_grade(number, reading, given, there)
            # A row that is new to the target brings the grade that it was written with.
            if _counts_instead(given, of=_resolve(target, number, ours.get(number, own))):
                lacking[number] = given
        return lacking

    def _refuse_other_grade(
        self, number: int, reading: AnswerReading, given: Grade, there: Grade | None
    ) -> None:
        if there is None or None in (given.correct, there.correct) or given == there:
            return
        differ = [n for n in ("answer", "verdict") if getattr(given, n) != getattr(there, n)]
        raise RunError(
            f"trajectory {number} is not the same in {self.source.folder} and in {self.folder}: "
            f"they differ in {', '.join(differ)} under the reading {reading}; nothing was merged. "
            "Grade both anew, in the same way, with: c4 grade --all"
        )


def _grade(row: Row) -> OwnGrade:
    return {name: getattr(row, name) for name in GRADE}


def _readings(grades: Iterable[OwnGrade]) -> list[AnswerReading]:
    """The readings under which somebody graded, in order."""
    found = {(g["style"], g["ending"], g["grader"]) for g in grades if g["verdict"] is not None}
    return [AnswerReading.parse(*map(str, words)) for words in sorted(found)]


def _resolve(grades: Grades, number: int, own: OwnGrade) -> Grade | None:
    """What counts for a trajectory; None where it was not graded under the reading."""
    found = grades.of(number, own)
    verdict = found["verdict"]
    return None if verdict is None else Grade(found["answer"], Verdict(verdict))


def _counts_instead(given: Grade, of: Grade | None) -> bool:
    """Whether a grade is to be added to what is there; a failure replaces no verdict."""
    return of is None or (given.correct is not None and given != of)


def _rows(run: Run) -> Iterator[Row]:
    """Rows as they were written, without the grades that were added since."""
    for part in run.parts:
        yield from Contents.of(part.rows, run.manifest).rows()


def _decodes(run: Run, part: RunPart) -> Iterator[tuple[Row, Cells | None]]:
    """The trajectories of a part, their rows as they were written."""
    rows = Contents.of(part.rows, run.manifest).rows()
    if part.cells is None:
        yield from ((row, None) for row in rows)
        return
    for row, (_, cells) in zip(rows, run.read_cells(part), strict=True):
        yield row, cells


def _some_decodes(run: Run, wanted: Collection[int]) -> Iterator[tuple[Row, Cells | None]]:
    first, last = min(wanted), max(wanted)
    for part in run.parts:
        if part.rows.first <= last and first <= part.rows.last:
            yield from (d for d in _decodes(run, part) if d[0].trajectory in wanted)


def _other_columns(one: Row, other: Row) -> list[str]:
    """The columns in which two rows of one trajectory differ, grades and wall times aside."""
    return [name for name, value in one.decode.items() if value != other.decode[name]]


def _other_signals(one: Cells | None, other: Cells | None) -> list[str]:
    if one is None or other is None:
        return []
    return [n for n in SIGNALS if not np.array_equal(getattr(one, n), getattr(other, n))]
