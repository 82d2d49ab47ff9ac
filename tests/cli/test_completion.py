"""What Tab offers, in the shells themselves where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4.cli.bash import inserted_already, join_words
from c4.cli.complete import (
    complete_gate,
    complete_grader,
    complete_method,
    complete_task,
    run_folders,
)

OWN = """
from dataclasses import dataclass
raise AssertionError("completion ran a file")
class Calm: pass
class Bold: pass
def near(answer, target): return True
TASK: object = None
_hidden = Calm
"""
RUN = "runs/model=tiny/task=mmlu/method=baseline"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with code of a user's own, which fails if it is run, and a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("class (")
    (tmp_path / RUN).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("complete", "typed", "wanted"),
    [
        (complete_gate, "mi", ["mine.py:Calm", "mine.py:Bold", "mine.py:TASK"]),
        (complete_gate, "mine.py:C", ["mine.py:Calm"]),
        (complete_method, "wino+mine.py:B", ["wino+mine.py:Bold"]),
        (complete_grader, "mine.py:n", ["mine.py:near"]),
        (complete_task, "mine", ["mine.py:TASK"]),
        (complete_gate, "broken", []),
        (complete_gate, "gone.py:", []),
    ],
)
def test_objects_of_files_are_offered_and_no_file_is_run(folder, complete, typed, wanted):
    assert complete(typed) == wanted


@pytest.mark.parametrize("typed", ["", "ru", "runs/", "runs/mo", "runs/model=t", RUN])
def test_a_run_is_offered_whatever_part_of_its_folder_is_typed(folder, typed):
    assert run_folders(typed) == [RUN]


def test_of_very_many_files_only_names_are_offered(folder):
    for i in range(30):
        (folder / f"many{i:02}.py").write_text(OWN)
    assert complete_gate("many")[:2] == ["many00.py:", "many01.py:"]
    assert complete_gate("many00.py:B") == ["many00.py:Bold"]


@pytest.mark.parametrize(
    ("broken", "place", "whole", "at"),
    [
        (["c4", "runs"], 1, ["c4", "runs"], 1),
        (["c4", "grade", "runs/model", "=", "ti"], 4, ["c4", "grade", "runs/model=ti"], 2),
        (["c4", "x", "--gate", "a.py", ":"], 4, ["c4", "x", "--gate", "a.py:"], 3),
        (["c4", "x", "--gate", "=", "a.py", ":", "C"], 6, ["c4", "x", "--gate=a.py:C"], 2),
        (["c4", "x", "--gate", ""], 3, ["c4", "x", "--gate", ""], 3),
        (["c4", "x", "--set", "tau", "=", "1", "--gate", "p"], 7,
         ["c4", "x", "--set", "tau=1", "--gate", "p"], 5),
    ],
)  # fmt: skip
def test_words_that_bash_breaks_are_put_together(broken, place, whole, at):
    assert join_words(broken, place) == (whole, at)


@pytest.mark.parametrize(
    ("typed", "there"),
    [
        ("pro", ""),
        ("a.py:C", "a.py:"),
        ("--gate=a.py:", "a.py:"),
        ("--gate", ""),
        ("a=b=c", "a=b="),
    ],
)
def test_what_bash_has_already_is_not_inserted_again(typed, there):
    assert inserted_already(typed) == there


BASH = """
eval "$(c4 --show-completion)"
COMP_WORDS=({broken}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _c4_completion c4
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """c4 --show-completion | source
complete -C "{line}"
"""
ZSH = """
autoload -Uz compinit; compinit -u -d .zcompdump
eval "$(c4 --show-completion)"
_arguments() {{ print -rl -- $@ }}
words=({line}); CURRENT=$#words; _c4_completion
"""
ASKED = {
    "c4 replay --gate proph": ("c4 replay --gate proph", "prophet"),
    "c4 run --method wino+cv": ("c4 run --method wino+cv", "wino+cvee"),
    "c4 replay --gate mine.py:C": ("c4 replay --gate mine.py : C", "mine.py:Calm"),
    "c4 export runs/model=ti": ("c4 export runs/model = ti", RUN),
}
"""Command lines, how bash breaks them, and what completes them."""


@pytest.mark.parametrize("line", ASKED)
@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_shells_complete_names_objects_and_runs(folder, shell, line):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    broken, wanted = ASKED[line]
    script = {"bash": BASH, "fish": FISH, "zsh": ZSH}[shell].format(line=line, broken=broken)
    file = folder / f"ask.{shell}"
    file.write_text(script)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(folder)}
    done = subprocess.run(
        [shell, file], env=environment, capture_output=True, text=True, check=False
    )
    offered = done.stdout.replace("\\\\:", ":").replace("\\:", ":")
    if shell == "bash":  # inserts what follows the last break
        wanted = wanted.removeprefix(inserted_already(line.split()[-1]))
        assert offered.split() == [wanted], done.stderr
    assert wanted in offered, done.stderr
