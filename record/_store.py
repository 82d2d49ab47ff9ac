"""Writing a recording so that nothing a machine does to it loses a finished trajectory.

Every finished trajectory becomes a small pending file at once. When all trajectories of a part
are there, the part is written and the pending files go. Each step is one atomic rename and can
be repeated, so recovery after a kill is: look which files exist.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.record._cells import (
    CELLS_PER_PART,
    WRITE_OPTIONS,
    Cells,
    batch_cells,
    cells_to_table,
    encode_table,
)
from c4.record._format import (
    GRADES,
    LIVE,
    LIVE_KEY,
    ROW_KEY,
    SCHEMA_VERSION,
    SHAPES_KEY,
    TEMPORARY,
    TRAJECTORIES,
    Manifest,
    Part,
    flush_folder,
    is_ours,
    list_parts,
    make_folder,
    open_part,
    read_manifest,
    write_manifest,
    write_part,
    write_tokenizer,
)
from c4.record._live import pending_facts, pending_result
from c4.record._rows import LiveFacts, TrajectoryRow
from c4.record._run import cell_shapes, pending_row
from c4.tasks import AnswerReading, Grade, Shape

RECORDED = ("cells", "trajectories")
"""What a recording is sealed into, in the order of writing."""
RESULTS = ("results",)
"""What a live run is sealed into; one that records is sealed into all three."""
DATA_FOLDERS = (*RESULTS, *RECORDED, "pending", "grades", "signals")


@dataclass(frozen=True)
class Finished:
    """A decode, ready to be written."""

    row: TrajectoryRow
    cells: Cells | None
    """None where only results are kept."""
    live: LiveFacts | None = None
    """None in a plain recording."""


def plan_parts(indices: Iterable[int], shape: Shape) -> list[range]:
    """Trajectories cut into the parts they will be sealed in: consecutive, of bounded size."""
    size = max(1, CELLS_PER_PART // (shape.steps * shape.length))
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
    manifest = read_manifest(folder)
    if manifest.schema_version != SCHEMA_VERSION:
        raise RunError(
            f"{folder} is in format {manifest.schema_version}, which this c4 reads but does not "
            "write; use --out for a place of its own, or --fresh to throw the old one away"
        )
    recorded = manifest.identity
    differ = [key for key in identity if recorded.get(key) != identity[key]]
    if differ:
        lines = [f"  {key}: {recorded.get(key)!r} there, {identity[key]!r} here" for key in differ]
        raise RunError(
            f"{folder} is another recording:\n" + "\n".join(lines) + "\n"
            "use --out for a place of its own, or --fresh to throw the old one away"
        )


def read_pending(part: Part) -> Finished:
    """The trajectory in a pending file."""
    file = open_part(part)
    row = pending_row(file)
    cells = None
    if file.metadata.num_rows:
        cells = next(batch_cells(file, [(row.forward_passes, row.length)]))[0]
    return Finished(row, cells, pending_facts(file))


def seal_cells(files: Sequence[pq.ParquetFile]) -> bytes:
    """The cells of pending files as one part."""
    cells = pa.concat_tables([file.read().replace_schema_metadata() for file in files])
    shapes = [shape for file in files for shape in cell_shapes(file)]
    cells = cells.replace_schema_metadata({SHAPES_KEY: json.dumps(shapes).encode()})
    return encode_table(cells, **WRITE_OPTIONS)


def seal_trajectories(files: Sequence[pq.ParquetFile]) -> bytes:
    """The rows of pending files as one part."""
    rows = [asdict(pending_row(file)) for file in files]
    table = pa.Table.from_pylist(rows, schema=TRAJECTORIES)
    return encode_table(table, compression="zstd", write_page_checksum=True)


def seal_results(files: Sequence[pq.ParquetFile]) -> bytes:
    """The results in pending files as one part."""
    table = pa.Table.from_pylist([pending_result(file) for file in files], schema=LIVE)
    return encode_table(table, compression="zstd", write_page_checksum=True)


SEALS = {"cells": seal_cells, "trajectories": seal_trajectories, "results": seal_results}


class RunWriter:
    """The one process that may write a run. Use as a context manager."""

    def __init__(self, folder: Path, kinds: Sequence[str] = RECORDED) -> None:
        self.folder = folder
        self.kinds = kinds
        self._lock: int | None = None

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
        if fresh or not exists:  # files without a manifest are what a killed --fresh left
            self._clear()
        else:
            check_identity(self.folder, manifest.identity)
        if fresh or not exists:
            write_tokenizer(self.folder, tokenizer_json)
            write_manifest(self.folder, manifest)
        self._recover()

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

    def add(self, finished: Finished) -> Path:
        """Make one finished trajectory safe."""
        row = finished.row
        metadata = {ROW_KEY: row.to_json()}
        if finished.live is not None:
            metadata[LIVE_KEY] = finished.live.to_json()
        table = cells_to_table(row.trajectory, finished.cells).replace_schema_metadata(metadata)
        data = encode_table(table, compression="zstd", compression_level=1)
        return write_part(self.folder / "pending", row.trajectory, row.trajectory, data)

    def replace(self, finished: Finished) -> None:
        """Put a graded trajectory in the place of its ungraded copy."""
        parts = list_parts(self.folder / "pending")
        written = self.add(finished)
        ungraded = (part.path for part in parts if part.first == finished.row.trajectory)
        self._remove(path for path in ungraded if path != written)

    def seal(self, indices: range) -> bool:
        """Turn pending trajectories into a part of every kind, if all of them are there."""
        pending = self.pending
        if not all(i in pending for i in indices):
            return False
        files = [open_part(pending[i]) for i in indices]
        # The last part says that the others are there too, so the order matters.
        for kind in self.kinds:
            data = SEALS[kind](files)
            write_part(self.folder / kind, indices[0], indices[-1], data)
        self._drop_pending(set(indices))
        return True

    def add_grades(self, grades: Mapping[int, Grade], reading: AnswerReading) -> None:
        """Keep grades under a reading beside the recording, which stays as it is."""
        stamp = {
            **asdict(reading),
            "grader": version("c4-dlm"),
            "graded": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        rows = [{"trajectory": i, **asdict(grade), **stamp} for i, grade in sorted(grades.items())]
        table = pa.Table.from_pylist(rows, schema=GRADES)
        data = encode_table(table, compression="zstd")
        write_part(self.folder / "grades", min(grades), max(grades), data)

    def _recover(self) -> None:
        """Finish or undo what a kill interrupted. Nothing finished is touched."""
        for name in (".", *DATA_FOLDERS):
            folder = self.folder / name
            self._remove(p for p in folder.glob(f"*{TEMPORARY}") if is_ours(p.stem))
        sealed = self.sealed
        self._drop_pending(sealed)
        # Cells without rows: the kill came between the two, the pending files are still there,
        # and sealing them again writes both. Rows without cells: someone deleted damaged cells.
        for kind in self.kinds:
            parts = list_parts(self.folder / kind)
            self._remove(part.path for part in parts if part.first not in sealed)

    def _drop_pending(self, sealed: set[int]) -> None:
        """Remove the pending files of sealed trajectories, graded and ungraded copies alike."""
        parts = list_parts(self.folder / "pending")
        self._remove(part.path for part in parts if part.first in sealed)

    def _clear(self) -> None:
        """Throw the old recording away: the files this room writes, and nothing else."""
        for name in DATA_FOLDERS:
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)
        # The manifest after the data: while it is there, the files are known to be its own. But
        # before the tokenizer, which only a missing manifest makes the next session write anew.
        for name in ("manifest.json", "tokenizer.json"):
            (self.folder / name).unlink(missing_ok=True)
            flush_folder(self.folder)

    @staticmethod
    def _remove(paths: Iterable[Path]) -> None:
        for path in list(paths):
            path.unlink(missing_ok=True)
