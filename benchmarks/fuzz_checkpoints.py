"""Malformed checkpoints: does `c4 record` refuse each of them in words, and in time?

    python benchmarks/fuzz_checkpoints.py                      # all that are named, 300 at random
    python benchmarks/fuzz_checkpoints.py --seed 7 --random 2000
    python benchmarks/fuzz_checkpoints.py --only "header overlap"

The named ones are those of `tests/models/malformed.py`, and every one must be refused. The random
ones have bytes of one file flipped, cut out or put in; such a checkpoint may still be good, but
must not end in a traceback. What counts as a finding is said in `fuzz_commands.py`. With findings
the exit code is 1.
"""

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests"), str(HERE.parent / "tests" / "models")]

from fuzz_commands import Outcome, prepare, try_here  # noqa: E402
from malformed import CHECKPOINTS, make_whole  # noqa: E402
from transformers.utils.logging import disable_progress_bar  # noqa: E402

LINE = "record --task math --source embedded --n 1 --gen-length 8 --block-length 8 --no-grade"
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
HEADER = 4096
"""Bytes at the start of the weights that are worth damaging; behind them are only numbers."""


def record(number: int, folder: Path) -> Outcome:
    """Record with a checkpoint, as a user would."""
    out = folder.with_name(f"{folder.name}-runs")
    return try_here(number, [*LINE.split(), "--model", str(folder), "--out", str(out)])


def named(scratch: Path, only: str | None) -> Iterator[tuple[str, Outcome]]:
    """Every checkpoint that has a name and must be refused."""
    for number, checkpoint in enumerate(CHECKPOINTS):
        if only in (None, checkpoint.name):
            outcome = record(number, checkpoint.make(scratch / f"named-{number}"))
            if outcome.code == 0:
                outcome.findings.append("not refused")
            yield checkpoint.name, outcome


def at_random(scratch: Path, count: int, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Checkpoints of which one file was damaged somewhere."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        folder = make_whole(chance.choice(["llada", "dream", "bert"]), scratch / f"random-{number}")
        path = folder / chance.choice(FILES)
        damage = chance.choice(DAMAGES)
        path.write_bytes(damage(chance, path.read_bytes()))
        yield f"random {number}: {damage.__name__} {path.name}", record(number, folder)


def flip(chance: random.Random, data: bytes) -> bytes:
    """One bit is another."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def cut(chance: random.Random, data: bytes) -> bytes:
    """The file ends too early."""
    return data[: chance.randrange(len(data))]


def drop(chance: random.Random, data: bytes) -> bytes:
    """Some bytes are missing."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + data[at + chance.randrange(1, 20) :]


def insert(chance: random.Random, data: bytes) -> bytes:
    """Some bytes are too many."""
    at = chance.randrange(min(len(data), HEADER))
    return data[:at] + chance.randbytes(chance.randrange(1, 20)) + data[at:]


def digit(chance: random.Random, data: bytes) -> bytes:
    """A number is another, or absurd."""
    places = [i for i in range(min(len(data), HEADER)) if data[i : i + 1].isdigit()]
    at = chance.choice(places or [len(data) // 2])
    other = chance.choice([b"0", b"9", b"-1", b"1e9", b"999999999999", b"null", b"[]", b'"x"'])
    return data[:at] + other + data[at + 1 :]


DAMAGES: list[Callable[[random.Random, bytes], bytes]] = [flip, cut, drop, insert, digit]


def report(outcomes: Iterator[tuple[str, Outcome]]) -> int:
    """Print findings as they come and counts at the end; returns the number of findings."""
    counts: Counter[str] = Counter()
    slowest = 0.0
    for name, outcome in outcomes:
        counts.update(["checkpoints", f"exit {outcome.code}"])
        slowest = max(slowest, outcome.seconds)
        if outcome.findings:
            counts["findings"] += 1
            print(f"{name}: {', '.join(outcome.findings)}")
            print("".join(f"    {line}\n" for line in outcome.output.splitlines()[-4:]), flush=True)
    refused, loaded = counts["exit 2"], counts["exit 0"]
    print(
        f"{counts['checkpoints']} checkpoints: {refused} refused, {loaded} loaded, "
        f"{counts['findings']} findings; slowest: {slowest:.1f} s"
    )
    return counts["findings"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--random", type=int, default=300, help="Checkpoints damaged at random.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="One of those that have a name.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="c4-fuzz-") as folder:
        scratch = Path(folder)
        prepare(scratch)
        disable_progress_bar()
        os.chdir(scratch)
        findings = report(named(scratch, given.only))
        if given.only is None:
            findings += report(at_random(scratch, given.random, given.seed))
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
