"""What the methods' own programs did, against what c4 does: passes, tokens and commit steps.

Each line of the data is one decode by a program that a method's authors published, on the weights
of the embedded model or, in dream.jsonl, on a random Dream checkpoint. Gates read with
`ending=skip` and the plain reading, as the authors' programs do.

LLaDA's program and its descendants rank by a float32 softmax and break its ties as `torch.topk`
happens to. c4 does not imitate that. A line that differs is decoded once more with such ties, and
counts as explained by them if it then agrees.
"""

import json
import lzma
from collections.abc import Iterator, Mapping
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

DATA = Path(__file__).parents[1] / "data"
DREAM = DATA / "checkpoints" / "dream-random"
READING = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)
TIED = tuple(name for name, method in METHODS.items() if method.rule == "schedule")
"""Methods whose programs rank by a float32 softmax."""

Line = Mapping[str, Any]


def fate(line: Line) -> str:
    """Whether c4 decodes a line alike: "exact", with the authors' "ties" alone, or "differs"."""
    if agrees(line, reproduce(line)):
        return "exact"
    if line["method"] in TIED and agrees(line, reproduce(line, ties=True)):
        return "ties"
    return "differs"


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


def read_lines() -> Iterator[Line]:
    """The lines of all data files, in order."""
    for path in sorted((DATA / "authors").glob("*.jsonl.xz")):
        yield from map(json.loads, lzma.decompress(path.read_bytes()).splitlines())


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
