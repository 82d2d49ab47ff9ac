"""Whether two versions of c4 get the same numbers from the same commands.

    python benchmarks/same_numbers.py store before.json     # with the one version installed
    python benchmarks/same_numbers.py store after.json      # with the other
    python benchmarks/same_numbers.py compare before.json after.json [--renamed OLD=NEW ...]

Records and runs a fixed set of examples of all families under every method, cache and batch size on
the embedded model, replays every gate, calibrates, certifies, grades, verifies, reports, draws and
exports. Stored are what these commands print, every row, identity and digest of cells in the runs
that they leave, and the data of every figure. Clock times, file sizes and folders are left out.
`compare` prints how many values agree, names those that do not, and ends with exit code 1 if there
are any. Takes five to six minutes of processor time.
"""

import argparse
import hashlib
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

C4 = Path(sys.executable).with_name("c4")
OLDER = Path(__file__).parents[1] / "tests" / "data" / "runs" / "v3"
"""Recordings that an older version made."""
TASKS = ("mmlu", "gsm8k", "humaneval")
OTHER_TASKS = "arc_c hellaswag winogrande piqa truthfulqa math svamp asdiv gsmhard mbpp"
METHODS = (
    "baseline prophet sched confidence stability fixed-patience cvee cctc-core cctc c4 fast-dllm "
    "klass slowfast wino wino+cvee klass+cvee slowfast+prophet"
)
GATES = "cvee confidence stability fixed-patience prophet sched progress oracle"
CLOCK = {"second", "tps", "speedup", "byte", "folder", "cv", "timed", "share", "created", "file"}
CLOCK |= {"time", "wall", "environment", "checksum", "out", "csv"}
"""Words in names of values that may differ from run to run, or that say where files lie."""
WORDING = {"cohort", "setting", "missing", "caption"}
"""Values that are no numbers: digests of identities, and what tables say in words."""
RUN = "runs/model=tiny/task={}/method={}"


def each(option: str, names: str) -> str:
    return " ".join(f"--{option} {name}" for name in names.split())


def commands() -> Iterator[str]:
    """Every command whose output is stored."""
    tasks = each("task", " ".join(TASKS))
    for task in TASKS:
        yield f"record --task {task} --skip 36 --n 10 --json"
    others = each("task", OTHER_TASKS)
    yield f"run --method baseline --cells {others} --skip 0 --n 2 --out others --json"
    yield "record --task mmlu --skip 38 --n 4 --batch 4 --out batched --json"
    shape = "--gen-length 48 --steps 24 --block-length 16"
    yield f"record --task math --n 2 {shape} --out shaped --json"
    yield f"run {each('method', METHODS)} {tasks} --n 3 --skip 40 --json"
    yield f"run {each('method', 'c4 wino cvee')} {tasks} --skip 40 --n 4 --batch 4 --out batched"
    for cache in ("prefix", "dual"):
        methods = each("method", "baseline c4 fast-dllm")
        yield f"run {methods} {tasks} --n 2 --skip 40 --set cache={cache} --json"
    kept = each("method", "cctc klass wino slowfast")
    yield f"run {kept} {tasks} --n 1 --skip 40 --cells --out kept"
    for setting in ("--set H=2", "--set H=inf --set cvee.tau=0.8 --set cvee.gamma=1"):
        yield f"run --method c4 --method wino+cvee --task gsm8k --n 4 --skip 40 {setting} --json"
    gates = f"{each('gate', GATES)} --set progress.fraction=0.5"
    yield f"replay {gates} --out decisions.parquet --json"
    yield "replay --gate cvee --gate sched --reading plain --ending skip --out plain.parquet --json"
    yield "replay --gate cvee --gate prophet --set tau=0.5 --set high=5 --json"
    yield f"replay {gates} --runs others --out others.parquet --json"
    yield "calibrate --gamma 1,2 --json"
    for gate in ("prophet --set high=5:10:2.5", "sched --set patience=1,2", "stability"):
        yield f"calibrate --gate {gate} --tolerance 50 --out {gate.split()[0]}.json --json"
    for options in ("differs --control bonferroni", "becomes-wrong --control fixed-sequence"):
        out = f"risk-{options.split()[0]}.json"
        yield f"calibrate --risk 0.5 --delta 0.4 --loss {options} --out {out} --json"
    yield "replay --config calibration.json --json"
    yield "run --method c4 --task gsm8k --n 2 --skip 40 --config calibration.json --json"
    yield f"grade {RUN.format('gsm8k', 'wino')} --all --reading plain --ending skip --json"
    yield f"grade {RUN.format('mmlu', 'baseline')} --all --reading number --json"
    yield f"grade {RUN.format('gsm8k', 'c4')} --all --grader math-verify --json"
    timed = each("method", "baseline cvee c4")
    yield f"bench {timed} --task mmlu --n 2 --passes 1 --warmups 1 --json"
    yield "report --format json"
    yield "report --format json --all --against paper --set cvee.tau=0.8 --config calibration.json"
    yield "report main ablation paired --reading plain --ending skip --format json"
    yield "figures --out figures --format svg --calibration risk-differs.json --json"
    yield "figures trace text --task mmlu --trajectory 41 --signal entropy --out trace --json"
    for run in ("baseline", "c4"):
        yield f"export {RUN.format('gsm8k', run)} --out -"
    yield f"verify {tasks} --n 1"
    yield "verify --task mmlu --n 4 --batch 4"
    yield "runs --json"
    yield "runs --check --json"
    yield "runs --runs older --json"
    yield f"replay {gates} --runs older --json"


def c4(line: str, folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        [C4, *shlex.split(line)], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"c4 {line}\n{done.stdout}\n{done.stderr}", file=sys.stderr, flush=True)
    return f"exit code {done.returncode}\n{done.stdout}"


def parsed(said: str) -> Any:
    """What was printed as JSON or lines of it as values; anything else as lines of text."""
    code, _, printed = said.partition("\n")
    try:
        return [code, json.loads(printed)]
    except json.JSONDecodeError:
        pass
    try:
        return [code, *(json.loads(line) for line in printed.splitlines())]
    except json.JSONDecodeError:
        return [code, *printed.splitlines()]


def rows_of(table: Path) -> list[dict[str, Any]]:
    data = pl.read_parquet(table, hive_partitioning=False)
    sort = [name for name in ("task", "gate", "trajectory") if name in data.columns]
    return json.loads(json.dumps(data.sort(sort, maintain_order=True).to_dicts(), default=str))


def left(folder: Path) -> Iterator[tuple[str, Any]]:
    """What the commands left behind: decisions, settings, and of every run all that it holds."""
    for table in sorted(folder.glob("*.parquet")):
        yield table.name, rows_of(table)
    for setting in sorted(folder.glob("*.json")):
        yield setting.name, json.loads(setting.read_text(encoding="utf-8"))
    for data in sorted(folder.glob("*/*.csv")):
        table = pl.read_csv(data, infer_schema=False).to_dicts()
        yield f"figure {data.relative_to(folder)}", table
    for manifest in sorted(folder.rglob("manifest.json")):
        run = manifest.parent
        name = str(run.relative_to(folder))
        yield f"{name} manifest", json.loads(manifest.read_text(encoding="utf-8"))
        parts: dict[str, list[Any]] = {}
        for part in run.rglob("*.parquet"):
            is_cells = part.parent.name == "cells"  # a part's name holds a checksum of its bytes
            digest = [part.name, hashlib.sha256(part.read_bytes()).hexdigest()]
            numbers = f"{name} {part.parent.name} {part.name.split('.')[0]}"
            parts.setdefault(numbers, []).append(digest if is_cells else rows_of(part))
        # Signals under several readings cover the same numbers; their digests may have changed.
        yield from ((numbers, sorted(parts[numbers], key=json.dumps)) for numbers in sorted(parts))


def store(path: Path) -> None:
    """Run all commands in an empty folder, and keep what they say and leave."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(OLDER, folder / "older")
        numbers: dict[str, Any] = {}
        for line in commands():
            print(f"c4 {line}", file=sys.stderr, flush=True)
            numbers[line] = parsed(c4(line, folder))
        numbers |= dict(left(folder))
    path.write_text(json.dumps(numbers), encoding="utf-8")


Names = dict[str, str]
"""Names of values that the other version calls otherwise."""


def is_number(name: str) -> bool:
    """Whether a value of this name should be the same in every run."""
    words = re.findall("[a-z]+", name.lower())
    return not {*words, *(word.removesuffix("s") for word in words)} & (CLOCK | WORDING)


def flatten(value: Any, renamed: Names, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value under its own name, those of the clock aside."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not name or is_number(str(key)):
                yield from flatten(item, renamed, f"{name}/{renamed.get(key, key)}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from flatten(item, renamed, f"{name}/{i}")
    else:
        yield name, renamed.get(value, value) if isinstance(value, str) else value


def compare(before: Path, after: Path, renamed: Names) -> int:
    """Print what agrees and what does not; the number of disagreements comes back."""
    old = dict(flatten(json.loads(before.read_text(encoding="utf-8")), renamed))
    new = dict(flatten(json.loads(after.read_text(encoding="utf-8")), {}))
    differ = [name for name in old if name not in new or not same(old[name], new[name])]
    added = [name for name in new if name not in old]
    for name in differ[:100]:
        print(f"{name}: {old[name]!r} before, {new.get(name, 'nothing')!r} after")
    for name in added[:20]:
        print(f"{name}: {new[name]!r} is new")
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
