"""One page that shows figures and tables. Built as a tree, so that no text can become markup."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from c4.analysis.tables.render import ReportTable, show_cell
from c4.figures.gallery import FIGURES, Drawing, Format

CSS = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 2rem 0; } img { max-width: 100%; border: 1px solid #ddd; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #eee; }
th:first-child, td:first-child { text-align: left; } .past { color: #b2182b; font-weight: bold; }
.scroll { overflow-x: auto; } .note { color: #666; }
"""


def write_page(
    path: Path, title: str, intro: str, drawings: Sequence[Drawing], tables: Sequence[ReportTable]
) -> None:
    """Write an HTML page beside its figures; links are relative, and nothing is loaded or run.

    Figures that could not be drawn are listed with the commands that produce their data.
    """
    page = Element("html", lang="en")
    head = SubElement(page, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "title").text = title
    SubElement(head, "style").text = CSS
    body = SubElement(page, "body")
    SubElement(body, "h1").text = title
    SubElement(body, "p").text = intro
    for one in drawings:
        _add_figure(body, one, path.parent)
    _add_missing(body, drawings)
    for table in tables:
        _add_table(body, table)
    html = tostring(page, encoding="unicode", method="html")
    path.write_text(f"<!doctype html>\n{html}\n", encoding="utf-8")


def _add_figure(body: Element, drawing: Drawing, folder: Path) -> None:
    figure = SubElement(body, "figure", id=drawing.figure_kind.name)
    SubElement(figure, "h2").text = drawing.figure_kind.name
    SubElement(figure, "p").text = drawing.figure_kind.see
    shown = next((f for f in drawing.files if f.suffix != f".{Format.PDF}"), None)
    if shown is not None:
        source = shown.relative_to(folder).as_posix()
        SubElement(figure, "img", src=source, alt=drawing.figure_kind.see)
    links = SubElement(figure, "p", {"class": "note"})
    for file in (*drawing.files, drawing.data):
        link = SubElement(links, "a", href=file.relative_to(folder).as_posix())
        link.text = file.name
        link.tail = " "


def _add_missing(body: Element, drawings: Sequence[Drawing]) -> None:
    drawn = {one.figure_kind.name for one in drawings}
    for figure_kind in FIGURES.values():
        if figure_kind.name not in drawn:
            line = SubElement(body, "p", {"class": "note"})
            line.text = (
                f"No {figure_kind.name}: there is no data for it; make it with: {figure_kind.needs}"
            )


def _add_table(body: Element, table: ReportTable) -> None:
    SubElement(body, "h2").text = table.name
    SubElement(body, "p").text = f"{table.caption}."
    if not table.is_empty:
        _add_grid(body, table)
    for note in table.missing:
        SubElement(body, "p", {"class": "note"}).text = f"Missing: {note}"


def _add_grid(body: Element, table: ReportTable) -> None:
    grid = SubElement(SubElement(body, "div", {"class": "scroll"}), "table")
    head = SubElement(grid, "tr")
    for column in table.columns:
        SubElement(head, "th").text = column.heading
    for row in table.rows.iter_rows(named=True):
        line = SubElement(grid, "tr")
        for column in table.columns:
            past = {"class": "past"} if table.marks(row, column) else {}
            cell = SubElement(line, "td", past)
            cell.text = show_cell(row, column)
    if table.legend:
        SubElement(body, "p", {"class": "past"}).text = f"Red: {table.legend}."
