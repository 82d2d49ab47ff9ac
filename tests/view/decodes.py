"""Decodes that were written by hand: three families, texts that settle, and any words one likes."""

from dataclasses import asdict

import numpy as np
from conftest import byte_tokenizer

from c4.gates.candidates import filled_predictions
from c4.gates.steps import fixed_point
from c4.store.cells import Cells
from c4.store.columns import RESOLUTION
from c4.store.manifest import Manifest, run_folder, text_hash
from c4.store.rows import Row
from c4.store.runs import Trajectory
from c4.store.writer import RunWriter
from c4.tasks import TASKS, AnswerReading, Ending, Example, Shape, Verdict, grade
from c4.tasks.vocabulary import Vocabulary

SHAPES = {
    "mmlu": Shape(length=16, budget=16, block_length=4),
    "gsm8k": Shape(length=40, budget=20, block_length=8),
    "humaneval": Shape(length=48, budget=24, block_length=12),
}
TEXTS = {
    "mmlu": "B, because.",
    "gsm8k": "Ann has 3 + {t}. The answer is 1{t}.",
    "humaneval": "def f(x):\n    return x + {t}\n",
}
TARGETS = {"mmlu": "B", "gsm8k": "#### 1{t}", "humaneval": "    return x + 1\n"}


def make_identity(task, model, shape, tokenizer, **changes):
    vocab = tokenizer.get_vocab_size()
    return {
        "task": task,
        "origin": "file:x@1",
        "source": "file",
        "model": model,
        "revision": None,
        "device": "cpu",
        "dtype": "float32",
        "batch": 1,
        "seed": 0,
        "order": "as it is",
        "resolution": RESOLUTION,
        "shape": asdict(shape),
        "weights_sha256": "0" * 64,
        "tokenizer_sha256": text_hash(tokenizer.to_str()),
        "chat_template": False,
        "vocab_size": vocab,
        "mask_id": vocab - 1,
        "end_ids": [vocab - 2],
        "shift": False,
        "method": "baseline",
        "label": "baseline",
        "rule": {"name": "schedule"},
        "gate": None,
        "forward": {"cache": "off"},
        "cells": True,
    } | changes


def make_cells(rng, final, shape, vocab, sure):
    """Predictions that become the final text; `sure` is by when, as a share of the budget."""
    steps, length = shape.budget, shape.length
    per_step = length // steps
    order = np.concatenate(
        [
            block + rng.permutation(shape.block_length)
            for block in range(0, length, shape.block_length)
        ]
    )
    committed_at = np.empty(length, dtype=np.int64)
    committed_at[order] = np.arange(length) // per_step + 1
    step = np.arange(1, steps + 1)[:, None]
    masked = committed_at[None] >= step
    knows = rng.random((steps, length)) < np.clip(step / steps / sure, 0, 1) ** 2
    commits = committed_at[None] == step
    token = np.where(knows | commits | ~masked, final[None], rng.integers(0, vocab, masked.shape))
    confidence = np.clip(rng.random(masked.shape) * 0.3 + 0.7 * knows, 0, 1).astype(np.float32)
    return Cells(
        token=token.astype(np.int32),
        confidence=fixed_point("confidence", confidence),
        gap=fixed_point("gap", confidence * 10),
        entropy=fixed_point("entropy", 2 * (1 - confidence)),
        masked=masked,
    ), committed_at


def make_decode(task, t, tokenizer, identity, prompt=None, text=None, shape=None):
    shape = shape or SHAPES[task]
    rng = np.random.default_rng([t, len(task)])
    written = TEXTS[task].format(t=t) if text is None else text
    ids = tokenizer.encode(written).ids[: shape.length]
    end = identity["end_ids"][0]
    final = np.array(ids + [end] * (shape.length - len(ids)), dtype=np.int32)
    cells, committed_at = make_cells(rng, final, shape, 256, sure=0.5 + 0.4 * rng.random())
    final = filled_predictions(cells.token, cells.masked)[-1].tolist()
    vocabulary = Vocabulary(tokenizer.to_str(), identity["end_ids"])
    said = vocabulary.text(final, Ending.CUT)
    example = Example(prompt or f"problem {t}", TARGETS[task].format(t=t), "", "", ())
    given = None if task == "humaneval" else grade(TASKS[task], example, said)
    return Trajectory(
        Row(
            trajectory=t,
            source_row=t,
            prompt=example.prompt,
            prompt_ids=[1, 2, 3],
            target=example.target,
            preamble="",
            tests="",
            choices=["one", "two"] if task == "mmlu" else [],
            final_ids=final,
            text=said,
            answer=said if given is None else given.answer,
            verdict=Verdict.WRONG if given is None else given.verdict,
            **asdict(AnswerReading()),
            **asdict(shape),
            steps=shape.budget,
            tokens_before_end=vocabulary.ending(final),
            wall_seconds=0.1,
            block_steps=[shape.budget // shape.blocks] * shape.blocks,
            block_seconds=[0.1] * shape.blocks,
            exit_step=None,
            committed_by=[0] * shape.length,
            commit_step=committed_at.tolist(),
            revoked=0,
        ),
        cells,
    )


def write_run(root, task, numbers, *, model="made", words=(), label="baseline", **changes):
    """A run on disk. `changes`: prompt, text and shape of every trajectory, or cells=False."""
    tokenizer = byte_tokenizer(words)
    cells = changes.pop("cells", True)
    shape = changes.get("shape") or SHAPES[task]
    facts = {"cells": cells, "label": label, "method": label.partition(",")[0]}
    identity = make_identity(task, model, shape, tokenizer, **facts)
    manifest = Manifest(
        identity=identity,
        environment={"python": "3", "libraries": {"c4-dlm": "1"}, "threads": 1},
        tokenizer_file_sha256=text_hash(tokenizer.to_str()),
    )
    folder = run_folder(root, model, task, label)
    with RunWriter(folder) as writer:
        writer.start(manifest, tokenizer.to_str(), fresh=False)
        for t in numbers:
            made = make_decode(task, t, tokenizer, identity, **changes)
            writer.add(made.row, made.cells if cells else None)
        writer.seal(range(min(numbers), max(numbers) + 1))
    return folder
