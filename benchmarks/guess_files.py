"""Can a reader guess in which file a thing stands, from the names of the files alone?

    python benchmarks/guess_files.py --seed 7              # the layout, and twelve lines
    python benchmarks/guess_files.py --seed 7 --answers    # the file of each line

Give the first to somebody who has not seen the code, and compare. A line is the name of a function,
a class or a constant with the first line of its docstring, drawn with equal chances from all that
have one. Tests and `tasks/problems` are left out.
"""

import argparse
import ast
import random
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTSIDE = ("tests/", "benchmarks/", "docs/", "examples/", "training/", "tasks/problems/")


def package_files() -> list[str]:
    """Every module of the package."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split() if not name.startswith(OUTSIDE)]


def described(file: str) -> Iterator[str]:
    """The functions, classes and constants of a module that have a docstring, with its start."""
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
            yield f"{node.name}: {text.splitlines()[0]}"
    for constant, text in pairwise(module.body):
        match constant, text:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                yield f"{name}: {said.splitlines()[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args()
    lines = [(file, line) for file in package_files() for line in described(file)]
    drawn = random.Random(options.seed).sample(lines, options.lines)
    if not options.answers:
        print(*package_files(), sep="\n")
    for number, (file, line) in enumerate(drawn, 1):
        print(f"{number:2}. {file if options.answers else line}")


if __name__ == "__main__":
    main()
