"""Can a reader guess in which file a line stands, from the names of the files alone?

    python benchmarks/guess_files.py --seed 7              # the layout, and twelve lines
    python benchmarks/guess_files.py --seed 7 --answers    # the file of each line

Give the first to somebody who has not seen the code, and compare. Lines are drawn with equal
chances from those that say something: first lines of functions and classes, constants, and
messages of at least four words. Imports, tests and `tasks/problems` are left out.
"""

import argparse
import random
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTSIDE = ("tests/", "benchmarks/", "docs/", "examples/", "training/", "tasks/problems/")
TELLING = re.compile(
    r"""\s*(?:(?:def|class)\s+[A-Za-z]\w{5,}|[A-Z][A-Z_]{3,}\b.*=|f?"(?:[^"\s]+\s+){3,}[^"]+")"""
)


def package_files() -> list[str]:
    """Every module of the package."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split() if not name.startswith(OUTSIDE)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args()
    lines = [
        (name, line.strip())
        for name in package_files()
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if TELLING.match(line)
    ]
    drawn = random.Random(options.seed).sample(lines, options.lines)
    if not options.answers:
        print(*package_files(), sep="\n")
    for number, (name, line) in enumerate(drawn, 1):
        print(f"{number:2}. {name if options.answers else line}")


if __name__ == "__main__":
    main()
