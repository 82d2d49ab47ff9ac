"""What a recording takes on disk, under several encodings, and how fast it is read back.

    python benchmarks/bench_format.py [--model tiny] [--n 24]

The first table is why the format is what it is: bytes per cell for each way of storing the same
recordings. The last lines compare `open_run` with pyarrow decoding the same columns.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4.decode.loop import decode
from c4.gates.steps import fixed_point
from c4.models import LoadedModel, Reading, load_model
from c4.record.plan import RunConfig, plan_recording
from c4.record.recorder import start_recording
from c4.store.cells import SIGNALS, Cells, cells_to_table
from c4.store.columns import RESOLUTION
from c4.store.parts import WRITE_OPTIONS
from c4.store.runs import open_run

TASKS = ("mmlu", "math", "humaneval")
BYTES_LIMIT = 5.0
SPEED_LIMIT = 0.5


class RawRecorder:
    """Stands between the loop and the denoiser and keeps what it read, unrounded."""

    def __init__(self, model: LoadedModel) -> None:
        self.denoiser = model.denoiser
        self.mask_id = model.denoiser.mask_id
        self.readings: list[Reading] = []
        self.masked: list[np.ndarray] = []

    def read(self, ids: np.ndarray, start: int) -> Reading:
        self.masked.append(ids[start:] == self.mask_id)
        self.readings.append(self.denoiser.read(ids, start))
        return self.readings[-1]

    def cells(self) -> Cells:
        signals = {
            name: np.stack([getattr(reading, name) for reading in self.readings])
            for name in ("token", *RESOLUTION)
        }
        signals["token"] = signals["token"].astype(np.int32)
        return Cells(**signals, masked=np.stack(self.masked))


def raw_cells(task: str, model_name: str, n: int) -> Iterator[Cells]:
    plan = plan_recording(
        RunConfig(task=task, model=model_name, source="embedded", n=n, graded=False)
    )
    model = load_model(plan.checkpoint)
    for sample in plan.sample_set.samples:
        recorder = RawRecorder(model)
        prompt = np.array(model.encode_prompt(sample.example.prompt), dtype=np.int64)
        decode(recorder, prompt, plan.shape)
        yield recorder.cells()


def rounded(cells: Cells) -> Cells:
    return Cells(
        token=cells.token,
        masked=cells.masked,
        **{name: fixed_point(name, getattr(cells, name)) for name in RESOLUTION},
    )


def tables(trajectories: list[Cells]) -> dict[str, pa.Table]:
    """The same cells raw and rounded, by step and by position."""

    def build(cells: list[Cells]) -> pa.Table:
        return pa.concat_tables([cells_to_table(i, c) for i, c in enumerate(cells)])

    raw, fixed = build(trajectories), build([rounded(cells) for cells in trajectories])
    by_step = [("trajectory", "ascending"), ("step", "ascending"), ("position", "ascending")]
    return {
        "raw, by step": raw.sort_by(by_step),
        "raw, by position": raw,
        "fixed point, by step": fixed.sort_by(by_step),
        "fixed point, by position": fixed,
    }


CHOSEN = WRITE_OPTIONS["cells"]
ENCODINGS = {
    "plain, no compression": {"compression": "none", "use_dictionary": False},
    "pyarrow's defaults (dictionary, snappy)": {"compression": "snappy"},
    "dictionary, zstd 3": {"compression": "zstd", "compression_level": 3},
    "split floats, zstd 1": {**CHOSEN, "compression_level": 1},
    "split floats, zstd 3 (chosen)": CHOSEN,
    "split floats, zstd 9": {**CHOSEN, "compression_level": 9},
}


def print_encodings(trajectories: list[Cells]) -> None:
    for order, table in tables(trajectories).items():
        for name, options in ENCODINGS.items():
            size = encoded_size(table, table.num_rows, options)
            print(f"  {order:26} {name:42} {size:6.2f} bytes/cell")
    table = tables(trajectories)["fixed point, by position"]
    for rows in (2**10, 2**13, 2**16, 2**18):
        size = encoded_size(table, rows, CHOSEN)
        print(f"  row groups of {rows:7,}: {size:6.2f} bytes/cell")


def encoded_size(table: pa.Table, rows: int, options: Mapping[str, object]) -> float:
    """Bytes per cell of a table in row groups of so many rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=rows, **options)
    return sink.getvalue().size / table.num_rows


def read_speed(folder: Path, repeats: int = 9) -> float:
    """How fast a run becomes arrays, over how fast pyarrow alone decodes the same columns."""
    files = sorted((folder / "cells").glob("*.parquet"))

    def ours() -> float:
        start = time.perf_counter()
        for _, cells in open_run(folder).cells():
            assert cells.confidence.base is not None
        return time.perf_counter() - start

    def pyarrow_alone() -> float:
        start = time.perf_counter()
        for path in files:
            pq.ParquetFile(path).read(columns=list(SIGNALS))
        return time.perf_counter() - start

    ours(), pyarrow_alone()
    return statistics.median(pyarrow_alone() / ours() for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--n", type=int, default=24)
    options = parser.parse_args()
    for task in TASKS:
        print(f"{task}, {options.n} trajectories")
        print_encodings(list(raw_cells(task, options.model, options.n)))
        with tempfile.TemporaryDirectory() as scratch:
            config = RunConfig(
                task=task, model=options.model, source="embedded", n=options.n, out=Path(scratch)
            )
            plan = plan_recording(config)
            with start_recording(plan) as recording:
                list(recording)
            cells = sum(cells.token.size for _, cells in open_run(plan.folder).cells())
            size = sum(path.stat().st_size for path in (plan.folder / "cells").iterdir())
            verdict = "ok" if size / cells <= BYTES_LIMIT else "MISSED"
            print(f"  on disk: {size / cells:.2f} bytes/cell (limit {BYTES_LIMIT}) {verdict}")
            speed = read_speed(plan.folder)
            verdict = "ok" if speed >= SPEED_LIMIT else "MISSED"
            print(f"  read back: {speed:.2f}x pyarrow alone (limit {SPEED_LIMIT}x) {verdict}")


if __name__ == "__main__":
    main()
