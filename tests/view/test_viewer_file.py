"""The page in one file, and the command that writes it."""

import base64
import hashlib
import json
import re
import shlex

import pytest
from decodes import SHAPES, TARGETS, TEXTS, write_run
from viewing import recordings, viewer  # noqa: F401 - fixtures

from c4.cli.view import tunnel_advice
from c4.store.runs import open_run
from c4.tasks import TASKS, Shape, find_task
from c4.view import Viewer, show
from c4.view.menu import GateMenu
from c4.view.page import bundle_modules, choose_trajectories, make_page, read_static, static_names
from c4.view.trajectory import replay_command
from tests.commands import c4, refused

FOREIGN = re.compile(r"https?://(?!www\.w3\.org/2000/svg)")


def test_the_script_is_whole_and_its_hash_is_allowed(viewer):
    page = make_page(viewer, choose_trajectories(viewer, [40], None))
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    style = page.partition("<style>")[2].partition("</style>")[0]
    for source in (script, style):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"sha256-{digest}" in page
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert not FOREIGN.search(page)
    for name in static_names():
        if name.endswith(".js"):
            assert f'c4Modules["{name}"] = ' in script


def test_the_page_never_parses_text_as_markup():
    source = bundle_modules() + read_static("index.html")[0]
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
    ):
        assert way not in source


def test_no_text_leaves_its_place(tmp_path):
    evil = "</script><script>alert(1)</script>"
    write_run(tmp_path, "gsm8k", [1], prompt=evil, model="m<b>")
    viewer = Viewer(tmp_path)
    page = make_page(viewer, [(key, 1) for key in viewer.runs])
    assert evil not in page
    assert page.count("</script>") == 2  # the data's and the script's own


def test_a_trajectory_of_72_by_72_stays_small(tmp_path):
    shape = Shape(length=72, budget=72, block_length=9)
    write_run(tmp_path, "gsm8k", [1], shape=shape)
    target = tmp_path / "one.html"
    result = c4("view", tmp_path, "--html", target, "--trajectory", 1)
    assert result.exit_code == 0, result.output
    assert target.stat().st_size <= 400_000


def test_the_command_writes_what_was_asked_for(recordings, tmp_path):
    target = tmp_path / "some.html"
    result = c4("view", recordings, "--html", target, "--task", "mmlu", "--n", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{target}: 2 trajectories")
    data = (
        target.read_text(encoding="utf-8").partition('id="c4-data">')[2].partition("</script>")[0]
    )
    assert [row["t"] for row in json.loads(data)["rows"]] == [40, 41]


def test_a_page_is_replaced_whole(recordings, tmp_path):
    target = tmp_path / "some.html"
    target.write_text("the old page", encoding="utf-8")
    with target.open(encoding="utf-8") as old:
        assert c4("view", recordings, "--html", target, "--n", 1).exit_code == 0
        assert old.read() == "the old page"
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_copied_command_names_a_task_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "my_task.py").write_text(
        "from dataclasses import replace\nfrom c4.tasks import TASKS\n"
        "TASK = replace(TASKS['gsm8k'], name='sums_seen')\n",
        encoding="utf-8",
    )
    typed = "own/my_task.py:TASK"
    monkeypatch.setitem(TASKS, "sums_seen", find_task(typed))  # to be written; no command knows it
    for table in (SHAPES, TEXTS, TARGETS):
        monkeypatch.setitem(table, "sums_seen", table["gsm8k"])
    write_run(tmp_path / "runs", "sums_seen", [1, 2])
    monkeypatch.delitem(TASKS, "sums_seen")
    (cache,) = Viewer("runs", tasks=[typed]).runs.values()
    command = shlex.split(replay_command(cache, GateMenu(), {}))
    assert command[:2] == ["c4", "replay"]
    assert command[command.index("--task") + 1] == typed
    result = c4(*command[1:])
    assert result.exit_code == 0, result.output
    page = c4("view", "runs", "--task", typed, "--html", "page.html")
    assert page.exit_code == 0, page.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--trajectory", 3], "give --html FILE too"),
        (["--html", "x.html", "--trajectory", 999], "has trajectory 999"),
        (["--html", "/dev/null/x.html"], "/dev/null is not a folder"),
        (["--html", "x.html", "--task", "svamp"], "nothing below"),
        (["--html", "x.html", "--gate", "no-such"], "no gate named"),
        (["--task", "gsm9k"], "did you mean gsm8k"),
    ],
)
def test_what_cannot_be_is_refused_in_words(recordings, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused("view", recordings, *words)
    assert not list(tmp_path.iterdir())


def test_without_its_extra_serving_says_what_to_install(recordings, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "c4.view.server", None)
    assert "pip install 'c4-dlm[view]'" in refused("view", recordings, "--no-browser")


def test_a_busy_port_is_said(recordings):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = c4("view", recordings, "--port", taken.getsockname()[1], "--no-browser")
    assert result.exit_code == 2
    assert "give another --port" in result.stderr


def test_a_remote_shell_is_told_of_the_tunnel(monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.2 50000 10.0.0.9 22")
    monkeypatch.setenv("USER", "ann")
    assert tunnel_advice(8044).endswith("ssh -L 8044:127.0.0.1:8044 ann@10.0.0.9")


def test_a_notebook_shows_the_page_behind_glass(recordings):
    folder = recordings / "model=made" / "task=mmlu" / "method=baseline"
    for given in (folder, open_run(folder)):
        shown = show(given, 41)._repr_html_()
        assert shown.startswith('<iframe srcdoc="')
        assert 'sandbox="allow-scripts"' in shown
    assert show(folder, n=2).page.count("#4") >= 2
