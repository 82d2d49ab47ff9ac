"""The page's list of trajectories, filtered and sorted. Only the visible rows are described."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from c4.errors import unknown_name
from c4.gates.gate import wants_cells
from c4.replay.exits import ask_gates, at_exit
from c4.view.menu import Settings
from c4.view.trajectory import settled_at
from c4.view.viewer import RunCache, Viewer

Key = tuple[str, int]
"""Key of a run, and number of a trajectory in it."""
SORTS = ("recorded", "stabilization", "exit", "entropy", "steps")
VERDICTS = ("right", "wrong", "ungraded")
EXITS = ("fired", "premature", "sound", "never")
"""Outcomes of a gate on a trajectory; `sound` means fired after the answer had settled."""
SHOWN_LETTERS = 240
"""Most characters of a prompt or answer that the list shows."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """Filters and order of the list."""

    tasks: Sequence[str] = ()
    methods: Sequence[str] = ()
    verdict: str = ""
    exits: str = ""
    """One of `EXITS`, under `gate`; empty for all."""
    gate: str = "cvee"
    search: str = ""
    sort: str = "recorded"
    descending: bool = False
    settings: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("order", self.sort, SORTS),
            ("verdict", self.verdict, ("", *VERDICTS)),
            ("filter", self.exits, ("", *EXITS)),
        ):
            if value not in known:
                raise unknown_name(kind, value, known)

    @property
    def needs_rows(self) -> bool:
        return bool(self.verdict or self.search or self.sort == "steps")

    @property
    def needs_signals(self) -> bool:
        return bool(self.exits) or self.sort in ("stabilization", "exit", "entropy")


def list_message(viewer: Viewer, query: Query, start: int, count: int) -> dict[str, Any]:
    """Return some rows of the list, and the number of all rows."""
    runs = [
        cache
        for cache in viewer.runs.values()
        if (not query.tasks or cache.run.task_name in query.tasks)
        and (not query.methods or cache.run.method in query.methods)
    ]
    keys: Iterable[Key]
    if query.needs_rows or query.needs_signals:
        keys = _ordered(viewer, runs, query)
        total = len(keys)
    else:
        keys = ((cache.key, index) for cache in runs for index in cache.indices)
        total = sum(len(cache.indices) for cache in runs)
    chosen = islice(keys, start, start + count)
    return {"total": total, "start": start, "rows": [describe_row(viewer, key) for key in chosen]}


def _ordered(viewer: Viewer, runs: Sequence[RunCache], query: Query) -> list[Key]:
    """Return the trajectories that match a query, in its order."""
    frames = [_facts(viewer, cache, query).with_columns(cache=pl.lit(cache.key)) for cache in runs]
    if not frames:
        return []
    frame = pl.concat(frames, how="diagonal_relaxed")
    if query.verdict:
        frame = frame.filter(pl.col("verdict") == query.verdict)
    if query.exits:
        frame = frame.filter(pl.col("outcome").list.contains(query.exits))
    if query.search:
        frame = frame.filter(pl.col("words").str.contains(query.search.casefold(), literal=True))
    if query.sort != "recorded":
        frame = frame.sort(
            query.sort, descending=query.descending, nulls_last=True, maintain_order=True
        )
    elif query.descending:
        frame = frame.reverse()
    return frame.select("cache", "trajectory").rows()


def _facts(viewer: Viewer, cache: RunCache, query: Query) -> pl.DataFrame:
    """Return the columns that the list is filtered and sorted by, one row per trajectory."""
    frame = pl.DataFrame({"trajectory": cache.indices}, schema={"trajectory": pl.Int32()})
    if query.needs_rows:
        frame = frame.join(cache.words, on="trajectory", how="left", maintain_order="left")
    if query.needs_signals:
        found = _exits(viewer, cache, query)
        frame = frame.join(found, on="trajectory", how="left", maintain_order="left")
    return frame


def _exits(viewer: Viewer, cache: RunCache, query: Query) -> pl.DataFrame:
    """Return where a gate stops trajectories, or the run's own exits if it kept no steps."""
    if not cache.run.has_cells:
        return _own_exits(cache)
    cohort = viewer.cohort(cache)
    exits = cohort.exits(query.gate, query.settings)
    kinds = {True: ["fired", "premature"], False: ["fired", "sound"], None: ["fired"]}
    outcome = [
        kinds[early] if at else ["never"]
        for at, early in zip(exits.tolist(), cohort.premature(exits), strict=True)
    ]
    entropy = at_exit(cohort.signals.signals.entropy, exits[None], cohort.steps)[0]
    return pl.DataFrame(
        {
            "trajectory": cohort.signals.trajectory,
            "stabilization": cohort.settling()["stabilization"],
            "exit": pl.Series(exits).replace(0, None),
            "entropy": pl.Series(np.where(exits > 0, entropy, np.nan)).fill_nan(None),
            "outcome": outcome,
        },
        schema_overrides={"stabilization": pl.Int32(), "outcome": pl.List(pl.String())},
    )


def _own_exits(cache: RunCache) -> pl.DataFrame:
    exits = [(row.trajectory, row.exit_step) for row in cache.run.rows()]
    return pl.DataFrame(
        {
            "trajectory": [number for number, _ in exits],
            "exit": [at for _, at in exits],
            "outcome": [["never"] if at is None else ["fired"] for _, at in exits],
        },
        schema_overrides={
            "trajectory": pl.Int32(),
            "exit": pl.Int32(),
            "outcome": pl.List(pl.String()),
        },
    )


def describe_row(viewer: Viewer, key: Key) -> dict[str, Any]:
    row = viewer.cache(key[0]).row(key[1])
    return {
        "run": key[0],
        "t": row.trajectory,
        "correct": row.correct,
        "verdict": row.verdict,
        "answer": _short(row.answer),
        "target": _short(row.target),
        "prompt": _short(row.prompt),
        "steps": row.steps,
        "budget": row.budget,
        "exit": row.exit_step,
    }


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"


def marks_message(viewer: Viewer, keys: Sequence[Key], settings: Settings) -> list[dict[str, Any]]:
    """Return when answers settle and gates stop, for the visible rows."""
    return [_marks(viewer, key, settings) for key in keys]


def _marks(viewer: Viewer, key: Key, settings: Settings) -> dict[str, Any]:
    cache = viewer.cache(key[0])
    if not cache.run.has_cells:
        return {"stabilization": None, "exits": {}}
    signals = cache.listed_signals(key[1])
    gates = {
        name: gate
        for name, gate in viewer.menu.make(cache.run.task, settings).items()
        if not wants_cells(gate)
    }
    exits = {name: int(found[0]) for name, found in ask_gates(gates, signals, ()).items()}
    return {"stabilization": settled_at(signals), "exits": exits}
