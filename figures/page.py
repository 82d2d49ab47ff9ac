"""Write an HTML page of figures and tables, built as a tree so that no text becomes markup."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import polars as pl

from c4.analysis.paper_names import method_label, task_label
from c4.analysis.render import DASH, Column, ReportTable, show_cell
from c4.figures.gallery import FIGURES, Drawing, Format

CSS = """
:root { color-scheme: light dark; --ground: #f5f4f1; --panel: #fff; --ink: #1d2430;
  --quiet: #667080; --rule: #e2e0da; --accent: #0067a3; --alarm: #b2182b; }
@media (prefers-color-scheme: dark) { :root { --ground: #11151b; --panel: #181e26; --ink: #e2e7ed;
  --quiet: #93a0b0; --rule: #2f3844; --accent: #74bbe8; --alarm: #f08a6c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.6 system-ui, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; letter-spacing: -.01em; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 0 0 .25rem; scroll-margin-top: 1rem; }
p { margin: .25rem 0 .75rem; max-width: 48rem; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
nav ul { columns: 13rem; padding: 0; margin: .5rem 0 0; list-style: none; }
nav li { padding: .1rem 0; } nav h2 { font-size: .95rem; }
section, nav { background: var(--panel); border: 1px solid var(--rule); border-radius: 10px;
  padding: 1rem 1.15rem; margin: 1rem 0; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px;
  padding: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums;
  margin: .5rem 0; }
th, td { padding: .25rem .65rem; text-align: right; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; } th.word, td.word { text-align: left; }
tbody tr:hover { background: var(--ground); }
td.past, .past { color: var(--alarm); font-weight: 650; }
.note { color: var(--quiet); font-size: 13px; }
summary { cursor: pointer; color: var(--quiet); font-size: 13px; }
li { overflow-wrap: anywhere; }
.look { border-left: 4px solid var(--accent); } .look .go { font-weight: 600; }
"""
NARROW = "(max-width: 640px)"
"""Media query for which figures of column width are shown."""
DASHES = (
    f"A dash ({DASH}) means that nothing was measured there, and methods of which nothing was "
    "measured have no row. What would measure them is folded away below each table."
)


@dataclass(frozen=True)
class Look:
    """A link into the viewer, with a title and a sentence on what it shows."""

    title: str
    says: str
    link: str
    link_text: str = "Open it in the viewer"


def write_page(
    path: Path,
    title: str,
    intro: str,
    *,
    drawings: Sequence[Drawing] = (),
    tables: Sequence[ReportTable] = (),
    narrow: Sequence[Drawing] = (),
    looks: Sequence[Look] = (),
    unfinished: str | None = None,
) -> None:
    """Write an HTML page next to its figures; it loads nothing external and runs no scripts.

    Figures that could not be drawn are listed with the commands that produce their data.

    Args:
        narrow: the same figures, drawn for a phone.
        unfinished: a note on parts that are still missing; None if the page is complete.
    """
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "title").text = title
    SubElement(head, "style").text = CSS
    main = SubElement(SubElement(html, "body"), "main")
    SubElement(main, "h1").text = title
    SubElement(main, "p").text = intro
    if unfinished:
        SubElement(main, "p", {"class": "past"}).text = unfinished
    nav = SubElement(main, "nav", {"aria-label": "Contents"})
    SubElement(nav, "h2").text = "Contents"
    items = SubElement(nav, "ul")
    drawn = {one.figure_kind.name: title_of(one.figure_kind.name) for one in drawings}
    listed = {f"table-{table.name}": f"Table: {title_of(table.name)}" for table in tables}
    for target, words in (drawn | listed).items():
        SubElement(SubElement(items, "li"), "a", href=f"#{target}").text = words
    for look in looks:
        section = SubElement(main, "section", {"class": "look"})
        SubElement(section, "h2").text = look.title
        SubElement(section, "p").text = look.says
        SubElement(section, "a", {"href": look.link, "class": "go"}).text = look.link_text
    small = {one.figure_kind.name: one for one in narrow}
    for one in drawings:
        _add_figure(main, one, small.get(one.figure_kind.name), path.parent)
    for name, kind in FIGURES.items():
        if name not in drawn and not unfinished:
            line = SubElement(main, "p", {"class": "note"})
            line.text = f"No {name}: there is no data for it; make it with: {kind.needs}"
    if tables:
        SubElement(main, "p", {"class": "note", "id": "tables"}).text = DASHES
    for table in tables:
        _add_table(main, table)
    text = tostring(html, encoding="unicode", method="html")
    path.write_text(f"<!doctype html>\n{text}\n", encoding="utf-8")


def title_of(name: str) -> str:
    """Format the name of a figure or table as a heading."""
    return name.replace("-", " ").capitalize()


def _add_figure(main: Element, drawing: Drawing, narrow: Drawing | None, folder: Path) -> None:
    section = SubElement(main, "section", id=drawing.figure_kind.name)
    SubElement(section, "h2").text = title_of(drawing.figure_kind.name)
    SubElement(section, "p").text = drawing.figure_kind.see
    shown = _picture_of(drawing)
    if shown is not None:
        picture = SubElement(section, "picture")
        small = None if narrow is None else _picture_of(narrow)
        if small is not None:
            source = small.relative_to(folder).as_posix()
            SubElement(picture, "source", media=NARROW, srcset=source)
        source = shown.relative_to(folder).as_posix()
        SubElement(picture, "img", src=source, alt=drawing.figure_kind.see, loading="lazy")
    links = SubElement(section, "p", {"class": "note"})
    for file in (*drawing.files, drawing.data):
        link = SubElement(links, "a", href=file.relative_to(folder).as_posix())
        link.text = file.name
        link.tail = " "


def _picture_of(drawing: Drawing) -> Path | None:
    """File of a figure that a browser can show; None if there is only a PDF."""
    return next((file for file in drawing.files if file.suffix != f".{Format.PDF}"), None)


def _add_table(main: Element, table: ReportTable) -> None:
    section = SubElement(main, "section", id=f"table-{table.name}")
    SubElement(section, "h2").text = f"Table: {title_of(table.name)}"
    SubElement(section, "p").text = f"{table.caption}."
    if not table.is_empty:
        _add_grid(section, table)
    if table.missing:
        folded = SubElement(section, "details")
        words = "What is missing, and how to make it" if table.is_empty else "What the dashes need"
        SubElement(folded, "summary").text = f"{words} ({len(table.missing)})"
        items = SubElement(folded, "ul")
        for note in table.missing:
            SubElement(items, "li", {"class": "note"}).text = note


def _add_grid(section: Element, table: ReportTable) -> None:
    grid = SubElement(SubElement(section, "div", {"class": "scroll"}), "table")
    head = SubElement(SubElement(grid, "thead"), "tr")
    for column in table.columns:
        SubElement(head, "th", {"scope": "col", **_look_of(table, column)}).text = column.heading
    body = SubElement(grid, "tbody")
    for row in measured_rows(table).iter_rows(named=True):
        line = SubElement(body, "tr")
        for column in table.columns:
            past = {"class": "past"} if table.marks(row, column) else _look_of(table, column)
            SubElement(line, "td", past).text = show_cell(row, column)
    if table.legend:
        SubElement(section, "p", {"class": "past"}).text = f"Red: {table.legend}."


def measured_rows(table: ReportTable) -> pl.DataFrame:
    """Return the rows with at least one number; notes list the others as missing."""
    numbers = [column.key for column in table.columns if not table.is_text(column)]
    if not numbers:
        return table.rows
    return table.rows.filter(pl.any_horizontal(pl.col(numbers).is_not_null()))


def _look_of(table: ReportTable, column: Column) -> dict[str, str]:
    """Attributes with the CSS class of a column: text is left-aligned, numbers right-aligned."""
    return {"class": "word"} if table.is_text(column) else {}


def tell_example(texts: pl.DataFrame) -> str | None:
    """Describe the exits on one trajectory in words; None if CVEE does not stop it. See `TEXTS`."""
    exits = texts.unique("method", keep="first", maintain_order=True).to_dicts()
    found = {row["method"]: row for row in exits}
    cvee, full = found.get("cvee"), found.get("baseline")
    if cvee is None or full is None or not cvee["fired"]:
        return None
    worth = {True: "right", False: "wrong", None: "not graded"}
    words = [
        f"{task_label(cvee['task'])}, trajectory {cvee['trajectory']}: CVEE stops at step "
        f"{cvee['step']} of {cvee['budget']} with the answer {_quote(cvee['answer'])}, which is "
        f"{worth[cvee['correct']]}; the full decode answers {_quote(full['answer'])}."
    ]
    words += [
        f"{method_label(name)} stops at step {row['step']} with {_quote(row['answer'])}, which is "
        f"{worth[row['correct']]}."
        for name, row in found.items()
        if name not in ("cvee", "baseline") and row["fired"]
    ]
    return " ".join(words)


def _quote(answer: str | None) -> str:
    """Put an answer on one line of at most 40 characters."""
    line = " ".join((answer or "nothing").split())
    return line if len(line) <= 40 else f"{line[:39]}…"
