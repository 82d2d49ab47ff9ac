"""Render tables as Markdown, LaTeX, CSV or JSON. Missing numbers are shown as dashes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import polars as pl

from c4.errors.text import visible_json, visible_line
from c4.replay.calibration import TOLERANCE

DASH = "–"


class TableFormat(StrEnum):
    """Output format of tables."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True)
class Column:
    """A column of a table: the key of its values and how to format them."""

    key: str
    heading: str
    decimals: int | None = None
    """Number of decimals; None for text and counts."""
    signed: bool = False
    points: bool = False
    """Whether the values are percentage points of accuracy."""
    never_zero: bool = False
    """Whether a value that would round to zero is shown as an upper bound, such as `<0.001`."""
    subject: bool = False
    """Whether this is the table's main quantity, whose column stays even if it is empty."""


@dataclass(frozen=True)
class ReportTable:
    """A table with its caption and notes."""

    name: str
    caption: str
    columns: Sequence[Column]
    rows: pl.DataFrame
    missing: Sequence[str] = field(default=())
    """Notes on missing results, with the commands that produce them."""
    marked: str | None = None
    """Key of the column to mark in rows where `past` is true."""

    @property
    def is_empty(self) -> bool:
        return self.rows.is_empty()

    def marks(self, row: Mapping[str, Any], column: Column) -> bool:
        """Whether a cell is marked because accuracy fell by more than the tolerance."""
        return column.key == self.marked and bool(row["past"])

    def is_text(self, column: Column) -> bool:
        """Whether a column holds text and is therefore left-aligned."""
        return self.rows.schema[column.key] == pl.String()

    @property
    def legend(self) -> str | None:
        """Meaning of the mark; None if no cell is marked."""
        marked = self.marked is not None and self.rows["past"].any()
        return f"a drop of more than {TOLERANCE:.1f} points" if marked else None


def without_unpublished(table: ReportTable) -> ReportTable:
    """Replace the columns of published numbers by a note if all of them are empty."""
    theirs = [column.key for column in table.columns if column.key.startswith("paper_")]
    if not theirs or any(table.rows[key].is_not_null().any() for key in theirs):
        return table
    columns = [column for column in table.columns if column.key not in theirs]
    note = "published numbers: there are none that compare with these rows"
    missing = [*table.missing, note] if table.rows.height else table.missing
    return replace(table, columns=columns, rows=table.rows.drop(theirs), missing=missing)


def without_dashes(table: ReportTable) -> ReportTable:
    """Drop the rows of methods that were not run, unless they have a published number.

    Also drop columns that are empty, such as speeds if nothing was timed.
    """
    numbers = [
        pl.col(column.key).is_not_null()
        for column in table.columns
        if column.decimals is not None and column.key in table.rows.columns
    ]
    rows = table.rows.filter(pl.any_horizontal(numbers)) if numbers else table.rows
    columns = [
        column
        for column in table.columns
        if column.subject or rows.is_empty() or rows[column.key].is_not_null().any()
    ]
    return replace(table, rows=rows, columns=columns)


def render_tables(tables: Sequence[ReportTable], kind: TableFormat) -> str:
    """Render all tables into one string."""
    if kind is TableFormat.JSON:
        return visible_json(
            [
                {
                    "name": table.name,
                    "caption": table.caption,
                    "missing": list(table.missing),
                    "rows": [_as_facts(table, row) for row in table.rows.to_dicts()],
                }
                for table in tables
            ]
        )
    write = {
        TableFormat.MARKDOWN: _markdown,
        TableFormat.LATEX: _latex,
        TableFormat.CSV: _csv,
    }[kind]
    return "\n\n".join(write(table) for table in tables)


def _as_facts(table: ReportTable, row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row for JSON: percentages to shares, settings to objects, `_points` in names."""
    percent = {column.key for column in table.columns if column.heading.endswith("%")}
    points = {"drop", *(column.key for column in table.columns if column.points)}
    facts = {}
    for key, value in row.items():
        name = f"{key}_points" if key in points else key
        facts[name] = value / 100 if key in percent and value is not None else value
    if isinstance(facts.get("settings"), str):
        facts["settings"] = json.loads(facts["settings"])
    return facts


def _csv(table: ReportTable) -> str:
    notes = [table.caption, *table.missing]
    return "\n".join(f"# {note}" for note in notes) + "\n" + table.rows.write_csv().rstrip()


def _markdown(table: ReportTable) -> str:
    head = [column.heading for column in table.columns]
    rule = ["---" if table.is_text(column) else "---:" for column in table.columns]
    lines = [f"**{table.caption}**", ""]
    lines += [f"| {' | '.join(cells)} |" for cells in (head, rule)]
    for row in table.rows.iter_rows(named=True):
        cells = []
        for column in table.columns:
            cell = show_cell(row, column).replace("|", r"\|")
            cells.append(f"**{cell} ▼**" if table.marks(row, column) else cell)
        lines.append(f"| {' | '.join(cells)} |")
    if table.legend:
        lines += ["", f"▼ {table.legend}."]
    if table.missing:
        lines += ["", "Missing:", *(f"- {note}" for note in table.missing)]
    return "\n".join(lines)


def _latex(table: ReportTable) -> str:
    places = "".join("l" if table.is_text(column) else "r" for column in table.columns)
    head = " & ".join(_escape(column.heading) for column in table.columns)
    body = []
    for row in table.rows.iter_rows(named=True):
        cells = []
        for column in table.columns:
            cell = show_cell(row, column)
            if column.decimals is not None and cell.startswith("-"):
                cell = f"−{cell[1:]}"  # LaTeX would print a hyphen
            cell = _escape(cell)
            cells.append(rf"\textcolor{{red}}{{{cell}}}" if table.marks(row, column) else cell)
        body.append(" & ".join(cells) + r" \\")
    notes = [f"{table.caption}."]
    notes += [f"Red: {table.legend}."] if table.legend else []
    # Notes on missing results are for the author, so they are comments.
    comments = [f"% needs the packages booktabs{' and xcolor' if table.legend else ''}"]
    comments += [f"% missing: {visible_line(note)}" for note in table.missing]
    return "\n".join(
        [
            *comments,
            r"\begin{table}[ht]",
            r"\centering",
            rf"\begin{{tabular}}{{{places}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_escape(' '.join(notes))}}}",
            rf"\label{{tab:{table.name}}}",
            r"\end{table}",
        ]
    )


def show_cell(row: dict[str, Any], column: Column) -> str:
    """Format a value according to its column."""
    value = row[column.key]
    if value is None or value != value:  # NaN
        return DASH
    if column.decimals is None:
        return visible_line(str(value))
    least = 10.0**-column.decimals
    if column.never_zero and value < least / 2:
        return f"<{least:g}"
    return f"{value:{'+' if column.signed else ''}z.{column.decimals}f}"  # z: no negative zero


def _escape(text: str) -> str:
    """Escape LaTeX's special characters."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {char: f"\\{char}" for char in "&%$#_{}"}
    special |= {"<": "$<$", ">": "$>$", "|": r"\textbar{}"}
    special |= {DASH: "--", "−": "$-$", "×": r"$\times$", "∞": r"$\infty$", "Δ": r"$\Delta$"}
    return "".join(special.get(char, char) for char in text)
