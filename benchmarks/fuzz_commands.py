"""Hostile command lines: does c4 end each of them in words, in time, and with a code it promises?

    python benchmarks/fuzz_commands.py                       # 5,000, and 300 in their own processes
    python benchmarks/fuzz_commands.py --seed 7 --n 20000
    python benchmarks/fuzz_commands.py --seed 7 --only 1234  # one of them, with all it prints

Command lines are made from the commands' own options, so an option that is added tomorrow is tried
tomorrow. They run over good and damaged runs in a temporary folder. A finding is a traceback, more
than 20 seconds of computing, memory that runs out, an exit code other than 0 or 2, a control
character in the output, an error number of the system, or JSON that no machine can read. With
findings the exit code is 1, and each is printed with the command line that shows it.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, get_args

SECONDS = 20
"""Of computing that a command line may take."""
MEMORY = 16 * 2**30
"""Bytes of address space that a worker may have: an absurd allocation fails at once."""
EXIT_CODES = {0, 2}
"""Nobody interrupts these commands or goes away from their output, so 1 and 130 are wrong."""
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

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
BOUNDED = {"n": "1", "passes": "1", "warmups": "0", "task": "mmlu"}
"""What is added where a command line leaves it open: all examples of all tasks would take long."""
LONG = {"demo": {"out": "rows.jsonl"}}
"""Commands that take long even so, and the value that they get to end early."""


Line = tuple[int, list[str]]
"""A command line and its number."""


@dataclass(frozen=True)
class Outcome:
    """What became of one command line."""

    number: int
    words: list[str]
    code: int | None
    seconds: float
    findings: list[str]
    output: str


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
    from typer.main import get_command

    from c4.cli.app import app

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
    with _inside(folder):
        for line in (
            "record --task mmlu --n 3",
            "record --task mmlu --n 2 --skip 0",
            "run --task mmlu --method baseline --method c4 --n 3 --no-grade",
            "bench --task mmlu --method baseline --method c4 --n 1 --passes 1",
            "calibrate --pool 2",
        ):
            result = invoke(line.split())
            assert result.exit_code == 0, result.output
    _write_files(folder)
    shutil.copytree(folder / "runs", folder / f"runs {EVIL}")
    damage(shutil.copytree(folder / "runs", folder / "damaged"))
    return folder


def _write_files(folder: Path) -> None:
    """Sources, calibrations, gates and places, some of them bad."""
    import pyarrow as pa
    import pyarrow.parquet as pq

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


class _inside:  # noqa: N801 - a context, used like a function
    """Work in a folder for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self.folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self.before)


def invoke(words: Sequence[str]) -> Any:
    from typer.testing import CliRunner

    from c4.cli.app import app

    return CliRunner().invoke(app, list(words))


class OutOfTimeError(BaseException):
    """Raised by the alarm; nothing catches it on its way."""


def try_here(number: int, words: list[str]) -> Outcome:
    """Run a command line in this process, with an alarm."""

    def ring(*_: object) -> None:
        raise OutOfTimeError

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    start = time.monotonic()
    try:
        result = invoke(words)
    except OutOfTimeError:
        return Outcome(number, words, None, SECONDS, [f"over {SECONDS} s"], traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    findings = judge(words, result.exit_code, result.stdout, result.stderr)
    output = result.stdout + result.stderr
    if result.exc_info and not isinstance(result.exception, SystemExit | None):
        findings.insert(0, f"traceback: {type(result.exception).__name__}")
        output += "".join(traceback.format_exception(*result.exc_info))
    return Outcome(number, words, result.exit_code, time.monotonic() - start, findings, output)


def try_apart(number: int, words: list[str], world: Path) -> Outcome | None:
    """Run a command line in a process of its own; None where a shell could not even write it."""
    try:
        command = [os.fsencode(word) for word in (sys.executable, "-m", "c4.cli", *words)]
    except UnicodeEncodeError:
        return None
    if any(b"\0" in word or len(word) > 100_000 for word in command):
        return None
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=world, capture_output=True, timeout=clock_seconds(), check=False
        )
    except subprocess.TimeoutExpired:
        seconds = time.monotonic() - start
        return Outcome(number, words, None, seconds, ["waits without end"], "")
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    findings = judge(words, done.returncode, out, err)
    return Outcome(number, words, done.returncode, time.monotonic() - start, findings, out + err)


def judge(words: Sequence[str], code: int, out: str, err: str) -> list[str]:
    """What is wrong with the end of a command."""
    findings = []
    if code not in EXIT_CODES:
        findings.append(f"exit code {code}")
    if "Traceback (most recent call last)" in out + err:
        findings.append("traceback in the output")
    if "[Errno" in err:
        findings.append("an error number of the system")
    if "memory ran out" in err:
        findings.append("memory ran out")
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


def work(pipe: Connection, world: Path) -> None:
    """What a worker does: try command lines until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    make_world(world)
    os.chdir(world)
    pipe.send(None)
    while (task := pipe.recv()) is not None:
        pipe.send(try_here(*task))


def prepare(home: Path) -> None:
    """Keep the network and the user's own files out of it."""
    os.environ |= OFFLINE | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}


def clock_seconds() -> float:
    """Seconds by the clock after which a command is taken to wait without end.

    A machine that has more to do than cores gives everybody less of its time.
    """
    return 3 * SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Worker:
    """A process that tries command lines; a new one takes its place if it has to be ended."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.started = 0
        self._start()

    def _start(self) -> None:
        self.started += 1
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        world = self.scratch / f"world-{id(self)}-{self.started}"
        self.process = context.Process(target=work, args=(other, world))
        self.process.start()
        other.close()
        self.task: tuple[int, list[str]] | None = None
        self.since = time.monotonic()
        self.ready = False

    def give(self, number: int, words: list[str]) -> None:
        self.task, self.since = (number, words), time.monotonic()
        self.pipe.send(self.task)

    def take(self) -> Outcome | None:
        """The outcome of what it was given; None when it says that it is ready."""
        try:
            outcome = self.pipe.recv()
        except EOFError:
            return self.replace("the process died")
        self.ready, self.task = True, None
        return outcome

    @property
    def is_late(self) -> bool:
        return self.task is not None and time.monotonic() - self.since > clock_seconds()

    def replace(self, why: str) -> Outcome | None:
        """End it, and say so of what it was trying."""
        self.process.kill()
        self.process.join()
        code, task = self.process.exitcode, self.task
        self._start()
        if task is None:
            raise SystemExit(f"a worker could not make its folder (exit code {code})")
        return Outcome(*task, code, time.monotonic() - self.since, [f"{why} ({code})"], "")


def try_many(
    lines: Iterator[tuple[int, list[str]]], workers: int, scratch: Path
) -> Iterator[Outcome]:
    """Try command lines in several processes at once."""
    crew = [Worker(scratch) for _ in range(workers)]
    rest = iter(lines)
    resting: set[int] = set()
    while len(resting) < len(crew):
        ready = wait([worker.pipe for worker in crew], timeout=1)
        for i, worker in enumerate(crew):
            outcome = None
            if worker.pipe in ready:
                outcome = worker.take()
            elif worker.is_late:
                outcome = worker.replace("waits without end")
            if outcome is not None:
                yield outcome
            if worker.ready and worker.task is None and i not in resting:
                line = next(rest, None)
                resting |= {i} if line is None else set()
                if line is not None:
                    worker.give(*line)
    for worker in crew:
        worker.pipe.send(None)
        worker.process.join()


def report(outcomes: Iterator[Outcome], total: int) -> list[Outcome]:
    """Print findings as they come and counts at the end; returns the findings."""
    counts: dict[str, Counter[str]] = {}
    found, slowest, done = [], 0.0, 0
    for outcome in outcomes:
        name = command_of(outcome.words)
        count = counts.setdefault(name, Counter())
        count.update(["lines", f"exit {outcome.code}", *(["findings"] if outcome.findings else [])])
        slowest, done = max(slowest, outcome.seconds), done + 1
        if outcome.findings:
            found.append(outcome)
            print(
                f"{', '.join(outcome.findings)}\n  --only {outcome.number}: {spell(outcome.words)}"
            )
            print("".join(f"    {line}\n" for line in outcome.output.splitlines()[-4:]), flush=True)
        if done % 500 == 0:
            print(f"{done} of {total}, {len(found)} findings", flush=True)
    print(f"{'command':<14}{'lines':>7}{'exit 0':>8}{'exit 2':>8}{'other':>7}{'findings':>10}")
    whole = sum(counts.values(), Counter())
    for name, count in [*sorted(counts.items()), ("all", whole)]:
        other = count["lines"] - count["exit 0"] - count["exit 2"]
        numbers = (count["exit 0"], count["exit 2"], other, count["findings"])
        print(f"{name:<14}{count['lines']:>7}" + "{:>8}{:>8}{:>7}{:>10}".format(*numbers))
    print(f"slowest: {slowest:.1f} s")
    return found


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


def apart(lines: Iterator[Line], world: Path) -> Iterator[Outcome]:
    """Try command lines in processes of their own."""
    tried = (try_apart(number, words, world) for number, words in lines)
    return (outcome for outcome in tried if outcome is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=5000, help="Command lines in shared processes.")
    parser.add_argument("--apart", type=int, default=300, help="In processes of their own.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, help="Try one alone, and print what it prints.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="c4-fuzz-") as name:
        scratch = Path(name)
        prepare(scratch)
        if given.only is not None:
            make_world(scratch / "world")
            os.chdir(scratch / "world")
            outcome = try_here(given.only, make_words(given.only, given.seed))
            print(spell(outcome.words), outcome.output, outcome.findings, sep="\n")
            sys.exit(bool(outcome.findings))
        print(f"seed {given.seed}: {given.n} command lines in {given.workers} processes")
        lines = ((i, make_words(i, given.seed)) for i in range(given.n))
        found = report(try_many(lines, given.workers, scratch), given.n)
        if given.apart:
            print(f"\n{given.apart} of them in processes of their own")
            make_world(scratch / "world")
            some = ((i, make_words(i, given.seed)) for i in range(given.apart))
            found += report(apart(some, scratch / "world"), given.apart)
    print(f"{len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
