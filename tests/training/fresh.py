"""What a training begins with: the tokenizer that ships, and a network with its first heads set."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from training.batches import BatchMaker
from training.circuits import start_circuits
from training.codec import Codec
from training.rows import RowMaker
from training.settings import PHASES, Settings
from training.weights import build_network

FOLDER = Path(__file__).parents[2] / "models" / "tiny"
SETTINGS = Settings()


@cache
def shipped_codec() -> Codec:
    return Codec.load(FOLDER)


def fresh_network():
    torch.manual_seed(SETTINGS.seed)
    network = build_network(FOLDER)
    start_circuits(network, SETTINGS.circuits, SETTINGS.model.embedding_std)
    return network


def row_maker(lookup_share=0.0):
    return RowMaker(SETTINGS, shipped_codec(), replace(PHASES[0], lookup_share=lookup_share))


def rows_of(tasks, *, probed=True, lookup_share=0.0):
    maker, rng = row_maker(lookup_share), np.random.default_rng(0)
    return [maker.row(task, 50_000 + i, probed, rng) for i, task in enumerate(tasks)]


def batch_of(rows):
    return BatchMaker(SETTINGS, shipped_codec()).batch(rows, np.random.default_rng(1), (0, 0))
