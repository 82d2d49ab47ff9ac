"""Memory and time of loading a checkpoint of LLaDA-8B's width.

    python benchmarks/bench_loading.py [--layers 2] [--shard 1.5]

Writes a random checkpoint in bfloat16, in shards, to a temporary folder (2.9 GB for two layers; the
embedding and the head are 1.04 GB each, as LLaDA-8B's are), and loads it on the CPU in fresh
processes, once as it is stored and once in float32. A thread of the process samples its memory
while it loads. The limit is on what the process has at its peak beyond the weights that stay,
interpreter and libraries included, measured in the largest shard. The time is compared with that
of reading the same files into memory, in the same process. The files are in the page cache, since
they have just been written. Needs 7 GB of free memory.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from c4.models import find_checkpoint
from c4.models._architectures import architecture_of
from c4.models._build import build_model
from c4.models._checkpoint import WEIGHTS_INDEX, weight_files
from c4.models._devices import DTYPES

MEMORY_LIMIT = 1.1
WIDTH, INNER, ROWS, HEADS = 4096, 12288, 126464, 32
CONFIG = {
    "model_type": "llada",
    "d_model": WIDTH,
    "n_heads": HEADS,
    "n_kv_heads": HEADS,
    "mlp_hidden_size": INNER,
    "vocab_size": ROWS,
    "embedding_size": ROWS,
    "max_sequence_length": 4096,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5,
    "weight_tying": False,
}
SAMPLED = ("VmRSS", "RssAnon", "RssFile")


def shapes(layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of the checkpoint, in LLaDA's order."""
    yield "wte", (ROWS, WIDTH)
    for layer in range(layers):
        for name in ("q_proj", "k_proj", "v_proj", "attn_out"):
            yield f"blocks.{layer}.{name}", (WIDTH, WIDTH)
        for name in ("ff_proj", "up_proj"):
            yield f"blocks.{layer}.{name}", (INNER, WIDTH)
        yield f"blocks.{layer}.ff_out", (WIDTH, INNER)
        for name in ("attn_norm", "ff_norm"):
            yield f"blocks.{layer}.{name}", (WIDTH,)
    yield "ln_f", (WIDTH,)
    yield "ff_out", (ROWS, WIDTH)


def shards(layers: int, most: float) -> list[list[tuple[str, tuple[int, ...]]]]:
    """The tensors, divided in order into files of no more than so many bytes."""
    parts: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    used = 0
    for name, shape in shapes(layers):
        size = 2 * math.prod(shape)
        if parts[-1] and used + size > most:
            parts.append([])
            used = 0
        parts[-1].append((f"model.transformer.{name}.weight", shape))
        used += size
    return parts


def write_checkpoint(folder: Path, layers: int, most: float) -> None:
    """A random checkpoint, one shard in memory at a time."""
    torch.manual_seed(0)
    weight_map = {}
    for number, part in enumerate(shards(layers, most), 1):
        name = f"model-{number:05}.safetensors"
        tensors = {key: torch.randn(shape, dtype=torch.bfloat16) * 0.02 for key, shape in part}
        save_file(tensors, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    (folder / WEIGHTS_INDEX).write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps(CONFIG | {"n_layers": layers}))


def memory() -> dict[str, int]:
    """What Linux says about this process's memory, in bytes."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0][:-1]: int(line[1]) * 1024 for line in lines if line[-1] == "kB"}


class Sampler(threading.Thread):
    """Looks at the memory of its own process every few milliseconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = dict.fromkeys(SAMPLED, 0)
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.005):
            now = memory()
            self.peak = {key: max(self.peak[key], now[key]) for key in SAMPLED}


def read_plainly(files: list[Path]) -> float:
    """Seconds to read all bytes of the files into memory, which is the least that loading takes."""
    start = time.perf_counter()
    for path in files:
        room = torch.empty(path.stat().st_size, dtype=torch.uint8).numpy().data
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(room):
                room = room[count:]
    return time.perf_counter() - start


def load(folder: Path, dtype: str) -> None:
    """Load once, as the only thing this process does, and print what it took as JSON."""
    checkpoint = find_checkpoint(str(folder))
    files = weight_files(checkpoint)
    architecture = architecture_of(checkpoint)
    before = memory()
    sampler = Sampler()
    sampler.start()
    start = time.perf_counter()
    model: Any = build_model(architecture, checkpoint, files, "cpu", DTYPES[dtype])
    seconds = time.perf_counter() - start
    sampler.done.set()
    sampler.join()
    facts = {"before": before["VmRSS"], "highest": memory()["VmHWM"], **sampler.peak}
    facts["weights"] = sum(p.numel() * p.element_size() for p in model.parameters())
    facts["shard"] = max(path.stat().st_size for path in files)
    del model  # its memory is needed for what follows
    print(json.dumps({**facts, "seconds": seconds, "plain": read_plainly(files)}))


def report(dtype: str, facts: dict[str, float]) -> None:
    def gigabytes(key: str) -> str:
        return f"{facts[key] / 1e9:.2f} GB"

    beyond = facts["highest"] - facts["weights"]
    ratio = beyond / facts["shard"]
    own = beyond - facts["before"]
    verdict = "ok" if ratio <= MEMORY_LIMIT else "MISSED"
    print(f"{dtype}: weights {gigabytes('weights')}, largest shard {gigabytes('shard')}")
    print(
        f"  peak {gigabytes('highest')} (anonymous {gigabytes('RssAnon')}, mapped files "
        f"{gigabytes('RssFile')}), of which {gigabytes('before')} before loading"
    )
    print(
        f"  beyond the weights: {beyond / 1e9:.2f} GB, {ratio:.2f} of the largest shard (limit "
        f"{MEMORY_LIMIT}) {verdict}; by loading itself {own / 1e9:.3f} GB"
    )
    print(
        f"  {facts['seconds']:.2f} s, {facts['seconds'] / facts['plain']:.1f} times what reading "
        f"the files into memory takes ({facts['plain']:.2f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--shard", type=float, default=1.5, help="Gigabytes in a shard, at most.")
    parser.add_argument("--load", nargs=2, metavar=("FOLDER", "DTYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load(Path(options.load[0]), options.load[1])
        return
    with tempfile.TemporaryDirectory() as scratch:
        write_checkpoint(Path(scratch), options.layers, options.shard * 1e9)
        for dtype in ("bfloat16", "float32"):
            command = [sys.executable, __file__, "--load", scratch, dtype]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            report(dtype, json.loads(done.stdout))


if __name__ == "__main__":
    main()
