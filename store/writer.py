"""Writing a run so that nothing a machine does to it loses a finished trajectory.

Every finished trajectory becomes a small pending file at once. When all trajectories of a part
are there, the part is written and the pending files go. Each step is one atomic rename and can
be repeated, so recovery after a kill is: look which files exist.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.cells import (
    CELLS_PER_PART,
    SHAPES_KEY,
    WRITE_OPTIONS,
    Cells,
    batch_cells,
    cells_to_table,
)
from c4.store.grades import read_added
from c4.store.manifest import (
    Manifest,
    read_manifest,
    write_manifest,
    write_tokenizer,
)
from c4.store.parts import PART, Part, encode_table, list_parts, open_part, write_part
from c4.store.rows import Row
from c4.store.runs import ROW_KEY, cell_shapes, pending_row
from c4.store.schema import GRADES, ROWS
from c4.store.storage import TEMPORARY, flush_folder, make_folder, remove_files
from c4.tasks import AnswerReading, Grade, Shape

DATA_FOLDERS = ("rows", "cells", "pending", "grades", "signals")


@dataclass(frozen=True)
class Decode:
    """A finished decode, ready to be written."""

    row: Row
    cells: Cells | None
    """Every step; None where only the row is kept."""


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


def check_identity(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was made differently, and say what differs.

    Args:
        identity: as much of it as is known yet.
    """
    if not (folder / "manifest.json").exists():
        return
    recorded = read_manifest(folder).identity
    differ = [key for key in identity if recorded.get(key) != identity[key]]
    if differ:
        lines = [f"  {key}: {recorded.get(key)!r} there, {identity[key]!r} here" for key in differ]
        raise RunError(
            f"{folder} is another run:\n" + "\n".join(lines) + "\n"
            "use --out for a place of its own, or --fresh to throw the old one away"
        )


class RunWriter:
    """The one process that may write a run. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None
        self._digest = ""
        self.kinds: Sequence[str] = ()
        """What the run is sealed into, in the order of writing."""

    def __enter__(self) -> "RunWriter":
        make_folder(self.folder)
        self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise RunError(
                f"{self.folder}: another process is recording here; wait for it, or use --out"
            ) from None
        return self

    def __exit__(self, *exc: object) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def start(self, manifest: Manifest, tokenizer_json: str, *, fresh: bool = False) -> None:
        """Begin the run, or go on with it; clear away what a kill left half done."""
        exists = (self.folder / "manifest.json").exists()
        if fresh:
            self._clear()
        elif exists:
            check_identity(self.folder, manifest.identity)
        else:
            self._refuse_orphans()
        if fresh or not exists:
            write_tokenizer(self.folder, tokenizer_json)
            write_manifest(self.folder, manifest)
        self.go_on(manifest)
        self._recover()

    def _refuse_orphans(self) -> None:
        """Refuse to begin a run among the parts of one that has lost its manifest."""
        parts = [part for name in DATA_FOLDERS for part in list_parts(self.folder / name)]
        if parts:
            raise RunError(
                f"{self.folder}: parts of a run, such as {parts[0].path.name}, but no "
                "manifest.json that says what they are; bring it back, use --out for another "
                "place, or --fresh to throw the parts away"
            )

    def go_on(self, manifest: Manifest) -> None:
        """Write for a run that exists."""
        self._digest = manifest.digest
        self.kinds = ("cells", "rows") if manifest.identity["cells"] else ("rows",)

    @property
    def sealed(self) -> set[int]:
        """Trajectories that are in their final parts, one of every kind."""
        *before, last = (list_parts(self.folder / kind) for kind in self.kinds)
        firsts = [{part.first for part in parts} for parts in before]
        whole = (part for part in last if all(part.first in first for first in firsts))
        return {i for part in whole for i in part.trajectories}

    @property
    def pending(self) -> dict[int, Part]:
        """Finished trajectories that wait for the rest of their part."""
        return {part.first: part for part in list_parts(self.folder / "pending")}

    def add(self, decode: Decode) -> Path:
        """Make one finished trajectory safe."""
        row = decode.row
        data = encode_table(
            cells_to_table(row.trajectory, decode.cells),
            self._digest,
            {ROW_KEY: row.to_json()},
            compression="zstd",
            compression_level=1,
        )
        return write_part(self.folder / "pending", row.trajectory, row.trajectory, data)

    def replace(self, decode: Decode) -> None:
        """Put a graded trajectory in the place of its ungraded copy."""
        parts = list_parts(self.folder / "pending")
        written = self.add(decode)
        ungraded = (part.path for part in parts if part.first == decode.row.trajectory)
        remove_files(path for path in ungraded if path != written)

    def read_row(self, part: Part) -> Row:
        """The row in a pending file, whose cells are left alone."""
        return pending_row(open_part(part, self._digest))

    def read_pending(self, part: Part) -> Decode:
        """The trajectory in a pending file."""
        file = open_part(part, self._digest)
        row = pending_row(file)
        cells = None
        if file.metadata.num_rows:
            cells = next(batch_cells(file, [(row.steps, row.length)]))[0]
        return Decode(row, cells)

    def seal(self, indices: range) -> bool:
        """Turn pending trajectories into a part of every kind, if all of them are there."""
        pending = self.pending
        if not all(i in pending for i in indices):
            return False
        files = [open_part(pending[i], self._digest) for i in indices]
        # The last part says that the others are there too, so the order matters.
        for kind in self.kinds:
            data = SEALS[kind](files, self._digest)
            write_part(self.folder / kind, indices[0], indices[-1], data)
        self._drop_pending(set(indices))
        return True

    def add_grades(self, grades: Mapping[int, Grade], reading: AnswerReading) -> None:
        """Keep grades under a reading beside the run, which stays as it is."""
        numbers = [row["number"] for row in read_added(self.folder, self._digest)]
        stamp = {
            **asdict(reading),
            "version": version("c4-dlm"),
            "number": 1 + max(numbers, default=0),
        }
        rows = [{"trajectory": i, **asdict(grade), **stamp} for i, grade in sorted(grades.items())]
        table = pa.Table.from_pylist(rows, schema=GRADES)
        data = encode_table(table, self._digest, compression="zstd")
        write_part(self.folder / "grades", min(grades), max(grades), data)

    def _recover(self) -> None:
        """Finish or undo what a kill interrupted. Nothing finished is touched."""
        for name in (".", *DATA_FOLDERS):
            self._remove_temporaries(name)
        sealed = self.sealed
        self._drop_pending(sealed)
        # Cells without rows: the kill came between the two, the pending files are still there,
        # and sealing them again writes both. Rows without cells: someone deleted damaged cells.
        for kind in self.kinds:
            parts = list_parts(self.folder / kind)
            remove_files(part.path for part in parts if part.first not in sealed)

    def _drop_pending(self, sealed: set[int]) -> None:
        """Remove the pending files of sealed trajectories, graded and ungraded copies alike."""
        parts = list_parts(self.folder / "pending")
        remove_files(part.path for part in parts if part.first in sealed)

    def _clear(self) -> None:
        """Throw the old run away: the files this room writes, and nothing else.

        The manifest after the parts: while it is there, they are known to be its own. But before
        the tokenizer, which only a missing manifest makes the next session write anew.
        """
        for name in DATA_FOLDERS:
            remove_files(part.path for part in list_parts(self.folder / name))
            self._remove_temporaries(name)
        for name in OWN_FILES:
            remove_files([self.folder / name])
            flush_folder(self.folder)

    def _remove_temporaries(self, name: str) -> None:
        """Remove what was being written when a process was killed."""
        folder = self.folder / name
        remove_files(p for p in folder.glob(f"*{TEMPORARY}") if is_ours(p.stem))


OWN_FILES = ("manifest.json", "tokenizer.json")


def is_ours(name: str) -> bool:
    """Whether a file's name is one that this room gives."""
    return name in OWN_FILES or PART.fullmatch(name) is not None


def seal_cells(files: Sequence[pq.ParquetFile], digest: str) -> bytes:
    """The cells of pending files as one part."""
    cells = pa.concat_tables([file.read().replace_schema_metadata() for file in files])
    shapes = [shape for file in files for shape in cell_shapes(file)]
    return encode_table(cells, digest, {SHAPES_KEY: json.dumps(shapes).encode()}, **WRITE_OPTIONS)


def seal_rows(files: Sequence[pq.ParquetFile], digest: str) -> bytes:
    """The rows of pending files as one part."""
    rows = [asdict(pending_row(file)) for file in files]
    table = pa.Table.from_pylist(rows, schema=ROWS)
    return encode_table(table, digest, compression="zstd", write_page_checksum=True)


SEALS = {"cells": seal_cells, "rows": seal_rows}
