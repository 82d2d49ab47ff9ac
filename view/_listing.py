"""The list: which trajectories, in which order. Only the rows that are looked at are described."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from c4.errors import unknown_name
from c4.gates.gate import wants_cells
from c4.replay.decisions import PartExits
from c4.view._cohort import cohort_of
from c4.view._trajectory import settled_at
from c4.view.offers import Settings
from c4.view.shelf import Book, Shelf

Key = tuple[str, int]
"""A run and a number of a trajectory in it."""
SORTS = ("recorded", "stabilization", "exit", "entropy", "steps")
VERDICTS = ("right", "wrong", "ungraded")
EXITS = ("fired", "premature", "sound", "never")
"""What a gate may make of a trajectory: `sound` is fired once the answer had settled."""
SHOWN_LETTERS = 240
"""Letters of a prompt that a list shows."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What a user wants to see in the list."""

    tasks: Sequence[str] = ()
    methods: Sequence[str] = ()
    verdict: str = ""
    exits: str = ""
    """Of `EXITS`, under `gate`."""
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


def list_message(shelf: Shelf, query: Query, start: int, count: int) -> dict[str, Any]:
    """Some rows of the list, and how many there are."""
    books = [book for book in shelf.books.values() if _is_wanted(book, query)]
    keys = _ordered(shelf, books, query)
    total = sum(len(book.indices) for book in books) if keys is None else len(keys)
    chosen = islice(_recorded(books) if keys is None else keys, start, start + count)
    return {"total": total, "start": start, "rows": [describe_row(shelf, key) for key in chosen]}


def _is_wanted(book: Book, query: Query) -> bool:
    task, method = book.run.task_name, book.run.method
    return (not query.tasks or task in query.tasks) and (
        not query.methods or method in query.methods
    )


def _recorded(books: Iterable[Book]) -> Iterable[Key]:
    return ((book.key, index) for book in books for index in book.indices)


def _ordered(shelf: Shelf, books: Sequence[Book], query: Query) -> list[Key] | None:
    """The trajectories asked for, in order; None where that is all of them as they are."""
    if not query.needs_rows and not query.needs_signals:
        return None
    frames = [_facts(shelf, book, query).with_columns(book=pl.lit(book.key)) for book in books]
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
    return frame.select("book", "trajectory").rows()


def _facts(shelf: Shelf, book: Book, query: Query) -> pl.DataFrame:
    """What the list is filtered and sorted by, a row per trajectory."""
    frame = pl.DataFrame({"trajectory": book.indices}, schema={"trajectory": pl.Int32()})
    if query.needs_rows:
        words = shelf.words.get(book, lambda: _words(book))
        frame = frame.join(words, on="trajectory", how="left", maintain_order="left")
    if query.needs_signals:
        found = _exits(shelf, book, query)
        frame = frame.join(found, on="trajectory", how="left", maintain_order="left")
    return frame


def _words(book: Book) -> pl.DataFrame:
    """What is written in a run's trajectories, and what it is worth."""
    worth = {True: "right", False: "wrong", None: "ungraded"}
    rows = [
        {
            "trajectory": row.trajectory,
            "steps": row.steps,
            "verdict": worth[row.correct],
            "words": "\n".join(
                [row.prompt, row.text, row.answer or "", row.target, str(row.trajectory)]
            ).casefold(),
        }
        for row in book.run.rows()
    ]
    schema = {"trajectory": pl.Int32(), "steps": pl.Int32(), "verdict": pl.String()}
    return pl.DataFrame(rows, schema={**schema, "words": pl.String()})


def _exits(shelf: Shelf, book: Book, query: Query) -> pl.DataFrame:
    """Where a gate stops the trajectories of a run; where steps were not kept, its own exits."""
    if not book.run.has_cells:
        return _own_exits(book)
    cohort = cohort_of(shelf, book)
    exits = cohort.exits(query.gate, query.settings)
    kinds = {True: ["fired", "premature"], False: ["fired", "sound"], None: ["fired"]}
    outcome = [
        kinds[early] if at else ["never"]
        for at, early in zip(exits.tolist(), cohort.premature(exits), strict=True)
    ]
    entropy = cohort.entropy_at(exits)
    return pl.DataFrame(
        {
            "trajectory": cohort.signals.trajectory,
            "stabilization": cohort.settling()["stabilization"],
            "exit": pl.Series(exits).replace(0, None),
            "entropy": pl.Series(np.asarray(entropy)).fill_nan(None),
            "outcome": outcome,
        },
        schema_overrides={"stabilization": pl.Int32(), "outcome": pl.List(pl.String())},
    )


def _own_exits(book: Book) -> pl.DataFrame:
    exits = [(row.trajectory, row.exit_step) for row in book.run.rows()]
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


def describe_row(shelf: Shelf, key: Key) -> dict[str, Any]:
    row = shelf.book(key[0]).row(key[1])
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


def marks_message(shelf: Shelf, keys: Sequence[Key], settings: Settings) -> list[dict[str, Any]]:
    """When answers settle and gates stop, for rows that are in sight."""
    return [_marks(shelf, key, settings) for key in keys]


def _marks(shelf: Shelf, key: Key, settings: Settings) -> dict[str, Any]:
    book = shelf.book(key[0])
    if not book.run.has_cells:
        return {"stabilization": None, "exits": {}}
    signals = book.listed_signals(key[1])
    gates = {
        name: gate
        for name, gate in shelf.offers.make(book.run.task, settings).items()
        if not wants_cells(gate)
    }
    found = PartExits(gates, signals)
    exits = {name: int(found.all(name)[0]) for name in gates}
    return {"stabilization": settled_at(signals), "exits": exits}
