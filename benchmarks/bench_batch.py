"""What decoding several examples together gains, and what it changes.

    python benchmarks/bench_batch.py [--n 32] [--passes 3] [--model embedded] [--model wide]

Records the same examples with each batch size in turn, on the embedded model and on a wider random
one, and prints trajectories per second as ratios to a batch of 1 measured in the same pass: by the
clock, and by processor time, which other work on the machine disturbs less. Beside them stands in
how many trajectories something differs from decoding alone: a token, an exit, an answer. Padding is
part of the price, and so are dummies: `filled` is the share of places that held an example.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from c4.gates.gate import needs_future
from c4.gates.registry import GATES, make_gate
from c4.models import EMBEDDED, architecture_of, find_checkpoint, llama_to_llada
from c4.models.batch import padded
from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import start_recording
from c4.replay.verify import FULL, compare_batches
from c4.store.runs import Run, open_run

SIZES = (1, 2, 4, 8, 16)
WIDE = {"d_model": 512, "n_heads": 8, "n_kv_heads": 8, "n_layers": 4, "mlp_hidden_size": 1376}
TASK = "mmlu"


@dataclass(frozen=True)
class Measured:
    """One recording of all examples."""

    clock: float
    processor: float
    filled: float
    run: Run


def make_wide(folder: Path) -> Path:
    """A random checkpoint of LLaDA's kind, with the embedded model's tokenizer."""
    source = find_checkpoint(EMBEDDED).folder
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    config = json.loads((source / "config.json").read_text()) | WIDE
    (folder / "config.json").write_text(json.dumps(config))
    architecture = architecture_of(find_checkpoint(str(folder)))
    torch.manual_seed(0)
    model: Any = architecture.model(architecture.config)
    tied = architecture.config.tie_word_embeddings
    tensors = {
        llama_to_llada(name): tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def measure(model: str, n: int, passes: int, scratch: Path) -> dict[int, list[Measured]]:
    """Record with every size in turn, several times over."""
    found: dict[int, list[Measured]] = {size: [] for size in SIZES}
    loaded = None
    for turn in range(passes):
        for size in SIZES:
            out = scratch / f"{turn}-{size}"
            config = RunConfig(
                task=TASK, model=model, source="embedded", n=n, batch=size, graded=False, out=out
            )
            plan = plan_recording(config)
            loaded = loaded or load_planned(plan)
            clock, processor = time.perf_counter(), time.process_time()
            with start_recording(plan, loaded) as recording:
                for _ in recording:
                    pass
            spent = time.perf_counter() - clock, time.process_time() - processor
            run = open_run(plan.folder)
            found[size].append(Measured(*spent, share_filled(run, size), run))
    return found


def share_filled(run: Run, size: int) -> float:
    """The share of places that held an example. Full decodes all take the same number of steps."""
    lengths = Counter(padded(len(row.prompt_ids)) for row in run.rows())
    rounds = sum(math.ceil(count / size) for count in lengths.values())
    return len(run) / (rounds * size)


def lines(name: str, found: dict[int, list[Measured]]) -> Iterator[str]:
    """One line a size, as a row of a Markdown table."""
    gates = {gate: make_gate(gate) for gate, kind in GATES.items() if not needs_future(kind)}
    alone = found[1]
    for size in SIZES:
        ratios = [
            statistics.median(
                getattr(one, kind) / getattr(many, kind)
                for one, many in zip(alone, found[size], strict=True)
            )
            for kind in ("clock", "processor")
        ]
        rows = compare_batches(alone[0].run, found[size][0].run, gates)
        full = next(row for row in rows if row.gate == FULL)
        exits = sum(row.other_exits for row in rows)
        per_second = len(found[size][0].run) / statistics.median(m.clock for m in found[size])
        yield (
            f"| {name} | {size} | {found[size][0].filled:.0%} | {per_second:.2f} "
            f"| {ratios[0]:.2f}× | {ratios[1]:.2f}× "
            f"| {full.other_tokens} | {exits} | {full.other_answers} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--model", action="append", choices=["embedded", "wide"])
    options = parser.parse_args()
    columns = "model | batch | filled | trajectories/s | clock | processor | tokens | exits"
    print(f"| {columns} | answers |\n{'|---' * 9}|")
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        scratch = Path(temporary)
        models = {"embedded": EMBEDDED, "wide": str(make_wide(scratch / "wide"))}
        for name in options.model or models:
            runs = scratch / f"runs of {name}"
            found = measure(models[name], options.n, options.passes, runs)
            for line in lines(name, found):
                print(line, flush=True)


if __name__ == "__main__":
    main()
