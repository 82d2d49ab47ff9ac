"""What the methods' own programs did, against what c4 does: passes, tokens and commit steps.

    python benchmarks/bench_authors.py [--data tests/data/authors] [--every 1]

Each line of the data is one decode by a program that a method's authors published, on the weights
of the embedded model or, in dream.jsonl, on a random Dream checkpoint. Prints how many lines c4
reproduces, and ends with exit code 1 if any line differs. docs/methods.md says what is declared
different. Gates read with `ending=skip` and the plain reading, as the authors' programs do.
"""

import argparse
import json
import lzma
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c4.models import Denoiser, LoadedModel, find_checkpoint, load_model
from c4.models._architectures import architecture_of
from c4.models._checkpoint import weight_files
from c4.models._load import build_model
from c4.record import Decoded, LiveMethod, Vocabulary, decode
from c4.replay import MethodChoice, resolve_methods
from c4.tasks import AnswerReading, Ending, ReadingStyle, Shape, get_task

TESTS = Path(__file__).parents[1] / "tests"
AUTHORS = TESTS / "data" / "authors"
DREAM = TESTS / "data" / "checkpoints" / "dream-random"
READING = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)

Line = Mapping[str, Any]


@dataclass
class Tally:
    """How many lines of one kind agree."""

    lines: int = 0
    passes: int = 0
    tokens: int = 0
    commits: int = 0
    with_commits: int = 0
    """Lines that say when each position was committed."""

    def add(self, line: Line, decoded: Decoded) -> None:
        self.lines += 1
        self.passes += decoded.steps + full_block_passes(line, decoded) == line["passes"]
        self.tokens += decoded.ids.tolist() == line["final_ids"]
        if line.get("commit_step") is not None:
            self.with_commits += 1
            self.commits += decoded.commit_step.tolist() == line["commit_step"]

    @property
    def whole(self) -> bool:
        """Whether every line agrees in everything."""
        agree = (self.passes, self.tokens) == (self.lines, self.lines)
        return agree and self.commits == self.with_commits


def full_block_passes(line: Line, decoded: Decoded) -> int:
    """Passes that the release spends in blocks that are full, where c4 leaves at once.

    Fast-dLLM's prefix cache makes a second pass in every block, also if the first has filled it.
    On Dream the full pass commits one position, so no block is full then.
    """
    if line["settings"].get("cache") != "prefix" or "dream" in line["author"]:
        return 0
    return int((decoded.block_passes == 1).sum())


def read_lines(folder: Path) -> Iterator[Line]:
    """The lines of all data files, in order."""
    for path in sorted(folder.glob("*.jsonl*")):
        opened = lzma.open(path, "rt") if path.suffix == ".xz" else path.open()
        with opened as file:
            yield from (json.loads(text) for text in file)


@cache
def embedded() -> LoadedModel:
    return load_model(find_checkpoint("tiny"))


@cache
def dream() -> Denoiser:
    """The random checkpoint, which has no tokenizer."""
    checkpoint = find_checkpoint(str(DREAM))
    model = build_model(
        architecture_of(checkpoint), checkpoint, weight_files(checkpoint), "cpu", torch.float32
    )
    return Denoiser(model, mask_id=checkpoint.config["mask_token_id"], shift=True)


def reproduce(line: Line) -> Decoded:
    """The decode of a line, by c4."""
    shape = Shape(length=line["length"], steps=line["steps"], block=line["block"])
    prompt = np.array(line["prompt_ids"], dtype=np.int64)
    task = get_task(line.get("task", "gsm8k"))  # which matters to gates alone
    (method,) = resolve_methods(
        MethodChoice([line["method"]], [f"{k}={v}" for k, v in line["settings"].items()]),
        task,
        READING,
    )
    if "task" not in line:
        return run(dream(), prompt, shape, method)
    model = embedded()
    vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
    gate = method.new_gate(task, vocabulary, shape, ())
    return run(model.denoiser, prompt, shape, method, gate)


def run(
    denoiser: Denoiser, prompt: Any, shape: Shape, method: LiveMethod, gate: Any = None
) -> Decoded:
    return decode(denoiser, prompt, shape, rule=method.rule, gate=gate, forward=method.forward)


def compare(lines: Iterator[Line]) -> dict[tuple[str, ...], Tally]:
    """Tallies by method, settings, model or task, and block length."""
    tallies: dict[tuple[str, ...], Tally] = defaultdict(Tally)
    for line in lines:
        settings = ", ".join(f"{name}={value}" for name, value in line["settings"].items())
        key = (line["method"], settings, line.get("task", "dream-random"), str(line["block"]))
        tallies[key].add(line, reproduce(line))
    return dict(tallies)


def render(tallies: Mapping[tuple[str, ...], Tally]) -> str:
    """A Markdown table."""
    rows = [
        "| method | settings | prompts of | B | lines | passes | tokens | commit steps |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for key, tally in tallies.items():
        commits = f"{tally.commits} of {tally.with_commits}" if tally.with_commits else "not given"
        counts = (str(tally.lines), str(tally.passes), str(tally.tokens), commits)
        rows.append(f"| {' | '.join((*key, *counts))} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=AUTHORS)
    parser.add_argument("--every", type=int, default=1, help="only every n-th line")
    given = parser.parse_args()
    lines = (line for i, line in enumerate(read_lines(given.data)) if i % given.every == 0)
    tallies = compare(lines)
    print(render(tallies))
    total = sum(tally.lines for tally in tallies.values())
    exact = sum(tally.lines for tally in tallies.values() if tally.whole)
    print(f"\n{exact} of {total} lines stand in rows that agree in everything")
    sys.exit(exact != total)


if __name__ == "__main__":
    main()
