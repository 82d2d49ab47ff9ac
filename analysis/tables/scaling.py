"""Methods under every shape that was decoded."""

from c4.analysis.library import Library
from c4.analysis.sweeps import scaling_table
from c4.analysis.tables.captions import with_paper, with_pool
from c4.analysis.tables.columns import (
    NAMES,
    NUMBERS,
    TIMED,
    counts,
    labelled,
    paper_columns,
    percent,
    with_speed,
)
from c4.analysis.tables.missing import not_gradable_notes
from c4.analysis.tables.render import Column, ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """A row for every method and shape, where a task has several shapes or a cache."""
    rows = with_speed(percent(scaling_table(library.totals)), library.bench)
    letters = {"length": "L", "budget": "T", "block_length": "B", "blocks": "N"}
    shape = [Column(key, letter) for key, letter in letters.items()]
    columns = [*NAMES[:2], *shape, NAMES[2], *counts(rows), *NUMBERS, *TIMED]
    caption = with_pool("Methods under every shape", library, every=True)
    if paper:
        keys = ["task", "length", "block_length", "method"]
        rows, caption = with_paper(rows, caption, "scaling", keys, library, any_shape=True)
        columns += paper_columns(NUMBERS)
    missing = (
        []
        if rows.height
        else [
            "a second shape of some task, below the same folder "
            "(c4 run --method baseline --method c4 --task gsm8k --gen-length 144 --out runs/144)"
        ]
    )
    if not rows["method"].is_in(["c4,cache=dual"]).any():
        missing.append(
            "C4 + DualCache (c4 run --method c4 --method fast-dllm --task gsm8k --set cache=dual)"
        )
    missing += not_gradable_notes(library)
    return ReportTable("scaling", caption, columns, labelled(rows), missing, "accuracy")
