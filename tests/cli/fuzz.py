"""Hostile command lines, and what is wrong with how c4 ends them.

Command lines are made from the commands' own options, so an option that is added tomorrow is tried
tomorrow. They run over good and damaged runs. A finding is an exit code other than 0 or 2, a
traceback, memory that runs out, a control character in the output, an error number of the system,
an error without a word, or JSON that no machine can read.
"""

import contextlib
import json
import random
import shlex
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from typer.main import get_command

from c4.cli.app import app
from tests.commands import c4

EXIT_CODES = {0, 2}
"""Nobody interrupts these commands or goes away from their output, so 1 and 130 are wrong."""
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

EVIL = "e\x1b[2Jv\u202ei\x9bl\x07\x7f\u200b"
SHELL = ["", " ", "-", "--", "---", ".", "..", "~", "~nobody-here", "%s", "{}", "{0.__class__}"]
SHELL += ["$(id)", "`id`", "';--", "*", "?", "[red]", "[/red]", ":x:", "\\", "a\\nb"]
CONTROLS = [EVIL, "\t", "\r\n", "a\nb", "\0", "a\0b", "\udcff", "\ud800", "\U0010ffff", "\ufffe"]
CONTROLS += ["👩\u200d👧", "e\u0301", "عربي", "x" * 300, "x" * 100_000]
NUMBERS = ["0", "-1", "1", "2", "1.5", "-0.0", "1e400", "-1e400", "nan", "inf", "-inf", "1e-400"]
NUMBERS += ["0x10", "1_000", "１２", "٣", "½", "true", "null", "None", "9" * 5000]
NUMBERS += [str(2**15), str(2**31), str(2**63), str(10**30)]
PATHS = [
    "/dev/null",
    "/dev/full",
    "/dev/zero",
    "/proc/nothing",
    "file:///etc/passwd",
    "http://[::1",
]
ELSEWHERE = ["/", "/proc/self/mem", "../" * 50 + "etc/passwd", "/root/../etc/shadow"]
"""Paths that nothing may be written to, were it by mistake."""
MODULES = [":", ":b", "a:", "..:x", ".x:y", "a:b:c", "os:system", "sys:exit", "os:_exit()"]
SETTINGS = ["=", "=1", "tau", "tau=", "tau=nan", "tau=inf", "tau=1e400", "tau=-1", "tau=0:1:0"]
SETTINGS += ["tau=a:b:c", "tau=0:1:1e-9", "tau=0:inf:1", "tau=,", "tau=0.5,0.5", "p_min=0:9e99:1"]
SETTINGS += ["cvee.tau=2", "..=1", "H=nan", "H=inf", "H=-1", "H=" + "9" * 5000, "name=1"]
SETTINGS += ["cvee.name=1", "self=1", "gamma=0:4:0.5", "p_min=1e18", "gamma=1e308"]
HOSTILE = [*SHELL, *CONTROLS, *NUMBERS, *PATHS, *ELSEWHERE, *MODULES, *SETTINGS]
"""Words that are wrong almost everywhere, and right where nobody expects them."""

GOOD = {
    "task": ["mmlu", "math", "humaneval", "gsm8k"],
    "method": ["baseline", "c4", "wino", "cvee", "klass", "slowfast"],
    "gate": ["cvee", "prophet", "sched", "oracle", "progress", "confidence", "gates_here:Calm"],
    "settings": [
        "tau=0.8",
        "H=2",
        "cvee.tau=0.5,0.7",
        "gamma=1",
        "tau=0.5:0.9:0.2",
        "curve=linear",
    ],
    "gamma": ["2", "0:4:1", "1,2"],
    "n": ["1", "2"],
    "skip": ["0", "1", "40"],
    "seed": ["0", "1", str(10**20)],
    "passes": ["1"],
    "warmups": ["0", "1"],
    "pool": ["1", "2"],
    "trajectory": ["40", "41", "0"],
    "gen_length": ["8", "16", "32"],
    "steps": ["4", "8", "16"],
    "block_length": ["4", "8", "16"],
    "model": ["tiny", "llada", "broken-model"],
    "device": ["cpu", "auto", "cuda", "cuda:9", "meta", "mps"],
    "dtype": ["float32", "bfloat16", "auto"],
    "revision": ["main"],
    "source": [
        "embedded",
        "rows.jsonl",
        "bad.jsonl",
        "empty.jsonl",
        "rows.parquet",
        "hub",
        "folder",
    ],
    "label": ["mine", "c4,H=2", "a/b"],
    "names": ["main", "text", "all", "trace", "stabilization", "calibration"],
    "formats": ["png", "svg", "pdf"],
    "config": ["calibration.json", "bad.json", "evil.json", "runs", "gone.json"],
    "calibration": ["calibration.json", "bad.json", "evil.json"],
}
"""Values that an option can mean, by its name."""
FOLDERS = ["runs", "damaged", "empty", "gone", f"runs {EVIL}", "runs/model=tiny/task=mmlu"]
FOLDERS += ["runs/model=tiny/task=mmlu/method=baseline", "damaged/model=tiny/task=mmlu/method=c4"]
PLACES = ["out", f"out {EVIL}", "rows.jsonl", "link", "circle", "deep/er/out", "out.json", "runs"]
BOUNDED = {"n": "1", "passes": "1", "warmups": "0", "task": "mmlu", "names": "text"}
"""What is added where a command line leaves it open: all examples, tasks and figures take long."""
LONG = {"demo": {"out": "rows.jsonl"}}
"""Commands that take long even so, and the value that they get to end early."""


def make_words(number: int, seed: int) -> list[str]:
    """The command line of a number: the same one for the same seed."""
    chance = random.Random(f"{seed} {number}")
    name, command = chance.choice(all_commands())
    words = name.split()
    options = [p for p in command.params if p.name != "help"]
    chosen = [p for p in options if p.required and chance.random() < 0.95]
    bounded = BOUNDED.keys() | LONG.get(name, {})
    chosen += [p for p in options if p.name in bounded and p not in chosen]
    others = [p for p in options if p not in chosen]
    chosen += chance.sample(others, min(len(others), chance.choice([0, 1, 1, 2, 3, 5])))
    for option in chosen:
        words += write_option(chance, option, LONG.get(name, {}))
    return spoil(chance, words)


@cache
def all_commands() -> list[tuple[str, Any]]:
    """Every command with its full name."""

    def walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, command in sorted(group.commands.items()):
            if hasattr(command, "commands"):
                yield from walk(command, f"{prefix}{name} ")
            else:
                yield f"{prefix}{name}", command

    return list(walk(get_command(app), ""))


def write_option(chance: random.Random, option: Any, forced: dict[str, str]) -> list[str]:
    """An option or an argument with a good or a hostile value."""
    if option.param_type_name == "argument":
        return [value_of(chance, option)]
    name = chance.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name if chance.random() < 0.95 else f"{name}=maybe"]
    if option.name in forced:
        return [name, forced[option.name]]
    if option.name in BOUNDED:
        return [name, BOUNDED[option.name] if chance.random() < 0.6 else value_of(chance, option)]
    value = value_of(chance, option)
    return [f"{name}={value}"] if chance.random() < 0.2 else [name, value]


def value_of(chance: random.Random, option: Any) -> str:
    if chance.random() < 0.4:
        value = chance.choice(HOSTILE if chance.random() < 0.5 else fitting(option))
        if option.name in BOUNDED and value == "1_000":  # a number like any other, and long work
            return "1"
        return "out" if option.name == "out" and value in ELSEWHERE else value
    return chance.choice(GOOD.get(option.name) or good_by_type(option))


def fitting(option: Any) -> list[str]:
    """Hostile words of the kind that an option asks for."""
    by_name = {"settings": SETTINGS, "gate": MODULES, "out": [*PATHS, *CONTROLS]}
    by_name["gamma"] = [setting.partition("=")[2] for setting in SETTINGS]
    by_kind = {int: NUMBERS, float: NUMBERS, Path: [*PATHS, *ELSEWHERE, *CONTROLS]}
    return by_name.get(option.name) or by_kind.get(kind_of(option), HOSTILE)


def kind_of(option: Any) -> Any:
    """The type that a command declares for an option."""
    return getattr(getattr(option, "type_descriptor", None), "annotation", None)


def good_by_type(option: Any) -> list[str]:
    """Values for an option that no table knows."""
    kind = kind_of(option)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    if get_args(kind):
        return [str(choice) for choice in get_args(kind)]
    if option.name in ("runs", "root", "run"):
        return FOLDERS
    by_kind = {Path: PLACES, int: ["0", "1", "2"], float: ["0", "0.05", "0.5", "5"]}
    return by_kind.get(kind, ["words"])


def spoil(chance: random.Random, words: list[str]) -> list[str]:
    """Now and then, something is wrong with the line as a whole."""
    ways = {
        "--help": [*words, "--help"],
        "unknown": [*words, f"--{chance.choice(HOSTILE)}"],
        "stray": [*words, chance.choice(HOSTILE)],
        "cut": words[:-1],  # of an option, not of the bounds, which stand in front
        "verbose": ["-v", *words],
        "json": [*words, "--json"],
        "twice": words + words[1:],
        "command": [chance.choice(HOSTILE), *words[1:]],
    }
    return ways[chance.choice(list(ways))] if chance.random() < 0.3 else words


def make_world(folder: Path) -> Path:
    """A folder with everything that command lines speak of, made by c4 itself."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        for line in (
            "record --task mmlu --n 3",
            "record --task mmlu --n 2 --skip 0",
            "run --task mmlu --method baseline --method c4 --n 3 --no-grade",
            "bench --task mmlu --method baseline --method c4 --n 1 --passes 1",
            "calibrate --pool 2",
        ):
            result = c4(*line.split())
            assert result.exit_code == 0, result.output
    _write_files(folder)
    shutil.copytree(folder / "runs", folder / f"runs {EVIL}")
    damage(shutil.copytree(folder / "runs", folder / "damaged"))
    return folder


def _write_files(folder: Path) -> None:
    """Sources, calibrations, gates and places, some of them bad."""
    row = {"question": f"How many {EVIL}?", "choices": ["1", "2", "3", "4"], "answer": 2}
    row |= {"problem": "1+1", "solution": r"\boxed{2}", "level": "1", "type": "a"}
    (folder / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 3)
    (folder / "bad.jsonl").write_text(f"{json.dumps(row)}\n{{\n{json.dumps(row)}\n")
    (folder / "empty.jsonl").touch()
    pq.write_table(pa.Table.from_pylist([row] * 3), folder / "rows.parquet")
    for name in ("empty", "folder", "broken-model"):
        (folder / name).mkdir()
    (folder / "broken-model" / "config.json").write_text('{"model_type": "llada"}')
    frozen = json.loads((folder / "calibration.json").read_text())
    (folder / "evil.json").write_text(json.dumps(frozen | {"gate": "evil_module:Gate"}))
    (folder / "bad.json").write_text(json.dumps(frozen)[:200])
    (folder / "gates_here.py").write_text(
        "class Calm:\n    def fires(self, s):\n        return s.run > 2\n"
    )
    (folder / "evil_module.py").write_text("raise AssertionError('a file ran code')\n")
    (folder / "link").symlink_to("nowhere")
    (folder / "circle").symlink_to("circle")


def damage(runs: Path) -> None:
    """Break something of everything that a run consists of."""
    first = next(iter(sorted(runs.rglob("cells/*.parquet"))))
    first.write_bytes(first.read_bytes()[:-9])
    live = runs / "model=tiny" / "task=mmlu" / "method=c4"
    (live / "tokenizer.json").write_text("{")
    for name, content in (("a", "{}"), ("b", "["), ("c", "null"), ("d", '{"schema_version": -1}')):
        other = shutil.copytree(live, live.with_name(f"method={name}"))
        (other / "manifest.json").write_text(content)
    gone = shutil.copytree(live, live.with_name("method=e"))
    for path in gone.rglob("*.parquet"):
        path.unlink()
    for path in runs.rglob("bench/**/*.parquet"):
        path.write_bytes(b"PAR1" + path.read_bytes()[4:-4] + b"none")


def judge(words: Sequence[str], code: int, out: str, err: str) -> list[str]:
    """What is wrong with the end of a command."""
    findings = []
    if code not in EXIT_CODES:
        findings.append(f"exit code {code}")
    if "Traceback (most recent call last)" in out + err:
        findings.append("traceback in the output")
    if "[Errno" in err:
        findings.append("an error number of the system")
    if "out of memory" in err:
        findings.append("out of memory")
    if any(unicodedata.category(c) in HIDDEN and c not in "\n\u200d" for c in out + err):
        findings.append("a control character in the output")
    if code == 2 and not err.strip() and not out.strip():
        findings.append("an error without a word")
    if code == 0 and "--json" in options_of(words) and "--help" not in words:
        try:
            json.loads(out, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            findings.append("JSON that no machine can read")
    return findings


def options_of(words: Sequence[str]) -> Sequence[str]:
    """The words that may be options: after `--`, every word is an argument."""
    return words[: words.index("--")] if "--" in words else words


def command_of(words: Sequence[str]) -> str:
    names = {name for name, _ in all_commands()}
    plain = [word for word in words if word != "-v"]
    for length in (2, 1):
        if " ".join(plain[:length]) in names:
            return " ".join(plain[:length])
    return "(none)"


def spell(words: Sequence[str]) -> str:
    """A command line as it can be typed, shortened where it is absurdly long."""
    line = "c4 " + " ".join(shlex.quote(word) for word in words)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return shown if len(shown) < 400 else f"{shown[:400]}… ({len(shown)} letters)"
