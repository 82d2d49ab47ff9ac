"""The page: text stays text, links stay inside the folder."""

from html.parser import HTMLParser

import polars as pl
import pytest
from frames import make_phases

from c4.analysis import Library
from c4.analysis.render import Column, ReportTable
from c4.figures import FIGURES, draw_figure, phase_diagram
from c4.figures.gallery import FigureKind, Format, choose_figures
from c4.figures.page import Look, tell_example, write_page

NASTY = "<script>alert('x')</script> & \"more\""


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def written(folder, **shown):
    """A page with a title and an introduction, written and read."""
    write_page(folder / "index.html", **{"title": "t", "intro": "i"} | shown)
    page = Tags()
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    return page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def drawings(folder):
    phases = make_phases(["tiny"], ["math"], 3)
    figure_kind = FigureKind(
        "phase-diagram", lambda library: phases, phase_diagram, NASTY, "c4 record"
    )
    return draw_figure(figure_kind, Library(folder), folder / "figures", [Format.PNG])


def test_text_never_becomes_markup(drawings, folder):
    rows = pl.DataFrame({"task": [NASTY], "accuracy": [1.0], "past": [False]})
    columns = [Column("task", NASTY), Column("accuracy", "accuracy", 1)]
    table = ReportTable("t", NASTY, columns, rows, [NASTY], "accuracy")
    look = Look(NASTY, NASTY, "view.html#t=1", NASTY)
    given = {"drawings": [drawings], "tables": [table], "looks": [look]}
    page = written(folder, title=NASTY, intro=NASTY, **given)
    assert "script" not in {tag for tag, _ in page.tags}
    # title, heading, introduction, three of the look, figure, caption, column, cell, missing
    assert page.text.count(NASTY) == 11
    (image,) = [attrs for tag, attrs in page.tags if tag == "img"]
    assert image == {"src": "figures/phase-diagram.png", "alt": NASTY, "loading": "lazy"}


def test_a_mark_has_its_meaning_beside_it_and_an_empty_table_says_what_is_missing(tmp_path):
    rows = pl.DataFrame({"difference": [-5.0, 1.0], "past": [True, False]})
    columns = [Column("difference", "Δ", 1, signed=True)]
    full = ReportTable("full", "Full", columns, rows, (), "difference")
    empty = ReportTable("empty", "Empty", columns, rows.clear(), ["all of it"], "difference")
    page = written(tmp_path, tables=[full, empty])
    marked = [tag for tag, attrs in page.tags if attrs.get("class") == "past"]
    assert marked == ["td", "p"]
    assert "a drop of more than 2.0 points" in page.text
    assert "What is missing, and how to make it (1)" in page.text
    assert "all of it" in page.text
    assert page.text.count("A dash (–) means") == 1
    assert [tag for tag, _ in page.tags].count("table") == 1


def test_words_stand_left_and_numbers_right_and_contents_lead_to_all_of_it(drawings, folder):
    rows = {"task": ["math", "never run"], "accuracy": [1.0, None], "past": [False, False]}
    columns = [Column("task", "task"), Column("accuracy", "accuracy", 1)]
    table = ReportTable("main", "All", columns, pl.DataFrame(rows))
    page = written(folder, drawings=[drawings], narrow=[drawings], tables=[table])
    assert "never run" not in page.text
    cells = [attrs.get("class") for tag, attrs in page.tags if tag in ("th", "td")]
    assert cells == ["word", None, "word", None]
    targets = {attrs["href"] for tag, attrs in page.tags if tag == "a" and "#" in attrs["href"]}
    ids = {f"#{attrs['id']}" for _, attrs in page.tags if "id" in attrs}
    assert targets == {"#phase-diagram", "#table-main"}
    assert targets <= ids
    assert [attrs["media"] for tag, attrs in page.tags if tag == "source"] == ["(max-width: 640px)"]


def test_an_example_is_told_only_if_cvee_stops_it():
    shared = {"task": "math", "trajectory": 7, "budget": 9, "position": 0}
    rows = [
        {"method": "baseline", "step": 9, "fired": False, "answer": "4", "correct": True},
        {"method": "cvee", "step": 5, "fired": True, "answer": "4", "correct": True},
        {"method": "sched", "step": 2, "fired": True, "answer": None, "correct": False},
    ]
    told = tell_example(pl.DataFrame([shared | row for row in rows]))
    assert told == (
        "MATH, trajectory 7: CVEE stops at step 5 of 9 with the answer 4, which is right; the full "
        "decode answers 4. SchED stops at step 2 with nothing, which is wrong."
    )
    assert tell_example(pl.DataFrame([shared | row for row in rows[:1]])) is None


def test_figures_that_could_not_be_drawn_are_listed_with_what_they_need(drawings, folder):
    page = written(folder, drawings=[drawings])
    for name, figure_kind in FIGURES.items():
        listed = (
            f"No {name}: there is no data for it; make it with: {figure_kind.needs}" in page.text
        )
        assert listed == (name != "phase-diagram")


def test_a_figure_comes_with_the_data_it_was_drawn_from(drawings):
    data = pl.read_csv(drawings.data)
    assert data.height == drawings.frame.height
    assert data.columns == drawings.frame.columns


def test_nothing_is_written_where_there_is_nothing_to_draw(tmp_path):
    library = Library(tmp_path / "nowhere")
    for figure_kind in FIGURES.values():
        assert draw_figure(figure_kind, library, tmp_path / "out", [Format.PNG]) is None, (
            figure_kind.name
        )
    assert not (tmp_path / "out").exists()


def test_every_figure_says_what_to_see_and_what_makes_its_data():
    assert [x.name for x in choose_figures(["all"])] == list(FIGURES)
    for figure_kind in FIGURES.values():
        assert figure_kind.see.endswith(".")
        assert figure_kind.needs.startswith("c4 ")
