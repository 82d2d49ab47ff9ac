"""One trajectory as the page needs it: its cells, its signals, and what gates make of it."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.analysis.tables import reading_options
from c4.gates.candidates import filled_predictions
from c4.gates.run_signals import RunSignals
from c4.replay.decisions import PartExits, decide
from c4.store.origins import Origin
from c4.store.rows import Row
from c4.store.runs import Trajectory
from c4.tasks.vocabulary import Vocabulary
from c4.view._wire import pack
from c4.view.offers import Offers, Settings, demands
from c4.view.shelf import Book

SIGNALS = ("candidate", "answer", "span_start", "span_end", "run", "changes", "masked")
LEVELS = ("confidence", "entropy", "region_gap", "masked_gap")
"""The signals that the page draws: counts and numbers, and levels with a unit."""
WRITTEN = ("prompt", "target", "text", "answer", "verdict", "correct", "preamble", "tests")
COUNTED = ("trajectory", "steps", "budget", "length", "block_length", "exit_step", "revoked")


def trajectory_message(book: Book, index: int, offers: Offers, settings: Settings) -> bytes:
    """A trajectory with everything that the page draws, as `pack` puts it together."""
    row = book.row(index)
    header: dict[str, Any] = {"run": book.describe(), "row": _describe_row(row)}
    header["origins"] = {int(origin): origin.name.lower() for origin in Origin}
    header["endIds"] = sorted(book.run.vocabulary.end_ids)
    header["ending"] = str(book.run.reading.ending)
    arrays: dict[str, npt.NDArray[Any]] = {
        "final": np.array(row.final_ids, dtype=np.int32),
        "commitStep": np.array(row.commit_step, dtype=np.int32),
        "committedBy": np.array(row.committed_by, dtype=np.uint8),
    }
    seen = [arrays["final"]]
    if book.run.has_cells:
        recorded = book.trajectory(index)
        signals = book.signals(recorded)
        arrays |= _cell_arrays(recorded) | _signal_arrays(signals, row.steps)
        header |= _describe_signals(book, signals)
        header["gates"] = outcomes(book, recorded, signals, offers, settings)
        header["command"] = replay_command(book, offers, settings)
        seen.append(recorded.cells.token)
    header["vocabulary"] = describe_tokens(book.run.vocabulary, seen)
    return pack(header, arrays)


def _describe_row(row: Row) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in (*WRITTEN, *COUNTED)}
    return facts | {"choices": row.choices, "blockSteps": row.block_steps}


def _cell_arrays(recorded: Trajectory) -> dict[str, npt.NDArray[Any]]:
    """The cells as they are stored: all steps of a position together. (L, T) each"""
    cells = recorded.cells
    filled = filled_predictions(cells.token, cells.masked)
    return {
        "token": cells.token.T,
        "filled": filled.T,
        "confidence": cells.confidence.T,
        "gap": cells.gap.T,
        "entropy": cells.entropy.T,
        "masked": cells.masked.T.astype(np.uint8),
    }


def _signal_arrays(signals: RunSignals, steps: int) -> dict[str, npt.NDArray[Any]]:
    """The trajectory's signals. (T,) each"""
    names = {name: f"signal_{name}" for name in (*SIGNALS, *LEVELS)}
    return {as_: getattr(signals.signals, name)[0, :steps] for name, as_ in names.items()}


def _describe_signals(book: Book, signals: RunSignals) -> dict[str, Any]:
    region = book.reader.region
    return {
        "values": list(signals.candidates[0]),
        "region": [region.start, region.stop],
        "stabilization": settled_at(signals),
    }


def settled_at(signals: RunSignals) -> int | None:
    """The step from which a single trajectory's answer stays; None where it never settles."""
    settled = int(PartExits({}, signals).settled[0])
    return settled if settled <= int(signals.signals.steps[0]) else None


def outcomes(
    book: Book, recorded: Trajectory, signals: RunSignals, offers: Offers, settings: Settings
) -> list[dict[str, Any]]:
    """What each gate decides on a trajectory, what it asks for, and what it would have left."""
    gates = offers.make(book.run.task, settings)
    exits = PartExits(gates, signals)
    decided = decide(recorded, 0, exits, book.grader)
    steps = recorded.row.steps
    return [
        {
            "name": name,
            **{key: value for key, value in outcome.items() if key != "text"},
            "waits": book.grader.waits and outcome["correct"] is None,
            "asks": {
                signal: _numbers(asked[0, :steps])
                for signal, asked in demands(gates[name], signals.signals).items()
            },
        }
        for name, outcome in decided.items()
    ]


def _numbers(values: npt.NDArray[Any]) -> list[float | None]:
    """Numbers as JSON has them, which knows neither NaN nor infinity."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def describe_tokens(
    vocabulary: Vocabulary, seen: Sequence[npt.NDArray[Any]]
) -> list[dict[str, Any]]:
    """What every token that occurs writes; its bytes where they are no whole characters."""
    ids = np.unique(np.concatenate([np.unique(array) for array in seen]))
    return [_describe_token(vocabulary, token) for token in ids.tolist()]


def _describe_token(vocabulary: Vocabulary, token: int) -> dict[str, Any]:
    if vocabulary.is_special(token):
        return {"id": token, "name": vocabulary.name(token)}
    piece = vocabulary.piece(token)
    try:
        return {"id": token, "text": piece.decode()}
    except UnicodeDecodeError:
        return {"id": token, "bytes": list(piece)}


def replay_command(book: Book, offers: Offers, settings: Settings) -> str:
    """The command that gives the same exits."""
    changed = [name for name in offers.names if settings.get(name)]
    names = changed or [name for name in ("cvee", "prophet", "sched") if name in offers.names]
    words = ["c4", "replay", "--runs", str(book.run.folder), *_task_option(book)]
    words += [word for name in names for word in ("--gate", name)]
    words += [word for text in spell_settings(settings) for word in ("--set", text)]
    return shlex.join(words) + reading_options(book.run.reading)


def _task_option(book: Book) -> list[str]:
    """The option that names a task of a user's own; other tasks are known without it."""
    name = book.run.task.definition.get("task")
    return [] if name is None else ["--task", book.typed_task or name]


def spell_settings(settings: Settings) -> list[str]:
    """Settings as `--set` takes them."""
    return [
        f"{gate}.{name}={value}" for gate, ones in settings.items() for name, value in ones.items()
    ]


def answer_message(book: Book, index: int, offers: Offers, settings: Settings) -> Mapping[str, Any]:
    """What moves when a slider moves: exits, thresholds and grades, and no cells."""
    recorded = book.trajectory(index)
    found = outcomes(book, recorded, book.signals(recorded), offers, settings)
    return {"gates": found, "command": replay_command(book, offers, settings)}
