"""The demonstration, small: every step runs, the page shows every figure, nothing is redone."""

import json
import re
from pathlib import Path

import pytest

from c4.cli import demo as module
from c4.errors import SandboxError
from c4.figures import FIGURES
from tests.commands import c4


def test_its_steps_are_commands_of_their_own(tmp_path):
    commands = module.demo_commands(tmp_path, ["mmlu", "gsm8k", "svamp"], 3, 2)
    assert [command[0] for command in commands] == [
        *["record"] * 7,
        "replay",
        "calibrate",
        *["run"] * 3,
        "report",
    ]


def test_where_programs_cannot_be_isolated_it_has_no_code_task(monkeypatch, capsys):
    def refuse(*_, **__):
        raise SandboxError("no isolation here")

    monkeypatch.setattr("c4.tasks.grading.check_can_grade", refuse)
    assert module.find_code_task() is None
    assert "no code task in this demo: no isolation here" in capsys.readouterr().err


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("c4.cli.demo.TIMED", ("baseline",))
        patch.setattr("c4.cli.demo.FORMATS", ("png",))
        # Other tests hold that long decodes, three tasks and the pictures themselves are right.
        patch.setattr("c4.cli.demo.SWEPT", "mmlu")
        patch.setattr("c4.cli.demo.find_code_task", lambda: "mmlu")
        patch.setattr("c4.replay.pools.POOL_TASKS", ("mmlu",))
        patch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Path(path).touch())
        result = c4("demo", "--n", 1, "--pool", 1, "--out", out)
        assert result.exit_code == 0, result.output
        yield out, result


def test_the_page_shows_every_figure_and_runs_nothing(demo):
    out, _ = demo
    page = (out / "index.html").read_text(encoding="utf-8")
    images = re.findall(r'<img src="([^"]+)"', page)
    assert images == [f"figures/{name}.png" for name in FIGURES]
    small = re.findall(r'srcset="([^"]+)"', page)
    assert small == [f"figures/phone/{name}.png" for name in FIGURES]
    assert "there is no data for it" not in page
    links = [link for link in re.findall(r'href="([^"]+)"', page) if not link.startswith("#")]
    for target in [*images, *small, *links]:
        assert (out / target.partition("#")[0]).is_file(), target
    assert "view.html#run=model%3Dtiny" in page
    speed = re.search(r'id="table-main".*?</table>', page, re.DOTALL)[0]
    assert re.search(r"<td>1\.0+</td>", speed)  # the baseline's speedup over itself
    assert "<script" not in page
    assert "http" not in page


def test_it_says_what_it_does_and_where_to_look(demo):
    out, result = demo
    for name in ("record", "replay", "calibrate", "run", "report", "bench", "view"):
        assert f"$ c4 {name}" in result.stderr
    assert f"open {out / 'index.html'}" in result.stdout
    assert "the first figures: open" in result.stderr


def test_a_second_call_decodes_nothing_again(demo, monkeypatch):
    out, _ = demo
    for drawing in ("draw_first", "draw_everything"):  # which the first call has shown to work
        monkeypatch.setattr(f"c4.cli.demo.{drawing}", lambda out, page: None)
    kept = [p for p in out.rglob("*.parquet") if p.parent.name != "signals"]
    before = {path: path.stat().st_mtime_ns for path in kept}
    result = c4("demo", "--n", 1, "--pool", 1, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["out"] == str(out / "index.html")
    assert {path: path.stat().st_mtime_ns for path in kept} == before
    assert "$ c4 bench" not in result.stderr  # nor timed
