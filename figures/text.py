"""The text that each gate would have returned: the buffer at its exit, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Group
from rich.text import Text

from c4.analysis.colours import mark_of
from c4.analysis.notebook_frames import require_columns, require_one_trajectory
from c4.analysis.paper_names import in_order, method_label, model_label, task_label
from c4.analysis.traces import TEXTS
from c4.errors.text import visible
from c4.figures.fit import drawable, shorten, wrapped
from c4.figures.style import (
    ALARM,
    COLUMN,
    INK,
    PAGE,
    QUIET,
    Width,
    draw_apart,
    new_figure,
    styled,
)

MOST_LINES = 30
"""Maximum number of lines shown per buffer; the rest is cut."""
WORDS = 7.5
"""Font size of headings and verdicts, in points."""
LEADING = 10.0
ADVANCE = 4.2
"""Distances between lines and between the letters of a line, in points."""
FILLED = "#e3e3e3"
RIGHT, WRONG = "#0072B2", ALARM
ANSWER_STYLES = {True: "bold white on blue", False: "bold white on red", None: "reverse"}


@dataclass(frozen=True)
class _Piece:
    """The characters of one token on one line."""

    text: str
    line: int
    column: int
    filled: bool
    in_answer: bool


@styled
def text_figure(texts: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw the buffer at every gate's exit, with filled tokens on grey and the answer in a box.

    Columns: model, task, trajectory, method, step, budget, fired, position, piece, filled,
    in_answer, answer, correct, target.
    """
    require_columns(texts, TEXTS)
    require_one_trajectory(texts)
    texts = in_order(texts, "position")
    buffers = {m: rows for (m,), rows in texts.group_by("method", maintain_order=True)}
    inches, letters, most = (COLUMN, 52, 3.2) if width == Width.COLUMN else (PAGE, 112, 5.0)
    laid = {method: _lay_out(rows, letters) for method, rows in buffers.items()}
    heading = wrapped(_heading(texts.row(0, named=True)), most, WORDS)
    heading_at = 2.1 if width == Width.COLUMN else 0.9  # leave room for the key
    room = inches - 0.35
    verdicts = {m: wrapped(_verdict(rows), room, WORDS, "bold") for m, rows in buffers.items()}
    heights = {
        method: len(verdicts[method]) + 2.4 + max((piece.line for piece in pieces), default=0)
        for method, pieces in laid.items()
    }
    top = heading_at + len(heading) + 0.9
    lines = top - 0.3 + sum(heights.values())
    figure = new_figure(inches, lines * LEADING / 72)
    figure.set_layout_engine("none")  # letters are placed on their own grid
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, inches * 72), ylim=(lines * LEADING, 0))
    ax.axis("off")
    _write(ax, heading_at, heading, INK)
    _write_key(ax, 0.9, inches * 72 - 8)
    drawn = draw_apart(list(buffers), shaded=True)
    for method, pieces in laid.items():
        right = buffers[method]["correct"][0]
        mark = drawn[method]
        ax.plot(10, (top - 0.3) * LEADING, mark.marker, color=mark.colour, markersize=5)
        colour = mark_of(method).colour  # a lighter shade is illegible as text
        _write(ax, top, verdicts[method], colour, left=18, bold=True)
        for piece in pieces:
            _draw_piece(ax, piece, top + len(verdicts[method]) + 0.3, right=right)
        top += heights[method]
    return figure


def _heading(row: dict[str, object]) -> str:
    target = shorten(str(row["target"]), 40)
    return (
        f"{task_label(str(row['task']))} on {model_label(str(row['model']))}, trajectory "
        f"{row['trajectory']}; target: {target}"
    )


def _verdict(rows: pl.DataFrame) -> str:
    """Describe in one line where the method stopped and its answer."""
    row = rows.row(0, named=True)
    answer = "no answer" if row["answer"] is None else f"answer {shorten(row['answer'], 36)}"
    verdict = {True: "right", False: "wrong", None: "not graded"}[row["correct"]]
    name = method_label(row["method"])
    if not row["fired"]:
        ending = "runs" if row["method"] == "baseline" else "never stops; runs"
        return f"{name} {ending} to step {row['step']}: {answer} ({verdict})"
    filled = int(rows["filled"].sum())
    return (
        f"{name} stops at step {row['step']} of {row['budget']}: {answer} ({verdict}); "
        f"{filled} of {rows.height} tokens filled by force"
    )


def _lay_out(rows: pl.DataFrame, letters: int) -> list[_Piece]:
    """Break tokens into lines of limited length; if lines are cut, end with a note."""
    pieces = list(_wrap(rows, letters))
    kept = [piece for piece in pieces if piece.line < MOST_LINES]
    if len(kept) < len(pieces):
        cut = 1 + pieces[-1].line - MOST_LINES
        sign = f"… cut here; {cut} more {'line' if cut == 1 else 'lines'}"
        kept.append(_Piece(sign, MOST_LINES, 0, filled=False, in_answer=False))
    return kept


def _wrap(rows: pl.DataFrame, letters: int) -> Iterator[_Piece]:
    """Break tokens into pieces on lines of limited length; keep the text's line breaks."""
    line = column = 0
    for text, filled, in_answer in rows.select("piece", "filled", "in_answer").iter_rows():
        for i, part in enumerate(text.expandtabs(4).split("\n")):
            part = drawable(part)
            if i:
                line, column = line + 1, 0
            if len(part) > letters - column and len(part) <= letters:
                line, column = line + 1, 0
            while part:
                fits = part[: letters - column]
                yield _Piece(fits, line, column, filled, in_answer)
                part = part[len(fits) :]
                column += len(fits)
                if column >= letters:
                    line, column = line + 1, 0


def _draw_piece(ax: Axes, piece: _Piece, top: float, *, right: bool | None) -> None:
    x = 18 + piece.column * ADVANCE
    y = (top + piece.line) * LEADING
    width = len(piece.text) * ADVANCE
    box = (x, y - 0.78 * LEADING)
    if piece.filled:
        ax.add_patch(Rectangle(box, width, LEADING * 0.98, color=FILLED, linewidth=0))
    colour = INK
    if piece.in_answer:
        colour = {True: RIGHT, False: WRONG, None: INK}[right]
        ax.add_patch(
            Rectangle(box, width, LEADING * 0.98, fill=False, edgecolor=colour, linewidth=0.9)
        )
    # Letter by letter, since the advance differs between fonts and the grid is fixed.
    for i, letter in enumerate(piece.text):
        if letter.strip():
            ax.text(
                x + (i + 0.5) * ADVANCE,
                y,
                letter,
                ha="center",
                fontsize=6.5,
                family="monospace",
                color=colour,
                fontweight="bold" if piece.in_answer else "normal",
                parse_math=False,
            )


def _write(
    ax: Axes,
    first: float,
    lines: Sequence[str],
    colour: str,
    *,
    left: float = 8,
    bold: bool = False,
) -> None:
    weight = "bold" if bold else "normal"
    for i, line in enumerate(lines):
        y = (first + i) * LEADING
        ax.text(left, y, line, color=colour, fontweight=weight, parse_math=False)


def _write_key(ax: Axes, line: float, right: float) -> None:
    """Draw the key for grey areas and boxes, aligned to the right edge."""
    y = line * LEADING
    ax.add_patch(Rectangle((right - 128, y - 7), 10, 9, color=FILLED, linewidth=0))
    ax.text(right - 115, y, "filled by force", color=QUIET, fontsize=6.8)
    ax.add_patch(Rectangle((right - 44, y - 7), 10, 9, fill=False, edgecolor=RIGHT, linewidth=0.9))
    ax.text(right - 31, y, "answer", color=QUIET, fontsize=6.8)


def terminal_texts(texts: pl.DataFrame) -> Group:
    """Format the buffers for a terminal, with brackets in addition to colours."""
    require_columns(texts, TEXTS)
    texts = in_order(texts, "position")
    blocks = [Text(visible(_heading(texts.row(0, named=True))))]
    for _, rows in texts.group_by("method", maintain_order=True):
        blocks.append(Text(visible("\n" + _verdict(rows)), style="bold"))
        blocks.append(_buffer(rows))
    key = "\n‹grey›: filled by force; «blue» or «red»: the answer, right or wrong"
    blocks.append(Text(key, style="dim"))
    return Group(*blocks)


def _buffer(rows: pl.DataFrame) -> Text:
    buffer = Text()
    for (answer, filled), run in groupby(
        rows.iter_rows(named=True), key=lambda row: (row["in_answer"], row["filled"])
    ):
        pieces = list(run)
        text = visible("".join(piece["piece"] for piece in pieces).expandtabs(4))
        if filled:
            text = f"‹{text}›"
        style = "black on grey70" if filled else ""
        if answer:
            style = ANSWER_STYLES[pieces[0]["correct"]]
            text = f"«{text}»"
        buffer.append(text, style=style)
    return buffer
