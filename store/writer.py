"""Writing a run so that no crash loses a finished trajectory.

Every finished trajectory becomes a small pending file at once. When all trajectories of a part
are there, the part is written and the pending files are removed. Each step is one atomic rename and
can be repeated, so recovery after a kill only has to check which files exist.

Any number of workers, on any number of machines, can write one run. A worker that seals or recovers
holds the claim `seal`. A note beside the claims names the parts sealed last, so that a worker can
look up one trajectory without listing all parts; without the note, it lists them all.
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
    """Group trajectories into the parts to seal them in: consecutive and of bounded size."""
    size = max(1, CELLS_PER_PART // (shape.budget * shape.length))
    parts: list[range] = []
    for index in sorted(indices):
        if parts and parts[-1].stop == index and len(parts[-1]) < size:
            parts[-1] = range(parts[-1].start, index + 1)
        else:
            parts.append(range(index, index + 1))
    return parts


def check_identity(folder: Location, identity: Mapping[str, Any], *, partly: bool = True) -> None:
    """Refuse to continue a run that was recorded with different settings, and list them.

    Args:
        partly: whether `identity` holds only the settings known so far.
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
"""Maximum number of entries in the note of parts sealed last."""
JOINED = "joined"
"""Entry in the note, instead of a part's name, by a worker that joins another."""


class RunWriter:
    """Writes a run; several writers can share one run. Use as a context manager.

    Args:
        sign: describes this worker and where it runs.
    """

    def __init__(self, folder: Location, sign: Sign | None = None) -> None:
        self.folder = folder
        self.claims = Claims(folder, sign)
        self._seen: dict[Location, tuple[range, str | None]] = {}
        """For each part of rows opened so far: its trajectories and the name of its cells."""
        self._rows: list[Part] | None = None
        """The parts of rows known by name; None before they are first listed."""
        self._last_seal: str | None = None
        """Token of the last entry of the note that `_rows` includes."""
        self._note: tuple[bytes, list[tuple[str, str]]] = b"", []
        """The note as last read: its bytes and its parsed entries."""
        self._own_notes: set[str] = set()
        """Tokens of the entries that this writer added to the note."""
        self._finished: set[int] = set()
        """Trajectories that were pending when the pending files were last listed."""
        self._added: set[int] = set()
        """Trajectories that this writer stored and has not sealed yet."""
        self._looked = -math.inf
        """Monotonic time at which it last began to list finished trajectories."""
        self._written: dict[Location, Part] = {}
        """Pending parts that this writer wrote, kept in memory until they are sealed."""
        self.manifest: Manifest | None = None

    def __enter__(self) -> "RunWriter":
        self.claims.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.claims.__exit__(*exc)

    def start(self, manifest: Manifest, tokenizer_json: str, *, fresh: bool = False) -> None:
        """Begin or continue the run, and clean up after a killed worker.

        If other workers are active, the first of them has already cleaned up. A worker that is
        alone checks for the work of others only now and then, so a worker that joins it adds an
        entry to the note of sealed parts and waits long enough for the other to have read it.
        """
        if fresh:
            self.claims.require_alone()
        with self.claims.hold(SEAL):
            # Checked under the claim: a worker that joins from now on sees this worker's sign.
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
        """Delete the run, unless another worker is writing it."""
        self.claims.require_alone()
        with self.claims.hold(SEAL):
            self._clear()

    def begin(self, manifest: Manifest, tokenizer_json: str) -> None:
        """Begin the run, or continue it without recovering what a kill left."""
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
        """Continue a run that exists.

        Args:
            manifest: the run's identity with the environment of this session.
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
        """Trajectories that are in final parts: rows and, if the run keeps them, cells."""
        return {i for part in self._sealed_parts() for i in self._look(part)[0]}

    def _sealed_parts(self) -> list[Part]:
        """Return the parts of rows; raise the same error as a reader if cells are missing."""
        rows = sole_parts(list_parts(self.folder / "rows"), self._run)
        if self.keeps_cells:
            cells = {part.path.name for part in list_parts(self.folder / "cells")}
            for part in rows:
                if self._look(part)[1] not in cells:
                    raise missing_cells(part)
        return rows

    def _look(self, part: Part) -> tuple[range, str | None]:
        """Return a part's trajectories and its cells' name; cached, since parts never change."""
        if part.path not in self._seen:
            part.load(self._run.digest)
            self._seen[part.path] = part.trajectories, part.cells_name
            part.forget()
        return self._seen[part.path]

    @property
    def pending(self) -> dict[int, Part]:
        """Finished trajectories that wait for the rest of their part, by number."""
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
        """Store one finished trajectory as a pending file.

        Args:
            cells: the cells of every step; None if only the row is kept.
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
        """Replace the ungraded copy of a trajectory with the graded one."""
        number = row.trajectory
        copies = [part for part in list(self._written.values()) if part.first == number]
        if not copies:
            copies = [p for p in list_parts(self.folder / "pending") if p.first == number]
        written = self.add(row, cells)
        self._remove_own(part for part in copies if part.path != written.path)

    def read_row(self, part: Part) -> Row:
        """Return the row in a pending file without reading its cells."""
        return part.load(self._run.digest).rows()[0]

    def read_pending(self, part: Part) -> tuple[Row, Cells | None]:
        """Return the row and the cells in a pending file."""
        part.load(self._run.digest)
        cells = part.batches()[0][1][0] if part.has_cells else None
        return part.rows()[0], cells

    def is_finished(self, index: int) -> bool:
        """Whether any worker has stored a trajectory.

        As long as this writer is alone, it relies on its last listing; see `start`.
        """
        if self.claims.shared or time.monotonic() - self._looked > self.claims.pause / 2:
            return not self.unfinished([index])
        return self._is_pending(index) or covers(self._rows or (), index)

    def _is_pending(self, index: int) -> bool:
        """Whether a trajectory is known to be pending, without listing files again."""
        return index in self._added or index in self._finished

    def unfinished(self, indices: Iterable[int]) -> list[int]:
        """Return the given trajectories that are not stored yet, judged by file names alone."""
        # In the order in which trajectories move: one sealed meanwhile is found among the rows.
        began = time.monotonic()
        pending = self.pending
        rows = self._known_rows()
        self._looked = began
        return [i for i in indices if i not in pending and not covers(rows, i)]

    def unsealed(self, indices: Iterable[int]) -> list[int]:
        """Return the given trajectories that are not in their final part yet."""
        rows = self._known_rows()
        return [i for i in indices if not covers(rows, i)]

    def _known_rows(self) -> list[Part]:
        """Return the parts of rows, and add those sealed since the last call."""
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
        """Return the note's entries in order: token and part name; empty if there is no note."""
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
        """Add a part of rows to the note, so that other workers need not list all parts."""
        self._add_to_note(part.path.name, self._read_note()[1 - KEPT_SEALS :])

    def _add_to_note(self, name: str, noted: Sequence[tuple[str, str]]) -> None:
        token = secrets.token_hex(6)
        self._own_notes.add(token)
        data = json.dumps([*noted, (token, name)]).encode()
        note_file(self.folder / CLAIMS / SEALED, data)

    def is_ready(self, indices: range) -> bool:
        """Whether all trajectories of a part are pending and no worker still claims one."""
        if not self.claims.shared and not all(map(self._is_pending, indices)):
            return False
        pending = self.pending
        if not all(i in pending for i in indices):
            return False
        claimed = self.claims.current().keys()
        return not any(f"{i:06d}" in claimed for i in indices)

    @contextmanager
    def sealing(self, *, wait: bool = True) -> Iterator[Claim | None]:
        """Hold the claim to seal.

        Args:
            wait: whether to wait for a worker that is sealing; if not, yield None instead.
        """
        if not wait and SEAL in self.claims.current():
            yield None
            return
        with self.claims.hold(SEAL) as claim:
            if claim.generation > 1:  # the previous holder was killed while sealing
                self._recover()
            yield claim

    def seal(self, indices: range) -> bool:
        """Seal pending trajectories into a part of each kind, if all of them are there."""
        with self.sealing() as claim:
            return claim is not None and self.seal_part(indices, claim)

    def seal_part(self, indices: range, claim: Claim) -> bool:
        """Seal pending trajectories like `seal`, for a caller that holds the claim to seal."""
        pending = self.pending
        if len(self.unsealed(indices)) < len(indices) or not all(i in pending for i in indices):
            return False
        found = [pending[i].load(self._run.digest) for i in indices]
        # The rows come last: they name the part of cells, which must exist by then.
        cells = self._seal_cells(found) if self.keeps_cells else None
        if not self.claims.still_holds(claim):
            return False  # this process stalled for longer than a lease, and another took over
        # Seal, note, remove, in this order: what is neither noted nor pending counts as unfinished.
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
        """Return whether the run has all wanted trajectories; if so, clean up after kills."""
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
        """Store grades under a reading as a new file of the run; its rows do not change."""
        with self.claims.hold(GRADES):  # two workers that grade at once would use one number
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
        """Finish or undo the sealing that a kill interrupted, and leave finished parts alone.

        If no rows name a part of cells, the kill came between writing the two: the pending files
        are still there, and sealing them again writes both. If no other file holds the cells'
        trajectories, the rows were lost; this is an error, and the cells are not deleted.
        """
        sealed = self._sealed_parts()
        named = {self._look(part)[1] for part in sealed}
        pending = self.pending
        unnamed = [p for p in list_parts(self.folder / "cells") if p.path.name not in named]
        for part in unnamed:
            part.load(self._run.digest).forget()  # fails if damaged or of another run
            require_rows(part, sealed, pending)
        if sealed:
            # The killed worker may not have noted its part; new tokens make all workers list the
            # parts again. An entry that a worker joined is kept for those that have not read it.
            joined = any(name == JOINED for _, name in self._read_note())
            kept = [(secrets.token_hex(6), JOINED)] if joined else []
            self._add_to_note(sealed[-1].path.name, kept)
        self._drop_copies(sealed)
        self._remove_own(p for p in list_parts(self.folder / "rows") if p not in sealed)
        self._remove_own(unnamed)

    def _drop_copies(self, sealed: Sequence[Part]) -> None:
        """Remove pending files that were sealed, after checking that their cells are whole."""
        copies = [p for p in list_parts(self.folder / "pending") if covers(sealed, p.first)]
        holding = [part for part in sealed if any(c.first in part.trajectories for c in copies)]
        needed = {self._look(part)[1] for part in holding}
        for part in list_parts(self.folder / "cells"):
            if part.path.name in needed:
                part.load(self._run.digest).forget()
        self._remove_own(copies)

    def _remove_own(self, parts: Iterable[Part]) -> None:
        """Remove parts of this run; refuse a part of another run and name it."""
        own = list(parts)
        for part in own:
            if self._written.pop(part.path, None) is None:
                with suppress(FileNotFoundError):  # a worker that lost its claim has removed it
                    part.load(self._run.digest).forget()
        remove_files(part.path for part in own)

    def _clear(self) -> None:
        """Delete the files that c4 wrote for the old run, and nothing else.

        The manifest goes after the parts, because it identifies them, and before the tokenizer, so
        that no run is left without one.
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
        """Refuse to delete files that c4 did not write, or parts of more than one run."""
        runs: dict[str, str] = {}
        with suppress(RunError):  # a run with an unreadable manifest may be deleted, too
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
    """Whether a file has a name that c4 gives to files of a run."""
    return name in OWN_FILES or PART.fullmatch(name) is not None


def joined_made_with(found: Sequence[Part]) -> list[Mapping[str, Any]]:
    """Return the devices and library versions that made several parts, without duplicates."""
    made: list[Mapping[str, Any]] = []
    for part in found:
        made += [one for one in part.made_with if one not in made]
    return made
