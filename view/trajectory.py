"""Data of one trajectory for the page: its cells, its signals, and the gates' decisions."""

import json
import shlex
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.analysis.tables import reading_options
from c4.errors import ConfigError
from c4.gates.candidates import filled_predictions
from c4.gates.run_signals import RunSignals
from c4.gates.signals import stabilization_step
from c4.replay.decisions import decide
from c4.replay.exits import ask_gates
from c4.store.origins import Origin
from c4.tasks.vocabulary import Vocabulary
from c4.view.menu import GateMenu, Settings, demands
from c4.view.viewer import RunCache, Viewer

ALIGNMENT = 8
"""Alignment of buffers in bytes, as a Float64Array requires."""
TYPES = {"i1": "Int8", "u1": "Uint8", "i4": "Int32", "f4": "Float32", "f8": "Float64"}
"""Names of the browser's number types, by NumPy's type codes."""
SIGNALS = ("candidate", "answer", "span_start", "span_end", "run", "changes", "masked")
LEVELS = ("confidence", "entropy", "region_gap", "masked_gap")
"""Real-valued signals that the page draws; those in `SIGNALS` are integers."""
WRITTEN = ("prompt", "target", "text", "answer", "verdict", "correct", "preamble", "tests")
COUNTED = ("trajectory", "steps", "budget", "length", "block_length", "exit_step", "revoked")


def trajectory_message(cache: RunCache, index: int, menu: GateMenu, settings: Settings) -> bytes:
    """Return all data that the page draws of a trajectory, in the format of `pack`."""
    row, run = cache.row(index), cache.run
    facts = {name: getattr(row, name) for name in (*WRITTEN, *COUNTED)}
    header: dict[str, Any] = {
        "run": cache.describe(),
        "row": facts | {"choices": row.choices, "blockSteps": row.block_steps},
        "origins": {int(origin): origin.name.lower() for origin in Origin},
        "endIds": sorted(run.vocabulary.end_ids),
        "ending": str(run.reading.ending),
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "final": np.array(row.final_ids, dtype=np.int32),
        "commitStep": np.array(row.commit_step, dtype=np.int32),
        "committedBy": np.array(row.committed_by, dtype=np.uint8),
    }
    seen = [arrays["final"]]
    if run.has_cells:
        cells = cache.trajectory(index).cells
        signals = cache.signals(index)
        # (L, T), as stored: all steps of a position are adjacent.
        arrays |= {
            "token": cells.token.T,
            "filled": filled_predictions(cells.token, cells.masked).T,
            "confidence": cells.confidence.T,
            "gap": cells.gap.T,
            "entropy": cells.entropy.T,
            "masked": cells.masked.T.astype(np.uint8),
        }
        arrays |= {
            f"signal_{name}": getattr(signals.signals, name)[0, : row.steps]  # (T,)
            for name in (*SIGNALS, *LEVELS)
        }
        region = cache.reader.region
        header |= {
            "values": list(signals.candidates[0]),
            "region": [region.start, region.stop],
            "stabilization": settled_at(signals),
            **answer_message(cache, index, menu, settings),
        }
        seen.append(cells.token)
    header["vocabulary"] = _describe_tokens(run.vocabulary, seen)
    return pack(header, arrays)


def answer_message(
    cache: RunCache, index: int, menu: GateMenu, settings: Settings
) -> dict[str, Any]:
    """Return what changes when a slider moves: exits, thresholds and grades, but no cells."""
    recorded, signals = cache.trajectory(index), cache.signals(index)
    gates = menu.make(cache.run.task, settings)
    exits = ask_gates(gates, signals, [(recorded.row.trajectory, recorded.cells)])
    decided = decide(recorded, signals, 0, exits, cache.grader)
    steps = recorded.row.steps
    found = [
        {
            "name": name,
            **{key: value for key, value in outcome.items() if key != "text"},
            "waits": cache.grader.waits and outcome["correct"] is None,
            "asks": {
                signal: _numbers(asked[0, :steps])
                for signal, asked in demands(gates[name], signals.signals).items()
            },
        }
        for name, outcome in decided.items()
    ]
    return {"gates": found, "command": replay_command(cache, menu, settings)}


def settled_at(signals: RunSignals) -> int | None:
    """Return the stabilization step of a single trajectory; None if its answer never settles."""
    settled = int(stabilization_step(signals.signals)[0])
    return settled if settled <= int(signals.signals.steps[0]) else None


def _numbers(values: npt.NDArray[Any]) -> list[float | None]:
    """Return numbers for JSON, which has neither NaN nor infinity: they become None."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _describe_tokens(
    vocabulary: Vocabulary, seen: Sequence[npt.NDArray[Any]]
) -> list[dict[str, Any]]:
    """Return the text of every token that occurs, or its bytes if they are not whole characters."""
    described: list[dict[str, Any]] = []
    for token in np.unique(np.concatenate([np.unique(array) for array in seen])).tolist():
        if vocabulary.is_special(token):
            described.append({"id": token, "name": vocabulary.name(token)})
            continue
        piece = vocabulary.piece(token)
        try:
            described.append({"id": token, "text": piece.decode()})
        except UnicodeDecodeError:
            described.append({"id": token, "bytes": list(piece)})
    return described


def replay_command(cache: RunCache, menu: GateMenu, settings: Settings) -> str:
    """Return the `c4 replay` command that gives the same exits."""
    changed = [name for name in menu.names if settings.get(name)]
    names = changed or [name for name in ("cvee", "prophet", "sched") if name in menu.names]
    words = ["c4", "replay", "--runs", str(cache.run.folder)]
    own_task = cache.run.task.definition.get("task")
    if own_task is not None:  # other tasks need no --task
        words += ["--task", cache.typed_task or own_task]
    for name in names:
        words += ["--gate", name]
    for gate, changes in settings.items():
        for name, value in changes.items():
            words += ["--set", f"{gate}.{name}={value}"]
    return shlex.join(words) + reading_options(cache.run.reading)


def run_at(viewer: Viewer, cache: RunCache, index: int, step: int) -> dict[str, Any]:
    """Grade the text that a final fill at a step would leave, which may run it as a program."""
    recorded = cache.trajectory(index)
    if not 1 <= step <= recorded.row.steps:
        raise ConfigError(f"trajectory {index} has steps 1 to {recorded.row.steps}, not {step}")
    filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
    given = cache.grader.grade(recorded.row, filled[step - 1].tolist())
    viewer.cohort(cache).learn(index)
    return {"step": step, "correct": given.correct, "verdict": str(given.verdict)}


def pack(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Pack a JSON header and little-endian buffers, which a browser can map without conversion.

    uint32 length of the header | header, padded with spaces | buffers, each at a multiple of 8.
    `header["arrays"]` holds the type, shape and offset of every array.
    """
    places: dict[str, Any] = {}
    buffers: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        kind = TYPES[array.dtype.str[1:]]
        places[name] = {"type": kind, "shape": array.shape, "offset": offset}
        data += bytes(-len(data) % ALIGNMENT)
        buffers.append(data)
        offset += len(data)
    text = json.dumps({**header, "arrays": places}).encode()
    text += b" " * (-(len(text) + 4) % ALIGNMENT)
    return b"".join([struct.pack("<I", len(text)), text, *buffers])
