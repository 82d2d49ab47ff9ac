"""What a recording looks like on disk: schemas, file names, and parts that verify themselves.

    runs/model=tiny/task=math/
        manifest.json                             every parameter; see `Manifest`
        tokenizer.json                            what token ids mean
        cells/000000-000027.1f0c93aa.parquet      one row per step × position
        trajectories/000000-000027.5e1d00c2.parquet
        pending/000028-000028.77aa01b9.parquet    finished, not yet sealed into a part
        grades/000000-000027.90b1c2d3.parquet     given later, if any
    runs/live/model=tiny/task=math/method=c4/     a live run: the same, and
        results/000000-000027.07c14a2b.parquet    one row per example; cells only with --record
    runs/bench/model=tiny/task=math/20260101T120000Z.parquet

A part's name holds the trajectories it covers and the CRC-32 of its bytes. It is written under
a temporary name, flushed to the disk and renamed, so a name without `.tmp` is a whole file, and
a file that does not match its name is damaged. Parts are never changed afterwards.
"""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError

SCHEMA_VERSION = 2
"""Format 1 had no `choices`, `style` and `ending`; it can be read, but not gone on with."""

CELLS = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),
        pa.field("step", pa.int16(), nullable=False),  # 1..T
        pa.field("position", pa.int16(), nullable=False),  # 0..L-1, prompt not counted
        pa.field("token", pa.int32(), nullable=False),  # arg-max, masked or not
        pa.field("confidence", pa.float32(), nullable=False),  # softmax at temperature 1
        pa.field("gap", pa.float32(), nullable=False),  # top-1 minus top-2 logit
        pa.field("entropy", pa.float32(), nullable=False),  # nats
        pa.field("masked", pa.bool_(), nullable=False),  # when the step began
    ]
)
"""Sorted by trajectory, then position, then step: a position's history compresses best."""

TRAJECTORIES = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),  # place in the shuffled split
        pa.field("source_row", pa.int32(), nullable=False),  # place in the source
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("preamble", pa.string(), nullable=False),  # code: what stands before the program
        pa.field("tests", pa.string(), nullable=False),  # code: what stands behind it
        pa.field("choices", pa.list_(pa.string()), nullable=False),  # letters: what is offered
        pa.field("final_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("text", pa.string(), nullable=False),  # up to the first end token
        pa.field("answer", pa.string()),  # null where the text holds none
        pa.field("correct", pa.bool_()),  # null where it was not graded
        pa.field("style", pa.string()),  # of the reading it was graded under; null likewise
        pa.field("ending", pa.string()),  # of the same reading
        pa.field("length", pa.int16(), nullable=False),  # L
        pa.field("steps", pa.int16(), nullable=False),  # T, the budget
        pa.field("block", pa.int16(), nullable=False),  # B
        pa.field("forward_passes", pa.int32(), nullable=False),  # spent; steps in the cells
        pa.field("tokens_before_end", pa.int16(), nullable=False),
        pa.field("wall_seconds", pa.float64(), nullable=False),  # the decode alone
    ]
)

GRADES = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("correct", pa.bool_(), nullable=False),
        pa.field("style", pa.string(), nullable=False),  # of the reading: careful or plain
        pa.field("ending", pa.string(), nullable=False),  # of the reading: cut or skip
        pa.field("grader", pa.string(), nullable=False),  # the version of c4 that graded
        pa.field("graded", pa.string(), nullable=False),  # when; the newest of a reading counts
    ]
)
"""Grades given after the recording. They are added; what was recorded stays."""

LIVE = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),
        pa.field("source_row", pa.int32(), nullable=False),
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("preamble", pa.string(), nullable=False),
        pa.field("tests", pa.string(), nullable=False),
        pa.field("choices", pa.list_(pa.string()), nullable=False),
        pa.field("length", pa.int32(), nullable=False),  # L
        pa.field("steps", pa.int32(), nullable=False),  # T, the budget
        pa.field("block", pa.int32(), nullable=False),  # B
        pa.field("forward_passes", pa.int32(), nullable=False),  # spent, the firing one included
        pa.field("block_passes", pa.list_(pa.int32()), nullable=False),  # (N,); 0: never reached
        pa.field("block_seconds", pa.list_(pa.float64()), nullable=False),  # (N,), wall clock
        pa.field("exit_step", pa.int32()),  # null where no gate fired
        pa.field("exit_reason", pa.string(), nullable=False),  # "full", or the gate's name
        pa.field("committed_by", pa.list_(pa.uint8()), nullable=False),  # (L,), codes of Origin
        pa.field("commit_step", pa.list_(pa.int32()), nullable=False),  # (L,), that stands
        pa.field("revoked", pa.int32(), nullable=False),  # commits that were taken back
        pa.field("final_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("correct", pa.bool_()),
        pa.field("style", pa.string()),
        pa.field("ending", pa.string()),
        pa.field("tokens_before_end", pa.int32(), nullable=False),
        pa.field("wall_seconds", pa.float64(), nullable=False),  # decode and gate
    ]
)
"""What a live run keeps of every example."""

BENCH = pa.schema(
    [
        pa.field("method", pa.string(), nullable=False),
        pa.field("settings", pa.string(), nullable=False),  # JSON: rule and gate, every parameter
        pa.field("identity", pa.string(), nullable=False),  # JSON: of a live run's manifest
        pa.field("length", pa.int32(), nullable=False),  # L
        pa.field("steps", pa.int32(), nullable=False),  # T, the budget
        pa.field("block", pa.int32(), nullable=False),  # B
        pa.field("n", pa.int32(), nullable=False),
        pa.field("passes", pa.int32(), nullable=False),
        pa.field("warmups", pa.int32(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("threads", pa.int32(), nullable=False),
        pa.field("mean_seconds", pa.float64(), nullable=False),  # per example, mean of pass means
        pa.field("cv", pa.float64(), nullable=False),  # of the pass means, in percent
        pa.field("tps", pa.float64(), nullable=False),  # L / mean_seconds
        pa.field("tps_before_end", pa.float64(), nullable=False),
        pa.field("tokens_per_forward", pa.float64(), nullable=False),
        pa.field("mean_passes", pa.float64(), nullable=False),  # forward passes per example
        pa.field("speedup", pa.float64()),  # over the baseline of the same call
        pa.field("step_ratio", pa.float64()),  # the baseline's passes over these
    ]
)
"""One row per method of a timed call."""

PART = re.compile(r"(\d{6,})-(\d{6,})\.([0-9a-f]{8})\.parquet")
TEMPORARY = ".tmp"
SHAPES_KEY = b"c4.shapes"
"""In a part of cells: number, steps and positions of each trajectory, so that it reads alone."""
ROW_KEY = b"c4.trajectory"
"""Where a pending file keeps its trajectory row, so that one rename finishes both."""
LIVE_KEY = b"c4.live"
"""Where it keeps what only a live run knows."""


@dataclass(frozen=True, order=True)
class Part:
    """A self-verifying file: which trajectories it covers and what its bytes must sum to."""

    first: int
    last: int
    path: Path
    checksum: int

    @property
    def trajectories(self) -> range:
        return range(self.first, self.last + 1)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Everything that made a run, in two halves."""

    identity: Mapping[str, Any]
    """What decides the numbers. Two recordings mix only if these are equal."""
    environment: Mapping[str, Any]
    """Where it was made: versions, machine, time. Informative."""
    tokenizer_file_sha256: str
    """Of tokenizer.json beside the manifest."""
    schema_version: int = SCHEMA_VERSION


def run_folder(root: Path, model: str, task: str) -> Path:
    """Where the run of a model on a task lives: hive-partitioned by both."""
    return root / f"model={model}" / f"task={task}"


def live_folder(root: Path, model: str, task: str, label: str) -> Path:
    """Where the live run of a method lives, apart from the recordings.

    The label is quoted as in an address, which readers of partitions undo: a second equals sign
    would make them overlook the first.
    """
    return run_folder(root / "live", model, task) / f"method={quote(label, safe=' +,')}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    content = asdict(manifest)
    content["checksum"] = _content_checksum(content)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_whole(folder / "manifest.json", text.encode() + b"\n")


def _content_checksum(content: Mapping[str, Any]) -> str:
    """CRC-32 of a manifest's content, however it is laid out."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def read_manifest(folder: Path) -> Manifest:
    path = folder / "manifest.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        version = raw["schema_version"]
        if version > SCHEMA_VERSION:
            raise RunError(
                f"{path}: written by a newer c4 (format {version}, this one reads up to "
                f"{SCHEMA_VERSION}); upgrade c4"
            )
        checksum = raw.pop("checksum")
        if checksum != _content_checksum(raw):
            raise ValueError("its content does not match its checksum")
        return Manifest(**raw)
    except FileNotFoundError:
        raise RunError(f"{folder}: no manifest.json, so not a recording") from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: damaged manifest ({error})") from error


def write_tokenizer(folder: Path, tokenizer_json: str) -> None:
    write_whole(folder / "tokenizer.json", tokenizer_json.encode())


def read_tokenizer(folder: Path, manifest: Manifest) -> str:
    """The run's tokenizer, checked against the manifest."""
    path = folder / "tokenizer.json"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"{path}: missing, so token ids have no meaning") from None
    if text_hash(data.decode("utf-8", "replace")) != manifest.tokenizer_file_sha256:
        raise RunError(f"{path}: damaged (not the file that the manifest was written for)")
    return data.decode()


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_ours(name: str) -> bool:
    """Whether a file's name is one that this room gives."""
    return name in ("manifest.json", "tokenizer.json") or PART.fullmatch(name) is not None


def list_parts(folder: Path) -> list[Part]:
    """The parts in a folder, in order. Temporary files are not parts."""
    if not folder.is_dir():
        return []
    matches = ((path, PART.fullmatch(path.name)) for path in folder.iterdir())
    return sorted(
        Part(int(match[1]), int(match[2]), path, int(match[3], 16))
        for path, match in matches
        if match
    )


def write_part(folder: Path, first: int, last: int, data: bytes) -> Path:
    """Write the bytes of a part under the name that vouches for them."""
    path = folder / f"{first:06d}-{last:06d}.{zlib.crc32(data):08x}.parquet"
    write_whole(path, data)
    return path


def open_part(part: Part) -> pq.ParquetFile:
    """A part's Parquet file, read into memory and checked; or an error that names it."""
    data = part.path.read_bytes()
    if zlib.crc32(data) != part.checksum:
        raise RunError(
            f"{part.path}: damaged ({len(data)} bytes that do not match the checksum in the "
            f"name); delete it and record again to decode trajectories {part.first} to "
            f"{part.last} anew"
        )
    return pq.ParquetFile(pa.BufferReader(data))


def write_whole(path: Path, data: bytes) -> None:
    """Make a file appear whole or not at all, whatever happens to the machine."""
    make_folder(path.parent)
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # Rename last: a name without ".tmp" means the file is whole.
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each safe on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder safe on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
