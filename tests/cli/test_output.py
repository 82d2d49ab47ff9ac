"""Whatever others wrote, nothing that c4 prints can steer a terminal."""

import ast
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from c4.cli import output
from c4.cli.output import SafeConsole, VisibleFormatter, complain, say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table
from c4.cli.verify import differences
from c4.errors.text import SHAPELESS, visible, visible_json, visible_line
from c4.replay.verify import Check
from tests.commands import c4

ROOT = Path(__file__).parents[2]
EVIL = "e\x1b[2Jv\x07i\x9b31ml\x7f\u202e\u2066\u200b\u2028\ufeff\r[red]:x:\nerror: forged"
ORDINARY = "γτ – «été» naïve e\u0301 漢字 العربية हिन्दी می\u200cخواهم \ue000 a\u00a0b"
ORDINARY += "👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈"


def hidden(text):
    """What is in a text but cannot be seen; line breaks are meant."""
    return {c for c in text if unicodedata.category(c) in SHAPELESS} - {"\n"}


def test_every_letter_without_a_shape_is_spelled_out():
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if unicodedata.category(letter) in SHAPELESS and letter != "\n":
            assert visible(f"a{letter}b") == f"a{letter.encode('unicode_escape').decode()}b"


def test_ordinary_text_stays_as_it_is():
    assert visible(ORDINARY) == ORDINARY
    assert visible("two\nlines") == "two\nlines"
    assert visible_line("two\nlines") == r"two\nlines"
    assert visible("\u200d漢") == r"\u200d漢"  # nothing to join
    assert visible("a\u200db") == r"a\u200db"


@given(text=st.text())
def test_what_is_visible_stays_visible(text):
    assert not any(
        unicodedata.category(c) in SHAPELESS for c in visible(text) if c not in "\n\u200c\u200d"
    )
    assert visible(visible(text)) == visible(text)
    visible(text).encode()  # no surrogate is left


@given(value=st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_json_is_printable_ascii_and_says_the_same(value):
    text = visible_json(value)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == value


def printed(function, *args, **options):
    """What a function writes to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        function(*args, **options)
    finally:
        sys.stdout, sys.stderr = before
    return out.getvalue(), err.getvalue()


def test_every_way_to_print_is_safe():
    table = new_table(f"head{EVIL}", title=f"title{EVIL}")
    table.add_row(EVIL)
    table.add_row(Text(EVIL))
    for function, value in ((say, EVIL), (complain, EVIL), (show, table), (show, EVIL)):
        for text in printed(function, value):
            assert not hidden(text)
    (out, _) = printed(say_json, {"name": EVIL, "path": Path(EVIL)})
    assert out.isascii()
    assert json.loads(out) == {"name": EVIL, "path": EVIL}


def test_a_cell_is_on_one_line_and_keeps_brackets_and_colons():
    table = new_table("name")
    for name in ("a\nb [red]:x:", "a[/b]"):
        table.add_row(name)
        assert name.replace("\n", r"\n") in printed(show, table)[0]
        with status(f"loading {name}") as note, progress(name, total=1) as advance:
            note(name)
            advance(name)


def test_a_forged_error_is_indented():
    (_, err) = printed(complain, "no folder a\nerror: all is lost")
    assert err == "error: no folder a\n  error: all is lost\n"


def test_colours_on_a_terminal_are_rich_s_own():
    screen = io.StringIO()
    SafeConsole(file=screen, force_terminal=True, width=80, color_system="standard").print(
        Text("a\x1b[2Jb", style="red"), "\x1b[31mplain", {"key": "\x1b[2J"}, highlight=False
    )
    assert "\x1b[31ma\\x1b[2Jb" in screen.getvalue()
    assert r"\x1b[31mplain" in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()


def test_log_messages_are_safe():
    record = logging.LogRecord("c4", logging.WARNING, "", 0, "passed over: %s", (EVIL,), None)
    shown = VisibleFormatter("%(message)s").format(record)
    assert not hidden(shown)
    assert r"e\x1b[2Jv\x07i" in shown


PRINTERS = {"echo", "secho", "print", "print_json", "print_exception"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
WORKERS = {"tasks/sandbox/child.py", "front/templates/child.py", "record/lm_eval/__main__.py"}
"""Programs of their own: c4 reads the output of the first two; the last hands over to lm-eval."""
ROOMS = ("analysis", "decode", "errors", "figures", "gates", "models", "record", "replay", "store")


def prints(node):
    """Whether a piece of code prints by itself."""
    if isinstance(node, ast.Call):
        named = getattr(node.func, "attr", getattr(node.func, "id", None))
        return named in PRINTERS or named == "Console"
    return (
        isinstance(node, ast.Attribute)
        and node.attr in STREAMS
        and getattr(node.value, "id", None) == "sys"
    )


@pytest.mark.parametrize("room", ["cli", "front", "tasks", *ROOMS])
def test_only_one_module_prints(room):
    for path in sorted((ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name not in {"cli/output.py", *WORKERS} and "tiny" not in path.parts:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            lines = [node.lineno for node in ast.walk(tree) if prints(node)]
            assert not lines, f"{name} prints by itself in lines {lines}; use c4.cli.output"


@pytest.fixture(scope="module")
def evil_runs(random_llada, tmp_path_factory):
    """Runs of a model with a hostile name, on rows with hostile words."""
    folder = tmp_path_factory.mktemp("evil")
    model = shutil.copytree(random_llada, folder / EVIL)
    row = {"ID": EVIL, "Body": EVIL, "Question": f"{EVIL}?", "Answer": "3"}
    (folder / f"{EVIL}.jsonl").write_text(f"{json.dumps(row)}\n" * 3)
    options = ["--task", "svamp", "--model", model, "--source", folder / f"{EVIL}.jsonl"]
    options += ["--skip", 0, "--n", 3, "--out", folder / f"runs {EVIL}"]
    for command in (["record"], ["run", "--method", "c4", "--label", EVIL]):
        result = c4(*command, *options)
        assert result.exit_code == 0, result.output
    return folder / f"runs {EVIL}"


COMMANDS = [
    ["runs", "--check"],
    ["replay", "--gate", "cvee"],
    ["report"],
    ["report", "--format", "latex"],
    ["report", "--format", "csv"],
    ["report", "--format", "json"],
    ["figures", "text", "--format", "png"],
    ["calibrate", "--pool", "1"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_hostile_names_and_words_are_only_seen(evil_runs, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    places = ["--runs", evil_runs]
    places += ["--out", f"{EVIL}.out"] if command[0] in ("figures", "calibrate") else []
    plain = c4(*command, *places)
    assert plain.exit_code == 0, plain.output
    assert not hidden(plain.stdout + plain.stderr)
    if "--format" not in command or "json" in command:
        machine = c4(*command, *places, "--json")
        assert machine.stdout.isascii()
        json.loads(machine.stdout)


@pytest.mark.parametrize(
    "args",
    [
        [EVIL],
        [f"--{EVIL}"],
        ["record", "--task", EVIL],
        ["record", "--task", "math", "--model", EVIL],
        ["record", "--task", "math", "--source", EVIL],
        ["record", "--task", "math", "--device", EVIL],
        ["record", "--task", "math", "--dtype", EVIL],
        ["record", "--task", "math", "--n", EVIL],
        ["record", "--task", "math", "--reading", EVIL],
        ["record", "--task", "math", EVIL],
        ["run", "--task", "math", "--method", EVIL],
        ["run", "--task", "math", "--method", "c4", "--set", f"{EVIL}=1"],
        ["run", "--task", "math", "--method", "c4", "--set", f"H={EVIL}"],
        ["run", "--task", "math", "--method", "c4", "--config", EVIL],
        ["replay", "--runs", EVIL],
        ["replay", "--gate", EVIL, "--runs", EVIL],
        ["calibrate", "--gate", EVIL],
        ["calibrate", "--set", EVIL],
        ["report", EVIL],
        ["figures", EVIL],
        ["figures", "--format", EVIL],
        ["grade", EVIL],
        ["runs", "--runs", EVIL],
        ["demo", "--n", EVIL],
        ["models", EVIL],
        ["models", "eval", EVIL],
    ],
    ids=lambda args: " ".join(args).encode("unicode_escape").decode()[:60],
)
def test_errors_repeat_hostile_words_safely(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = c4(*args)
    assert result.exit_code == 2
    assert not hidden(result.stdout + result.stderr)
    assert "\nerror: forged" not in result.stderr


def run(*args, **options):
    command = [sys.executable, "-m", "c4.cli", *args]
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        command, check=False, capture_output=True, env=environment, timeout=120, **options
    )


def test_a_terminal_without_unicode_gets_signs_instead():
    listed = run("tasks", env={"PYTHONIOENCODING": "ascii"})
    assert (listed.returncode, listed.stderr) == (0, b"")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    refused = run("record", "--task", "γ漢", env=plain)
    assert refused.returncode == 2
    assert b"Traceback" not in refused.stderr
    assert b"no task named" in refused.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m c4.cli tasks --json | head -c 0; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True)
    assert done.returncode in (0, 1)  # 0 where the pipe took all before it was closed
    assert done.stderr == b""


@pytest.mark.parametrize("closing", [">&-", "<&- 2>&-"])
def test_closed_streams_are_no_error(closing):
    command = f"{sys.executable} -m c4.cli tasks {closing}"
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "c4.cli", "tasks"]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"the disk is full" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_streams_of_a_test_runner_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    output.open_streams()
    assert output.close_streams() is None


WARNED = """
import logging, sys
from c4.cli.app import configure
configure()
import huggingface_hub.utils.logging as hub  # gives its logger a handler of its own
for _ in range(2):
    hub.get_logger("huggingface_hub.file_download").warning("the hub is far away")
    logging.getLogger("c4.store").warning("a run is passed over")
"""


def test_what_the_hubs_client_warns_of_is_printed_once():
    command = [sys.executable, "-c", WARNED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout + done.stderr).count("the hub is far away") == 1
    assert done.stderr.count("a run is passed over") == 2  # c4's own, as often as it is said


def test_what_verify_finds_is_said_in_words():
    found = [
        ("math", Check(40, "bad.py:Peek", 4, 1, tokens_equal=False, grades_equal=True)),
        ("math", Check(41, "bad.py:Peek,tau=0.8", 4, 4, tokens_equal=False, grades_equal=True)),
        ("math", Check(42, "cvee", 4, 5, tokens_equal=True, grades_equal=False)),
        ("math", Check(43, "cvee", 4, 4, tokens_equal=True, grades_equal=False)),
    ]
    assert list(differences(found)) == [
        "math, trajectory 40, bad.py:Peek: it stops at step 1 in a decode, and at step 4 in the "
        "replay",
        "math, trajectory 41, bad.py:Peek,tau=0.8: its tokens differ, although it stops at step "
        "4 in both",
        "math, trajectory 42, cvee: it stops at step 5 in a decode, and at step 4 in the replay",
        "math, trajectory 43, cvee: its grade differs, although its tokens are the same",
        "bad.py:Peek looks at later steps, or remembers what it was asked before; if it must look "
        "ahead, set needs_future = True in it",
    ]
