"""Writing a run so that no crash loses a finished trajectory.

Every finished trajectory becomes a small pending file at once. When all trajectories of a part
are there, the part is written and the pending files go. Each step is one atomic rename and can
be repeated, so recovery after a kill is: look which files exist.

Any number of workers write a run, on any number of machines. Whoever seals or recovers holds the
claim `seal`. What was sealed last is noted beside the claims, so that nobody has to list all parts
to learn what has become of one trajectory; without the note, all are listed.
"""

import json
import math
import secrets
import time
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from c4.errors import RunError
from c4.store.cells import CELLS_PER_PART, Cells, cells_to_table
from c4.store.claims import CLAIMS, GRADES, SEAL, SEALED, Claim, Claims, Sign
from c4.store.grades import GRADES as GRADE_COLUMNS
from c4.store.grades import newest_grade
from c4.store.locations import Location
from c4.store.manifest import (
    DATA_FOLDERS,
    MANIFEST,
    OPTIONAL,
    RECORDED,
    TOKENIZER,
    Manifest,
    create_manifest,
    is_run,
    name_differences,
    read_manifest,
    text_hash,
    write_tokenizer,
)
from c4.store.parts import (
    CELLS_KEY,
    PART,
    ROW_KEY,
    SHAPES_KEY,
    Part,
    list_parts,
    missing_cells,
    named_part,
    run_parts,
    write_part,
)
from c4.store.rows import Row, rows_to_table
from c4.store.runs import LOADED_BYTES, covers, require_rows, sole_parts
from c4.store.storage import (
    file_exists,
    note_file,
    read_file,
    remove_files,
    remove_leftovers,
)
from c4.tasks import AnswerReading, Grade, Shape


def plan_parts(indices: Iterable[int], shape: Shape) -> list[range]:
    """Trajectories cut into the parts they will be sealed in: consecutive, of bounded size."""
    size = max(1, CELLS_PER_PART // (shape.budget * shape.length))
    parts: list[range] = []
    for index in sorted(indices):
        if parts and parts[-1].stop == index and len(parts[-1]) < size:
            parts[-1] = range(parts[-1].start, index + 1)
        else:
            parts.append(range(index, index + 1))
    return parts


def check_identity(folder: Location, identity: Mapping[str, Any], *, partly: bool = True) -> None:
    """Refuse to go on with a run that was made differently, and say what differs.

    Args:
        partly: whether only as much of the identity is given as is known yet.
    """
    if not is_run(folder):
        return
    recorded = read_manifest(folder).identity
    every = identity.keys() | (OPTIONAL if partly else recorded.keys())
    keys = [*identity, *sorted(every - identity.keys())]
    differ = name_differences(recorded, identity, keys)
    if differ:
        raise RunError(
            f"cannot continue {folder}: it was recorded with different settings:\n"
            + "\n".join(differ)
            + "\n"
            "use --out for a place of its own, or --fresh to throw the old one away"
        )


KEPT_SEALS = 1000
"""Parts that the note of what was sealed last names."""
JOINED = "joined"
"""Noted in the place of a part's name by a worker that begins beside another."""


class RunWriter:
    """Writes a run, beside any number of others that do. Use as a context manager.

    Args:
        sign: who writes, and where.
    """

    def __init__(self, folder: Location, sign: Sign | None = None) -> None:
        self.folder = folder
        self.claims = Claims(folder, sign)
        self._seen: dict[Location, tuple[range, str | None]] = {}
        """Parts of rows that were opened, what they hold, and the cells they name."""
        self._rows: list[Part] | None = None
        """The parts of rows, as far as their names are known; None before the first look."""
        self._last_seal: str | None = None
        """Up to where the note of what was sealed last is in `_rows`."""
        self._note: tuple[bytes, list[tuple[str, str]]] = b"", []
        """The note as it was read last, and what it says."""
        self._own_notes: set[str] = set()
        """The tokens of what this writer noted itself."""
        self._finished: set[int] = set()
        """Trajectories that were pending at the last look."""
        self._added: set[int] = set()
        """Trajectories that this writer made safe and that are not sealed yet."""
        self._looked = -math.inf
        """When its last look at what is finished began, by a monotonic clock."""
        self._written: dict[Location, Part] = {}
        """Pending parts that this writer wrote, kept in memory until they are sealed."""
        self.manifest: Manifest | None = None

    def __enter__(self) -> "RunWriter":
        self.claims.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.claims.__exit__(*exc)

    def start(self, manifest: Manifest, tokenizer_json: str, *, fresh: bool = False) -> None:
        """Begin the run, or go on with it; clear away what a kill left half done.

        Where others are at work already, whoever was the first has done the latter. A worker that
        is alone looks for the work of others only now and then, so whoever joins it says so in the
        note of what was sealed and waits until that must have been read.
        """
        if fresh:
            self.claims.require_alone()
        with self.claims.hold(SEAL):
            # Looked for under the claim: whoever joins from now on sees this worker's sign.
            self.claims.shared = bool(self.claims.others())
            if fresh:
                self._clear()
            self.begin(manifest, tokenizer_json)
            if self.claims.shared:
                self._add_to_note(JOINED, self._read_note()[1 - KEPT_SEALS :])
            else:
                self._recover()
        if self.claims.shared:
            time.sleep(self.claims.pause)

    def clear(self) -> None:
        """Throw the run away, unless somebody is at work on it."""
        self.claims.require_alone()
        with self.claims.hold(SEAL):
            self._clear()

    def begin(self, manifest: Manifest, tokenizer_json: str) -> None:
        """Begin the run, or go on with it as it is."""
        if file_exists(self.folder / MANIFEST):
            check_identity(self.folder, manifest.identity, partly=False)
            recorded = read_manifest(self.folder).tokenizer_file_sha256
            if text_hash(tokenizer_json) != recorded:
                raise RunError(
                    f"{self.folder}: made with another tokenizer.json (SHA-256 {recorded}); use "
                    "--out for a place of its own, or --fresh to throw the old run away"
                )
            if not file_exists(self.folder / TOKENIZER):
                write_tokenizer(self.folder, tokenizer_json)
        elif parts := run_parts(self.folder, RECORDED):
            raise RunError(
                f"{self.folder}: parts of a run, such as {parts[0].path.name}, but no "
                "manifest.json that says what they are; rebuild it with: c4 runs --repair "
                f"'{self.folder}', use --out for another place, or --fresh to throw the parts away"
            )
        else:
            write_tokenizer(self.folder, tokenizer_json)
            if not create_manifest(self.folder, manifest):  # another worker was faster
                check_identity(self.folder, manifest.identity, partly=False)
        self.go_on(manifest)

    def go_on(self, manifest: Manifest) -> None:
        """Write for a run that exists.

        Args:
            manifest: with the environment of this session.
        """
        self.manifest = manifest
        if not self.claims.others():
            self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        for name in (".", *DATA_FOLDERS):
            remove_leftovers(self.folder / name, is_ours)

    @property
    def _run(self) -> Manifest:
        if self.manifest is None:
            raise RuntimeError("start or go_on comes first")
        return self.manifest

    @property
    def keeps_cells(self) -> bool:
        return bool(self._run.identity["cells"])

    @property
    def sealed(self) -> set[int]:
        """Trajectories that are in their final parts, one of every kind."""
        return {i for part in self._sealed_parts() for i in self._look(part)[0]}

    def _sealed_parts(self) -> list[Part]:
        """The parts of rows; one whose cells are missing is refused, as it is by a reader."""
        rows = sole_parts(list_parts(self.folder / "rows"), self._run)
        if self.keeps_cells:
            cells = {part.path.name for part in list_parts(self.folder / "cells")}
            for part in rows:
                if self._look(part)[1] not in cells:
                    raise missing_cells(part)
        return rows

    def _look(self, part: Part) -> tuple[range, str | None]:
        """What a part of rows holds, and its cells; parts do not change, so one look is enough."""
        if part.path not in self._seen:
            part.load(self._run.digest)
            self._seen[part.path] = part.trajectories, part.cells_name
            part.forget()
        return self._seen[part.path]

    @property
    def pending(self) -> dict[int, Part]:
        """Finished trajectories that wait for the rest of their part."""
        listed = list_parts(self.folder / "pending")
        for path in set(self._written) - {part.path for part in listed}:
            self._written.pop(path, None)  # sealed by another worker
        self._finished = {part.first for part in listed}
        return {part.first: self._written.get(part.path, part) for part in listed}

    def add(
        self,
        row: Row,
        cells: Cells | None,
        made_with: Sequence[Mapping[str, Any]] | None = None,
    ) -> Part:
        """Make one finished trajectory safe.

        Args:
            cells: every step; None where only the row is kept.
            made_with: the devices and library versions that made it, if not this session's.
        """
        part = write_part(
            self.folder / "pending",
            cells_to_table(row.trajectory, cells),
            [row.trajectory],
            self._run,
            {ROW_KEY: row.to_json()},
            made_with,
        )
        self._written[part.path] = part
        while sum(len(part.data) for part in list(self._written.values())) > LOADED_BYTES:
            self._written.pop(next(iter(self._written)))
        self._added.add(row.trajectory)
        return part

    def replace(self, row: Row, cells: Cells | None) -> None:
        """Put a graded trajectory in the place of its ungraded copy."""
        number = row.trajectory
        copies = [part for part in list(self._written.values()) if part.first == number]
        if not copies:
            copies = [p for p in list_parts(self.folder / "pending") if p.first == number]
        written = self.add(row, cells)
        self._remove_own(part for part in copies if part.path != written.path)

    def read_row(self, part: Part) -> Row:
        """The row in a pending file, whose cells are left alone."""
        return part.load(self._run.digest).rows()[0]

    def read_pending(self, part: Part) -> tuple[Row, Cells | None]:
        """The trajectory in a pending file."""
        part.load(self._run.digest)
        cells = part.batches()[0][1][0] if part.has_cells else None
        return part.rows()[0], cells

    def is_finished(self, index: int) -> bool:
        """Whether a trajectory is safe, whoever made it.

        As long as this writer is alone, what was found lately still holds; see `start`.
        """
        if self.claims.shared or time.monotonic() - self._looked > self.claims.pause / 2:
            return not self.unfinished([index])
        return self._is_pending(index) or covers(self._rows or (), index)

    def _is_pending(self, index: int) -> bool:
        """Whether a trajectory is pending, as far as this writer knows without another look."""
        return index in self._added or index in self._finished

    def unfinished(self, indices: Iterable[int]) -> list[int]:
        """Those of some trajectories that are not safe yet, by the names of files alone."""
        # In the order in which a trajectory moves: what is sealed meanwhile is seen in the rows.
        began = time.monotonic()
        pending = self.pending
        rows = self._known_rows()
        self._looked = began
        return [i for i in indices if i not in pending and not covers(rows, i)]

    def unsealed(self, indices: Iterable[int]) -> list[int]:
        """Those of some trajectories that are not in their final part yet."""
        rows = self._known_rows()
        return [i for i in indices if not covers(rows, i)]

    def _known_rows(self) -> list[Part]:
        """The parts of rows by their names. Only what was sealed since the last look is new."""
        noted = self._read_note()
        tokens = [token for token, _ in noted]
        if self._rows is not None and self._last_seal in tokens:
            noted = noted[tokens.index(self._last_seal) + 1 :]
            for name in (name for _, name in noted if name != JOINED):
                part = named_part(self.folder / "rows" / name)
                if part not in self._rows:
                    insort(self._rows, part)
        elif self._rows is None or noted or self._last_seal is not None:
            self._rows = list_parts(self.folder / "rows")
        self._last_seal = tokens[-1] if tokens else None
        if not self._own_notes.issuperset(token for token, _ in noted):
            self.claims.shared = True
        return self._rows

    def _read_note(self) -> list[tuple[str, str]]:
        """What was sealed last, in order, and who joined; nothing if nobody noted it."""
        try:
            data = read_file(self.folder / CLAIMS / SEALED)
            if data != self._note[0]:
                noted = [(str(token), str(name)) for token, name in json.loads(data)]
                for name in (name for _, name in noted if name != JOINED):
                    named_part(self.folder / "rows" / name)
                self._note = data, noted
            return self._note[1]
        except (FileNotFoundError, ValueError, TypeError):
            return []

    def note_sealed(self, part: Part) -> None:
        """Let others know of a part of rows without listing all of them."""
        self._add_to_note(part.path.name, self._read_note()[1 - KEPT_SEALS :])

    def _add_to_note(self, name: str, noted: Sequence[tuple[str, str]]) -> None:
        token = secrets.token_hex(6)
        self._own_notes.add(token)
        data = json.dumps([*noted, (token, name)]).encode()
        note_file(self.folder / CLAIMS / SEALED, data)

    def is_ready(self, indices: range) -> bool:
        """Whether all trajectories of a part are pending and nobody is still busy with one."""
        if not self.claims.shared and not all(map(self._is_pending, indices)):
            return False
        pending = self.pending
        if not all(i in pending for i in indices):
            return False
        claimed = self.claims.current().keys()
        return not any(f"{i:06d}" in claimed for i in indices)

    @contextmanager
    def sealing(self, *, wait: bool = True) -> Iterator[Claim | None]:
        """Keep others from sealing meanwhile.

        Args:
            wait: for whoever seals now; otherwise nothing is given if somebody does.
        """
        if not wait and SEAL in self.claims.current():
            yield None
            return
        with self.claims.hold(SEAL) as claim:
            if claim.generation > 1:  # whoever sealed before was killed
                self._recover()
            yield claim

    def seal(self, indices: range) -> bool:
        """Turn pending trajectories into a part of every kind, if all of them are there."""
        with self.sealing() as claim:
            return claim is not None and self.seal_part(indices, claim)

    def seal_part(self, indices: range, claim: Claim) -> bool:
        """The same for whoever holds the claim to seal."""
        pending = self.pending
        if len(self.unsealed(indices)) < len(indices) or not all(i in pending for i in indices):
            return False
        found = [pending[i].load(self._run.digest) for i in indices]
        # The rows come last: they say that the cells are there too, and which they are.
        cells = self._seal_cells(found) if self.keeps_cells else None
        if not self.claims.still_holds(claim):
            return False  # this process stood still for long, and another has gone on
        # What is noted is sealed, and what is neither noted nor pending is not sealed.
        self.note_sealed(self._seal_rows(found, cells))
        self._remove_own(p for p in list_parts(self.folder / "pending") if p.first in indices)
        self._added.difference_update(indices)
        if self.claims.shared:
            self.claims.shared = bool(self.claims.others())
        return True

    def _seal_cells(self, found: Sequence[Part]) -> Part:
        table = pa.concat_tables([part.cell_table().replace_schema_metadata() for part in found])
        shapes = [shape for part in found for shape in part.shapes]
        return write_part(
            self.folder / "cells",
            table,
            [number for number, _, _ in shapes],
            self._run,
            {SHAPES_KEY: json.dumps(shapes).encode()},
            joined_made_with(found),
        )

    def _seal_rows(self, found: Sequence[Part], cells: Part | None) -> Part:
        rows = [row for part in found for row in part.rows()]
        return write_part(
            self.folder / "rows",
            rows_to_table(rows),
            [row.trajectory for row in rows],
            self._run,
            {} if cells is None else {CELLS_KEY: cells.path.name.encode()},
            joined_made_with(found),
        )

    def finish(self, wanted: Collection[int]) -> bool:
        """Say that the run has all that is wanted, if it does, and clear away what kills left."""
        if self.unsealed(wanted):
            return False
        rows, cells = (list_parts(self.folder / kind) for kind in ("rows", "cells"))
        copies = len(rows) - len({part.first for part in rows})
        if self.pending or copies or (self.keeps_cells and len(rows) != len(cells)):
            with self.sealing():
                self._recover()
        self.claims.finished = True
        if not self.claims.others():
            self._remove_leftovers()
        return True

    def add_grades(self, grades: Mapping[int, Grade], reading: AnswerReading) -> None:
        """Keep grades under a reading beside the run, which stays as it is."""
        with self.claims.hold(GRADES):  # the numbers of two that grade would be the same
            stamp = {
                **asdict(reading),
                "version": version("c4-dlm"),
                "number": 1 + newest_grade(self.folder, self._run.digest),
            }
            rows = [{"trajectory": i, **asdict(g), **stamp} for i, g in sorted(grades.items())]
            table = pa.Table.from_pylist(rows, schema=GRADE_COLUMNS)
            folder = self.folder / "grades"
            write_part(folder, table, sorted(grades), self._run)

    def _recover(self) -> None:
        """Finish or undo what a kill interrupted. Nothing finished is touched.

        Cells that no rows name: the kill came between the two, the pending files are still there,
        and sealing them again writes both. If nothing else holds their trajectories, the rows were
        lost, and what is left of them is not for a program to delete.
        """
        sealed = self._sealed_parts()
        named = {self._look(part)[1] for part in sealed}
        pending = self.pending
        unnamed = [p for p in list_parts(self.folder / "cells") if p.path.name not in named]
        for part in unnamed:
            part.load(self._run.digest).forget()  # whole, and the run's own
            require_rows(part, sealed, pending)
        if sealed:
            # The killed worker may have noted nothing; new tokens make everybody list again. A
            # note that somebody joined may still have to be read by the others.
            joined = any(name == JOINED for _, name in self._read_note())
            kept = [(secrets.token_hex(6), JOINED)] if joined else []
            self._add_to_note(sealed[-1].path.name, kept)
        self._drop_copies(sealed)
        self._remove_own(p for p in list_parts(self.folder / "rows") if p not in sealed)
        self._remove_own(unnamed)

    def _drop_copies(self, sealed: Sequence[Part]) -> None:
        """Remove pending files that were sealed, once their part is seen to be whole."""
        copies = [p for p in list_parts(self.folder / "pending") if covers(sealed, p.first)]
        holding = [part for part in sealed if any(c.first in part.trajectories for c in copies)]
        needed = {self._look(part)[1] for part in holding}
        for part in list_parts(self.folder / "cells"):
            if part.path.name in needed:
                part.load(self._run.digest).forget()
        self._remove_own(copies)

    def _remove_own(self, parts: Iterable[Part]) -> None:
        """Remove parts of this run; one of another run is refused by name."""
        own = list(parts)
        for part in own:
            if self._written.pop(part.path, None) is None:
                with suppress(FileNotFoundError):  # a worker that lost its claim has removed it
                    part.load(self._run.digest).forget()
        remove_files(part.path for part in own)

    def _clear(self) -> None:
        """Throw the old run away: what c4 wrote for it, and nothing else.

        The manifest after the parts: while it is there, they are known to be its own. But before
        the tokenizer, which only a missing manifest makes the next session write anew.
        """
        parts = run_parts(self.folder)
        self._refuse_foreign(parts)
        remove_files(part.path for part in parts)
        for name in (".", *DATA_FOLDERS):
            remove_leftovers(self.folder / name, is_ours)
        for name in OWN_FILES:
            remove_files([self.folder / name])
        self.claims.retry_aside()
        remove_files([self.folder / CLAIMS / SEALED])
        self._rows, self._last_seal = None, None

    def _refuse_foreign(self, parts: Sequence[Part]) -> None:
        """Refuse to throw away what c4 did not write, or wrote for another run than the rest."""
        runs: dict[str, str] = {}
        with suppress(RunError):  # a run whose manifest cannot be read may be thrown away, too
            runs[read_manifest(self.folder).digest] = MANIFEST
        for part in parts:
            try:
                runs.setdefault(part.run, part.path.name)
                part.forget()
            except RunError as error:
                raise RunError(
                    f"{error}\n--fresh throws away only what c4 can tell it wrote: move or delete "
                    "that file yourself"
                ) from error
        if len(runs) > 1:
            raise RunError(
                f"{self.folder}: files of {len(runs)} runs, such as {' and '.join(runs.values())}; "
                "--fresh throws away one run: move the parts of the others where they came from"
            )


OWN_FILES = (MANIFEST, TOKENIZER)


def is_ours(name: str) -> bool:
    """Whether a file's name is one that this room gives."""
    return name in OWN_FILES or PART.fullmatch(name) is not None


def joined_made_with(found: Sequence[Part]) -> list[Mapping[str, Any]]:
    """The devices and library versions that made several parts, each once."""
    made: list[Mapping[str, Any]] = []
    for part in found:
        made += [one for one in part.made_with if one not in made]
    return made
