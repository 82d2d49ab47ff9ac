"""Whether two versions of c4 get the same numbers from the same commands.

    python benchmarks/same_numbers.py store before.json     # with the one version installed
    python benchmarks/same_numbers.py store after.json      # with the other
    python benchmarks/same_numbers.py compare before.json after.json [--renamed OLD=NEW ...]

Records and runs a fixed set of examples of all three families on the embedded model, replays,
calibrates, reports and draws, and stores what these commands say: exits, answers, steps, grades
and the data of every figure. Clock times, file sizes and folders are left out. `compare` prints
how many values agree, names those that do not, and ends with exit code 1 if there are any.
"""

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

C4 = Path(sys.executable).with_name("c4")
TASKS = ("mmlu", "gsm8k", "humaneval")
METHODS = ("baseline", "cvee", "cctc", "c4", "fast-dllm", "klass", "slowfast", "wino", "wino+cvee")
CLOCK = ("second", "tps", "speedup", "bytes", "folder", "cv", "timed", "share", "created", "file")
"""Parts of the names of values that may differ from run to run, or that say where files lie."""
WORDING = ("cohort", "settings", "missing", "caption")
"""Values that are no numbers: digests of identities, and what tables say in words."""


def commands() -> Iterator[tuple[str, str]]:
    """What is stored under which name, and the command that says it."""
    for task in TASKS:
        yield f"record {task}", f"record --task {task} --skip 36 --n 10 --json"
        methods = " ".join(f"--method {name}" for name in METHODS)
        yield f"run {task}", f"run {methods} --task {task} --n 5 --skip 40 --json"
    yield "run c4 H=2", "run --method c4 --task gsm8k --n 5 --skip 40 --set H=2 --json"
    yield (
        "replay",
        (
            "replay --gate cvee --gate prophet --gate sched --gate stability --gate oracle "
            "--out decisions.parquet --json"
        ),
    )
    yield "calibrate", "calibrate --gamma 1,2 --json"
    yield "calibrate risk", "calibrate --risk 0.5 --delta 0.4 --out risk.json --json"
    yield "report", "report main ablation paired stabilization scaling --format json"
    yield "figures", "figures --out figures"


def c4(line: str, folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        [C4, *shlex.split(line)], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"c4 {line}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def store(path: Path) -> None:
    """Run all commands in an empty folder, and keep what they say."""
    numbers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, line in commands():
            print(f"c4 {line}", file=sys.stderr, flush=True)
            said = c4(line, folder)
            numbers[name] = json.loads(said) if "json" in line else None
        decisions = pl.read_parquet(folder / "decisions.parquet")
        numbers["decisions"] = decisions.to_dicts()
        for data in sorted((folder / "figures").glob("*.csv")):
            numbers[f"figure {data.stem}"] = pl.read_csv(data, infer_schema=False).to_dicts()
    path.write_text(json.dumps(numbers), encoding="utf-8")


Names = dict[str, str]
"""Names of values that the other version calls otherwise."""


def flatten(value: Any, renamed: Names, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value under its own name, those of the clock aside."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not any(word in str(key) for word in (*CLOCK, *WORDING)):
                yield from flatten(item, renamed, f"{name}/{renamed.get(key, key)}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from flatten(item, renamed, f"{name}/{i}")
    else:
        yield name, renamed.get(value, value) if isinstance(value, str) else value


def compare(before: Path, after: Path, renamed: Names) -> int:
    """Print what agrees and what does not; the number of disagreements comes back."""
    old = dict(flatten(json.loads(before.read_text()), renamed))
    new = dict(flatten(json.loads(after.read_text()), {}))
    differ = [name for name in old if name not in new or not same(old[name], new[name])]
    added = [name for name in new if name not in old]
    for name in differ[:40]:
        print(f"{name}: {old[name]!r} before, {new.get(name, 'nothing')!r} after")
    print(f"{len(old) - len(differ)} of {len(old)} values agree; {len(added)} are new")
    return len(differ)


def same(a: Any, b: Any) -> bool:
    both_floats = isinstance(a, float) and isinstance(b, float)
    return a == b or (both_floats and math.isnan(a) and math.isnan(b))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["store", "compare"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW")
    given = parser.parse_args()
    if given.what == "store":
        store(given.files[0])
    else:
        renamed = dict(pair.split("=", 1) for pair in given.renamed)
        sys.exit(bool(compare(*given.files, renamed)))


if __name__ == "__main__":
    main()
