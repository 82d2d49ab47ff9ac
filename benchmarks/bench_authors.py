"""What the methods' own programs did, against what c4 does: passes, tokens and commit steps.

    python benchmarks/bench_authors.py [--data tests/data/authors] [--every 1]

Each line of the data is one decode by a program that a method's authors published, on the weights
of the embedded model or, in dream.jsonl, on a random Dream checkpoint. Prints how many lines c4
reproduces, and ends with exit code 1 if any line differs. Gates read with `ending=skip` and the
plain reading, as the authors' programs do.

LLaDA's program and its descendants rank by a float32 softmax and break its ties as `torch.topk`
happens to. c4 does not imitate that. A line that differs is decoded once more with such ties, and
counts as explained by them if it then agrees.
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

from c4.decode.commits import Predictor
from c4.decode.loop import Decoded, decode
from c4.decode.rules.schedule import Schedule, ScheduledState
from c4.models import (
    Denoiser,
    LoadedModel,
    Reading,
    find_checkpoint,
    load_model,
    read_logits,
)
from c4.models._architectures import architecture_of
from c4.models._build import build_model
from c4.models._checkpoint import weight_files
from c4.record.methods import METHODS
from c4.record.settings import MethodChoice, resolve_methods
from c4.store.arrays import BoolArray, IntArray
from c4.tasks import TASKS, AnswerReading, Ending, ReadingStyle, Shape
from c4.tasks.vocabulary import Vocabulary

TESTS = Path(__file__).parents[1] / "tests"
AUTHORS = TESTS / "data" / "authors"
DREAM = TESTS / "data" / "checkpoints" / "dream-random"
READING = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)
TIED = tuple(name for name, method in METHODS.items() if method.rule == "schedule")
"""Methods whose programs rank by a float32 softmax."""

Line = Mapping[str, Any]


@dataclass
class Tally:
    """How many lines of one kind agree."""

    lines: int = 0
    exact: int = 0
    """Lines that agree in passes, tokens and, where they are given, commit steps."""
    ties: int = 0
    """Lines that agree only with ties broken as in the authors' program."""
    differ: int = 0
    """Lines that do not agree at all."""

    def add(self, line: Line) -> None:
        """Decode a line, and once more with the authors' ties if it differs."""
        self.lines += 1
        if agrees(line, reproduce(line)):
            self.exact += 1
        elif line["method"] in TIED and agrees(line, reproduce(line, ties=True)):
            self.ties += 1
        else:
            self.differ += 1


def agrees(line: Line, decoded: Decoded) -> bool:
    """Whether a decode has a line's passes and tokens, and its commit steps where it says them."""
    passes = decoded.steps + full_block_passes(line, decoded)
    commits = line.get("commit_step") or decoded.commit_step.tolist()
    mine = (passes, decoded.ids.tolist(), decoded.commit_step.tolist())
    return mine == (line["passes"], line["final_ids"], commits)


def full_block_passes(line: Line, decoded: Decoded) -> int:
    """Passes that the release spends in blocks that are full, where c4 leaves at once.

    Fast-dLLM's prefix cache makes a second pass in every block, also if the first has filled it.
    On Dream the full pass commits one position, so no block is full then.
    """
    if line["settings"].get("cache") != "prefix" or "dream" in line["author"]:
        return 0
    return int((decoded.block_steps == 1).sum())


def read_lines(folder: Path) -> Iterator[Line]:
    """The lines of all data files, in order."""
    for path in sorted(folder.glob("*.jsonl*")):
        data = path.read_bytes()
        text = lzma.decompress(data) if path.suffix == ".xz" else data
        yield from map(json.loads, text.splitlines())


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


class TopK(Schedule):
    """The schedule, ranked by a float32 softmax whose ties `torch.topk` breaks."""

    def start(self) -> "TopKState":
        return TopKState()


class TopKState(ScheduledState):
    """Holds the confidences of the step, at all positions of the sequence."""

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        logits = predictor.logits(ids, start)
        confidence = logits.softmax(-1).amax(-1)
        self._start = start
        self._confidence = torch.cat([torch.full((start,), -torch.inf), confidence])
        return read_logits(logits, predictor.mask_id)

    def top(self, step: int, reading: Reading, masked: BoolArray) -> IntArray:
        count = len(super().top(step, reading, masked))
        allowed = torch.full_like(self._confidence, -torch.inf)
        places = torch.from_numpy(self._start + self.block.open_positions(masked))
        allowed[places] = self._confidence[places]
        return allowed.topk(count).indices.numpy() - self._start


def reproduce(line: Line, *, ties: bool = False) -> Decoded:
    """The decode of a line, by c4; with the authors' ties if asked for."""
    shape = Shape(length=line["length"], budget=line["steps"], block_length=line["block"])
    prompt = np.array(line["prompt_ids"], dtype=np.int64)
    task = TASKS[line.get("task", "gsm8k")]  # which matters to gates alone
    (method,) = resolve_methods(
        MethodChoice([line["method"]], [f"{k}={v}" for k, v in line["settings"].items()]),
        task,
        READING,
    )
    model = embedded()
    vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
    return decode(
        dream() if "task" not in line else model.denoiser,
        prompt,
        shape,
        rule=TopK() if ties else method.rule,
        gate=method.new_gate(task, vocabulary, shape, ()),
        forward=method.forward,
    )


def compare(lines: Iterator[Line]) -> dict[tuple[str, ...], Tally]:
    """Tallies by method, settings, model or task, and block length."""
    tallies: dict[tuple[str, ...], Tally] = defaultdict(Tally)
    for line in lines:
        settings = ", ".join(f"{name}={value}" for name, value in line["settings"].items())
        key = (line["method"], settings, line.get("task", "dream-random"), str(line["block"]))
        tallies[key].add(line)
    return dict(tallies)


def render(tallies: Mapping[tuple[str, ...], Tally]) -> str:
    """A Markdown table."""
    rows = [
        "| method | settings | prompts of | B | lines | agree | agree with their ties | differ |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for key, tally in tallies.items():
        counts = (tally.lines, tally.exact, tally.ties, tally.differ)
        rows.append(f"| {' | '.join((*key, *map(str, counts)))} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=AUTHORS)
    parser.add_argument("--every", type=int, default=1, help="only every n-th line")
    given = parser.parse_args()
    lines = (line for i, line in enumerate(read_lines(given.data)) if i % given.every == 0)
    tallies = compare(lines)
    print(render(tallies))
    lines, exact, ties, differ = (
        sum(getattr(tally, name) for tally in tallies.values())
        for name in ("lines", "exact", "ties", "differ")
    )
    print(f"\n{lines} lines: {exact} agree, {ties} more with their ties, {differ} differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
