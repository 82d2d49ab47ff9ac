"""What each gate would have handed over: the decoded buffer at its exit, token by token."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Group
from rich.text import Text

from c4.analysis import in_order, method_label, model_label, task_label
from c4.figures._style import (
    ALARM,
    INK,
    PAGE,
    QUIET,
    drawable,
    mark_of,
    new_figure,
    shorten,
    styled,
)

LETTERS = 112
"""Characters to a line."""
MOST_LINES = 30
"""Lines of one buffer; the rest is cut."""
LEADING = 10.0
ADVANCE = 4.2
"""Points between lines, and between the letters of a line."""
FILLED = "#e3e3e3"
RIGHT, WRONG = "#0072B2", ALARM
ANSWER_STYLES = {True: "bold white on blue", False: "bold white on red", None: "reverse"}


@dataclass(frozen=True)
class _Piece:
    """Letters of one token on one line."""

    text: str
    line: int
    column: int
    filled: bool
    in_answer: bool


@styled
def text_figure(texts: pl.DataFrame) -> Figure:
    """The buffer at every gate's exit; filled tokens on grey, the answer in a box.

    Columns: model, task, trajectory, method, step, budget, fired, position, piece, filled,
    in_answer, answer, correct, target.
    """
    texts = in_order(texts, "position")
    buffers = {m: rows for (m,), rows in texts.group_by("method", maintain_order=True)}
    laid = {method: _lay_out(rows) for method, rows in buffers.items()}
    heights = {m: 1 + max((p.line for p in pieces), default=0) for m, pieces in laid.items()}
    lines = 2.5 + sum(height + 2.4 for height in heights.values())
    figure = new_figure(PAGE, lines * LEADING / 72)
    figure.set_layout_engine("none")  # letters stand on a grid of their own
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, PAGE * 72), ylim=(lines * LEADING, 0))
    ax.axis("off")
    first = texts.row(0, named=True)
    _write(ax, 0.9, drawable(_heading(first)), INK)
    _write_key(ax, 0.9)
    top = 2.8
    for method, pieces in laid.items():
        row = buffers[method].row(0, named=True)
        colour = mark_of(method).colour
        ax.plot(10, (top - 0.3) * LEADING, mark_of(method).marker, color=colour, markersize=5)
        _write(ax, top, drawable(_verdict(buffers[method])), colour, left=18, bold=True)
        for piece in pieces:
            _draw_piece(ax, piece, top + 1.3, right=row["correct"])
        top += heights[method] + 2.4
    return figure


def _heading(row: dict[str, object]) -> str:
    target = shorten(str(row["target"]), 40)
    return (
        f"{task_label(str(row['task']))} on {model_label(str(row['model']))}, trajectory "
        f"{row['trajectory']}; target: {target}"
    )


def _verdict(rows: pl.DataFrame) -> str:
    """What the method did, in a line."""
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


def _lay_out(rows: pl.DataFrame) -> list[_Piece]:
    """The tokens' letters, wrapped; what is cut leaves a sign."""
    pieces = list(_wrap(rows))
    kept = [piece for piece in pieces if piece.line < MOST_LINES]
    if len(kept) < len(pieces):
        cut = 1 + pieces[-1].line - MOST_LINES
        sign = f"… cut here; {cut} more {'line' if cut == 1 else 'lines'}"
        kept.append(_Piece(sign, MOST_LINES, 0, filled=False, in_answer=False))
    return kept


def _wrap(rows: pl.DataFrame) -> Iterator[_Piece]:
    """All of them; line breaks of the text are kept."""
    line = column = 0
    for text, filled, in_answer in rows.select("piece", "filled", "in_answer").iter_rows():
        for i, part in enumerate(text.expandtabs(4).split("\n")):
            part = drawable(part)
            if i:
                line, column = line + 1, 0
            if len(part) > LETTERS - column and len(part) <= LETTERS:
                line, column = line + 1, 0
            while part:
                fits = part[: LETTERS - column]
                yield _Piece(fits, line, column, filled, in_answer)
                part = part[len(fits) :]
                column += len(fits)
                if column >= LETTERS:
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
    # Letter by letter: fonts differ in their advance, the grid must not.
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
    ax: Axes, line: float, text: str, colour: str, *, left: float = 8, bold: bool = False
) -> None:
    weight = "bold" if bold else "normal"
    ax.text(left, line * LEADING, text, color=colour, fontweight=weight, parse_math=False)


def _write_key(ax: Axes, line: float) -> None:
    """What grey and boxes mean, at the right of the first line."""
    right, y = PAGE * 72 - 8, line * LEADING
    ax.add_patch(Rectangle((right - 128, y - 7), 10, 9, color=FILLED, linewidth=0))
    ax.text(right - 115, y, "filled by force", color=QUIET, fontsize=6.8)
    ax.add_patch(Rectangle((right - 44, y - 7), 10, 9, fill=False, edgecolor=RIGHT, linewidth=0.9))
    ax.text(right - 31, y, "answer", color=QUIET, fontsize=6.8)


def terminal_texts(texts: pl.DataFrame) -> Group:
    """The same for a terminal; signs say what colours say, for those who cannot see them."""
    texts = in_order(texts, "position")
    blocks = [Text(_heading(texts.row(0, named=True)))]
    for _, rows in texts.group_by("method", maintain_order=True):
        blocks.append(Text("\n" + _verdict(rows), style="bold"))
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
        text = "".join(piece["piece"] for piece in pieces)
        if filled:
            text = f"‹{text}›"
        style = "black on grey70" if filled else ""
        if answer:
            style = ANSWER_STYLES[pieces[0]["correct"]]
            text = f"«{text}»"
        buffer.append(text, style=style)
    return buffer
