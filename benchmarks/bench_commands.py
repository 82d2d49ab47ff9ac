"""How long the quick commands take, as multiples of importing the libraries they stand on.

    python benchmarks/bench_commands.py [--repeats 15]

Records ten examples each of mmlu and math and replays them once, so that their signals are cached.
Then it times every command and the bare imports in turn, each in a process of its own, in rounds.
Prints the medians and their ratios. The aim is at most 2.5; commands that miss it are marked `!`.
"""

import argparse
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

C4 = str(Path(sys.executable).with_name("c4"))
IMPORTS = "import polars, numpy, pyarrow.parquet, scipy.stats"
LIMIT = 2.5
PREPARE = [
    "record --task mmlu --skip 36 --n 10",
    "record --task math --skip 36 --n 10",
    "replay",
    "calibrate --gamma 2",
]
COMMANDS = [
    "runs",
    "replay",
    "calibrate --gamma 2",
    "models list",
    "report",
    "report main",
]
MISTYPED = [
    "record --task mahts",
    "run --method c5 --task math",
    "replay --gate cvvee",
    "report mian",
    "record --task math --model tinny",
]
REFUSED = 2
"""Exit code of a command that was refused."""


def timed(command: list[str], folder: Path, code: int = 0) -> float:
    """Seconds that a process takes; another exit code than expected ends the measurement."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != code:
        sys.exit(f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}")
    return seconds


def measure(repeats: int) -> dict[str, list[float]]:
    """Seconds of the imports and of every command, in turn."""
    bare = [sys.executable, "-c", IMPORTS]
    commands = {"imports": bare}
    commands |= {f"c4 {line}": [C4, *line.split()] for line in COMMANDS + MISTYPED}
    refused = {f"c4 {line}" for line in MISTYPED}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as temporary:
        for line in PREPARE:
            timed([C4, *line.split()], Path(temporary))
        for _ in range(repeats):
            for name, command in commands.items():
                code = REFUSED if name in refused else 0
                seconds[name].append(timed(command, Path(temporary), code))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    seconds = measure(parser.parse_args().repeats)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    bare = medians.pop("imports")
    print(f"{IMPORTS}: {bare:.2f} s\n\n| command | seconds | ratio |\n|---|---|---|")
    for name, median in medians.items():
        mark = " !" if median > LIMIT * bare else ""
        print(f"| `{name}` | {median:.2f} | {median / bare:.2f}{mark} |")


if __name__ == "__main__":
    main()
