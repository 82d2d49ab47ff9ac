"""What Tab offers, in the shells themselves where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4.cli.complete import (
    complete_gate,
    complete_grader,
    complete_method,
    complete_model,
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
    (tmp_path / "my_task.yaml").touch()
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
        (complete_task, "mi", ["mine.py:TASK"]),
        (complete_task, "my", ["my_task.yaml"]),
        (complete_task, "gsm", ["gsm8k", "gsmhard"]),
        (complete_gate, "c", ["cvee", "confidence"]),
        (complete_method, "wino+cv", ["wino+cvee"]),
        (complete_method, "klass", ["klass", "klass+"]),
        (complete_model, "lla", ["llada", "llada-1.5"]),
        (complete_gate, "broken", []),
        (complete_gate, "gone.py:", []),
    ],
)
def test_names_and_objects_of_files_are_offered_and_no_file_is_run(folder, complete, typed, wanted):
    assert complete(typed) == wanted


@pytest.mark.parametrize("typed", ["", "ru", "runs/", "runs/mo", "runs/model=t", RUN])
def test_a_run_is_offered_whatever_part_of_its_folder_is_typed(folder, typed):
    assert run_folders(typed) == [RUN]


def test_of_very_many_files_only_names_are_offered(folder):
    for i in range(30):
        (folder / f"many{i:02}.py").write_text(OWN)
    assert complete_gate("many")[:2] == ["many00.py:", "many01.py:"]
    assert complete_gate("many00.py:B") == ["many00.py:Bold"]


BASH = """
eval "$(c4 --show-completion)"
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _c4_completion c4
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
    "c4 replay --gate proph": "prophet",
    "c4 run --method wino+cv": "wino+cvee",
    "c4 replay --gate mine.py:C": "mine.py:Calm",
    "c4 export runs/model=ti": RUN,
}
"""Command lines, and what completes them."""
BROKEN_BY_BASH = (":", "=")
"""Signs at which bash splits words, so that it completes nothing behind them."""


@pytest.mark.parametrize("line", ASKED)
@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_shells_complete_names_objects_and_runs(folder, shell, line):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    if shell == "bash" and any(sign in line for sign in BROKEN_BY_BASH):
        pytest.skip("bash splits this word")
    wanted = ASKED[line]
    script = {"bash": BASH, "fish": FISH, "zsh": ZSH}[shell].format(line=line)
    file = folder / f"ask.{shell}"
    file.write_text(script)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(folder)}
    done = subprocess.run(
        [shell, file], env=environment, capture_output=True, text=True, check=False
    )
    offered = done.stdout.replace("\\\\:", ":").replace("\\:", ":")
    assert wanted in offered, done.stderr


def test_completion_loads_no_torch():
    facts = {
        "_C4_COMPLETE": "complete_bash",
        "COMP_WORDS": "c4 replay --gate prop",
        "COMP_CWORD": "3",
    }
    code = "import sys, c4.cli.app as a\ntry: a.app(prog_name='c4')\n"
    code += "finally: print('torch' in sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=os.environ | facts, capture_output=True, text=True, check=False
    )
    assert "prophet" in done.stdout, done.stderr
    assert done.stderr.strip().endswith("False")
