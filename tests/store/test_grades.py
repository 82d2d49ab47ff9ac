"""Grades that are added beside a run: of several, the one with the highest number counts."""

import os
from dataclasses import asdict

import pyarrow as pa
import pytest
from made import make_manifest, make_row, snapshot, write

from c4.store.grades import GRADES
from c4.store.parts import list_parts, write_part
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Ending, Grade, Grader, ReadingStyle, Verdict

CAREFUL = AnswerReading(ReadingStyle.CAREFUL, Ending.CUT)
PLAIN = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)
ALGEBRA = AnswerReading(grader=Grader.MATH_VERIFY)


@pytest.fixture(params=[True, False], ids=["cells", "rows alone"])
def whole(request, tmp_path):
    write(tmp_path / "whole", manifest=make_manifest(request.param))
    return tmp_path / "whole"


def add(folder, reading=CAREFUL, **grades):
    """Grade some rows, each with an answer and a verdict: `add(folder, r1="7 right")`."""
    given = {}
    for row, text in grades.items():
        answer, _, verdict = text.partition(" ")
        given[int(row[1:])] = Grade(answer, Verdict(verdict))
    with RunWriter(folder) as writer:
        writer.go_on(open_run(folder).manifest)
        writer.add_grades(given, reading)


def answers(folder, reading=None):
    return {row.trajectory: (row.answer, row.correct) for row in open_run(folder, reading).rows()}


def test_grades_are_added_and_the_last_counts(whole):
    before = snapshot(whole)
    add(whole, r1="8 wrong", r2="9 right")
    add(whole, r1="7 right")
    after = snapshot(whole)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2
    graded = answers(whole)
    assert graded[1] == ("7", True)
    assert graded[2] == ("9", True)
    assert graded[0] == (make_row(0).answer, make_row(0).correct)


@pytest.mark.parametrize("later", ["r0", "r2"], ids=["listed before", "listed behind"])
@pytest.mark.parametrize("age", [-1000, 1000], ids=["older by the clock", "newer by the clock"])
def test_the_higher_number_counts_whatever_the_clock_and_the_names_say(whole, later, age):
    add(whole, r1="8 wrong", **{"r0" if later == "r2" else "r2": "5 wrong"})
    (first,) = list_parts(whole / "grades")
    add(whole, r1="7 right", **{later: "6 right"})
    (second,) = set(list_parts(whole / "grades")) - {first}
    assert (second < first) == (later == "r0")
    when = first.path.stat().st_mtime + age
    os.utime(second.path, (when, when))
    assert answers(whole)[1] == ("7", True)


def write_grade(folder, answer, number):
    """A grade of row 1 under a number of one's own, by another version of c4."""
    run = open_run(folder)
    row = {"trajectory": 1, **asdict(Grade(answer, Verdict.RIGHT)), **asdict(CAREFUL)}
    table = pa.Table.from_pylist([row | {"version": "9.9", "number": number}], schema=GRADES)
    write_part(folder / "grades", table, [1], run.manifest)


def test_numbers_go_on_from_the_highest_there_is(whole):
    write_grade(whole, "40", number=40)
    write_grade(whole, "12", number=12)
    assert answers(whole)[1] == ("40", True)
    add(whole, r1="41 wrong")
    assert answers(whole)[1] == ("41", False)
    write_grade(whole, "42", number=42)
    assert answers(whole)[1] == ("42", True)


def test_every_reading_has_its_own_last_grade(whole):
    add(whole, PLAIN, r1="8 wrong", r2="9 right")
    add(whole, CAREFUL, r1="7 right")
    add(whole, PLAIN, r1="6 right")
    plain = {row.trajectory: row for row in open_run(whole, PLAIN).rows()}
    careful = {row.trajectory: row for row in open_run(whole, CAREFUL).rows()}
    assert [plain[i].answer for i in (1, 2)] == ["6", "9"]
    assert careful[1].answer == "7"
    for rows, reading in ((plain, PLAIN), (careful, CAREFUL)):
        assert (rows[1].style, rows[1].ending) == (reading.style, reading.ending)
    assert (plain[0].answer, plain[0].correct) == (None, None)
    assert plain[0].graded_otherwise  # its own grade is under the default reading
    assert not plain[0].never_graded


def test_every_grader_has_its_own_last_grade(whole):
    own = answers(whole)[1]
    add(whole, ALGEBRA, r1="1/2 right")
    assert answers(whole)[1] == own
    assert answers(whole, ALGEBRA)[1] == ("1/2", True)
    rows = list(open_run(whole, ALGEBRA).rows())
    assert [row.trajectory for row in rows if row.graded_otherwise] == [0, 2, 3, 4]


def test_what_the_machine_failed_at_counts_as_ungraded_until_somebody_graded_it(whole):
    add(whole, PLAIN, r1="7 not gradable")
    (row,) = (row for row in open_run(whole, PLAIN).rows() if row.trajectory == 1)
    assert (row.verdict, row.correct) == (Verdict.NOT_GRADABLE, None)
    assert not row.graded_otherwise
    add(whole, PLAIN, r1="8 wrong")
    add(whole, PLAIN, r1="7 not gradable")
    assert answers(whole, PLAIN)[1] == ("8", False)


def test_two_graders_with_the_same_number_are_read_alike_whatever_the_order(tmp_path):
    """Two machines that grade at once: every reader takes the same of the two."""
    seen = set()
    for order in (["first", "second"], ["second", "first"]):
        folder = tmp_path / order[0]
        write(folder)
        for answer in order:
            write_grade(folder, answer, number=5)
        seen.add(answers(folder)[1])
    assert len(seen) == 1
