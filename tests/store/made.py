"""Runs made by hand, without a model, and what a machine may do to whoever writes them."""

import json
import os
import signal
import sys
from dataclasses import asdict, replace

import numpy as np

from c4.gates.steps import fixed_point
from c4.store.cells import Cells
from c4.store.check import State, check_run
from c4.store.columns import RESOLUTION
from c4.store.manifest import (
    Manifest,
    content_checksum,
    read_tokenizer,
    run_folder,
    text_hash,
)
from c4.store.rows import Row
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Grade, Shape, Verdict

SHAPE = Shape(length=6, budget=6, block_length=3)
PARTS = [range(0, 3), range(3, 5)]


def make_manifest(cells=True, **changes):
    """A manifest of a full decode, or of what the changes say."""
    identity = {
        "task": "gsm8k",
        "origin": "x:1",
        "source": "x",
        "model": "m",
        "revision": None,
        "device": "cpu",
        "dtype": "float32",
        "seed": 0,
        "order": "as it is",
        "resolution": RESOLUTION,
        "shape": asdict(SHAPE),
        "weights_sha256": "0" * 64,
        "tokenizer_sha256": "1" * 64,
        "chat_template": False,
        "vocab_size": 1000,
        "mask_id": 999,
        "end_ids": [],
        "shift": False,
        "method": "baseline",
        "label": "baseline",
        "rule": {"name": "schedule"},
        "gate": None,
        "forward": {"cache": "off"},
        "cells": cells,
        "batch": 1,
    }
    return Manifest(
        identity=identity | changes,
        environment={"python": "3", "libraries": {"c4-dlm": "1"}, "threads": 2},
        tokenizer_file_sha256=text_hash("{}"),
    )


MANIFEST = make_manifest()


def make_cells(seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    size = (shape.budget, shape.length)
    signals = {name: fixed_point(name, rng.random(size, dtype=np.float32)) for name in RESOLUTION}
    return Cells(
        token=rng.integers(0, 1000, size, dtype=np.int32), masked=rng.random(size) < 0.5, **signals
    )


def make_row(index, shape=SHAPE):
    return Row(
        trajectory=index,
        source_row=index + 100,
        prompt=f"problem {index}, “quoted”",
        prompt_ids=[1, 2, index],
        target="7",
        preamble="",
        tests="",
        choices=["red", "blue"],
        final_ids=list(range(shape.length)),
        text="text",
        answer=None if index % 2 else "7",
        verdict=Verdict.RIGHT if index % 3 else Verdict.WRONG,
        **asdict(AnswerReading()),
        **asdict(shape),
        steps=shape.budget,
        tokens_before_end=4,
        wall_seconds=0.125 * index,
        block_steps=[shape.budget - index, index],
        block_seconds=[0.5, 0.25],
        exit_step=index or None,
        committed_by=[0, 1, 2, 3, 4, 0],
        commit_step=[1] * shape.length,
        revoked=index,
    )


def make_decode(index, manifest=MANIFEST):
    shape = manifest.shape
    cells = make_cells(index, shape) if manifest.identity["cells"] else None
    return make_row(index, shape), cells


def write(folder, indices=range(5), parts=PARTS, manifest=MANIFEST, *, fresh=False):
    """What a recording does, without a model. Returns the trajectories it had to make."""
    with RunWriter(folder) as writer:
        writer.start(manifest, "{}", fresh=fresh)
        todo = set(indices) - writer.sealed - writer.pending.keys()
        for index in sorted(todo):
            writer.add(*make_decode(index, manifest))
        for part in parts:
            writer.seal(part)
    return todo


def make_run(folder, manifest=MANIFEST):
    """A run with a file of every kind: three trajectories are sealed, two pending, one regraded."""
    write(folder, parts=PARTS[:1], manifest=manifest)
    add_grade(folder, 1, Verdict.WRONG)
    return folder


def add_grade(folder, number, verdict, reading=None):
    with RunWriter(folder) as writer:
        writer.go_on(open_run(folder).manifest)
        writer.add_grades({number: Grade("g", verdict)}, reading or AnswerReading())


def problems(folder):
    """What is wrong with a run, one line for each file that is."""
    return [finding.what for finding in check_run(folder) if finding.state is State.PROBLEM]


def cut(path):
    """Damage a file."""
    path.write_bytes(path.read_bytes()[:-1])


def snapshot(folder):
    """Every file that matters, by name and bytes."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def in_a_child_that_dies_at(event, job):
    """Run the job in a forked process that kills itself, unannounced, at its n-th file event.

    Returns whether the job got to its end first.
    """
    pid = os.fork()
    if pid == 0:
        seen = 0

        def count(name, args):
            nonlocal seen
            if name in ("os.rename", "os.remove", "os.rmdir", "open", "os.mkdir"):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        job()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def write_anew(folder, root, numbers=(40, 41, 42), **identity):
    """A sound run with the same decodes in other files: some of them, or of another identity."""
    run = open_run(folder)
    manifest = replace(run.manifest, identity=dict(run.manifest.identity) | identity)
    names = (str(manifest.identity[name]) for name in ("model", "task", "label"))
    target = run_folder(root, *names)
    with RunWriter(target) as writer:
        writer.begin(manifest, read_tokenizer(folder, run.manifest))
        for row, (_, cells) in zip(run.rows(), run.cells(), strict=True):
            if row.trajectory in numbers:
                writer.add(row, cells, [manifest.made_with])
    return target


def write_calibration(path, gate, **parameters):
    """Write a file as `c4 calibrate` does, with one setting and a pool of one trajectory."""
    frozen = {
        "gate": gate,
        "parameters": parameters,
        "statement": "",
        "reading": asdict(AnswerReading()),
        "pool": [{"identity": MANIFEST.identity, "trajectories": [0]}],
        "table": [parameters | {"worst_drop": 0.0}],
        "seconds": 1.0,
    }
    path.write_text(json.dumps(frozen | {"checksum": content_checksum(frozen)}))
    return path
