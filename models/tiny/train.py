"""Train the embedded model: `python models/tiny/train.py --out models/tiny --work .train`.

It starts with a few heads set by hand (`circuits.py`). First which letter belongs to which choice
is drilled. Then with probes: every block of a response is predicted in one pass, from copies that
see what stands before them. Then mostly as the decode meets it, with masks in the sequence itself.
Phases run on a clock of training seconds kept in the checkpoint: started again, the script goes on
where it was, and the learning rate reaches its end when the time is up.
"""

import argparse
import dataclasses
import json
import logging
import math
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from circuits import hold_circuits, start_circuits
from corpus import Batch, Codec, Stream, save_tokenizer, train_tokenizer
from monitor import evaluate, open_model
from optimizer import make_optimizers
from ranks import Ranks, run_ranks
from report import write_report
from settings import MIXTURE, PHASES, PhaseSettings, Settings
from torch.nn.functional import cross_entropy
from weights import build_model, save_llada

log = logging.getLogger("train")


@dataclasses.dataclass
class Progress:
    """Where the training stands; all of it is in the checkpoint."""

    phase: int = 0
    step: int = 0
    """Within the phase, as the rest."""
    seconds: float = 0.0
    tokens: int = 0
    problems: Counter[str] = dataclasses.field(default_factory=Counter)
    """By task."""
    place: tuple[int, int] = (0, 0)


class Checkpoint:
    """The one file a training resumes from."""

    def __init__(self, folder: Path, every: float = 60.0) -> None:
        self.path = folder / "checkpoint.pt"
        self.every = every
        self._saved = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._saved >= self.every

    def save(
        self, model: torch.nn.Module, optimizers: list[torch.optim.Optimizer], progress: Progress
    ) -> None:
        """Replace the file in one move: a killed training finds the old one or the new one."""
        part = self.path.with_suffix(".part")
        state = {
            "model": model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
            "progress": dataclasses.asdict(progress) | {"problems": dict(progress.problems)},
        }
        torch.save(state, part)
        os.replace(part, self.path)
        self._saved = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        return torch.load(self.path, weights_only=True) if self.path.exists() else None


def rate(phase: PhaseSettings, seconds: float) -> float:
    """The share of the peak rate at this time: a linear rise, then a cosine."""
    done = min(1.0, seconds / (60 * phase.minutes))
    if done < phase.warmup:
        return max(0.01, done / phase.warmup)
    fallen = (done - phase.warmup) / (1 - phase.warmup)
    return phase.floor + (1 - phase.floor) * (1 + math.cos(math.pi * fallen)) / 2


def batch_loss(model: Any, batch: Batch, ranks: Ranks) -> torch.Tensor:
    """The part of this process in the weighted cross-entropy; the parts add up to the batch's.

    The head is applied only where there is a loss.
    """
    mine = slice(ranks.rank, None, ranks.world)
    if not len(batch.inputs[mine]):  # a batch of one row leaves the other process without a row
        return sum((param.sum() for param in model.parameters()), torch.zeros(())) * 0.0
    targets = torch.from_numpy(batch.targets[mine]).flatten()
    weights = torch.from_numpy(batch.weights[mine]).flatten()
    chosen = (weights > 0).nonzero().squeeze(1)
    inputs = torch.from_numpy(batch.inputs[mine])
    hidden = model.model(input_ids=inputs, **sight_of(batch, mine))[0]  # (rows, length, width)
    logits = model.lm_head(hidden.flatten(0, 1)[chosen])  # (chosen, vocabulary)
    losses = cross_entropy(logits, targets[chosen], reduction="none")
    return (losses * weights[chosen]).sum() / float(batch.weights.sum())


def sight_of(batch: Batch, mine: slice) -> dict[str, torch.Tensor]:
    """Positions and attention of a batch in which not everybody sees everybody."""
    if batch.sight is None:
        return {}
    arrays = (batch.sight.positions, batch.sight.order, batch.sight.limit, batch.sight.group)
    positions, order, limit, group = (torch.from_numpy(array[mine]) for array in arrays)
    before = order[:, None, :] <= limit[:, :, None]  # (rows, length, length)
    together = (group[:, None, :] == group[:, :, None]) & (group[:, :, None] > 0)
    return {"position_ids": positions, "attention_mask": (before | together)[:, None]}


class Trainer:
    """Runs the phases one after the other, from a checkpoint if there is one."""

    def __init__(self, ranks: Ranks, settings: Settings, work: Path) -> None:
        self.ranks, self.settings, self.work = ranks, settings, work
        self.codec = Codec.load(work)
        self.checkpoint = Checkpoint(work)
        self.progress = Progress()
        self.asked_to_stop = self.stopping = False
        torch.manual_seed(settings.seed)
        vocabulary = self.codec.tokenizer.get_vocab_size()
        self.model = build_model(settings.model, vocabulary)
        start_circuits(self.model, settings.circuits, settings.model.embedding_std)
        self._resume()
        if ranks.rank == 0:
            signal.signal(signal.SIGTERM, self._stop)
            signal.signal(signal.SIGINT, self._stop)

    def _stop(self, *_: object) -> None:
        self.asked_to_stop = True

    def _resume(self) -> None:
        saved = self.checkpoint.load()
        if saved:
            self.model.load_state_dict(saved["model"])
            self.progress = Progress(**saved["progress"])
            self.progress.problems = Counter(self.progress.problems)
        self._optimizers_of_phase()
        if saved:
            for optimizer, state in zip(self.optimizers, saved["optimizers"], strict=True):
                optimizer.load_state_dict(state)

    def _optimizers_of_phase(self) -> None:
        self.optimizers = make_optimizers(self.model, PHASES[self.progress.phase], self.ranks)
        self.peaks = [optimizer.param_groups[0]["lr"] for optimizer in self.optimizers]

    def run(self) -> bool:
        """Train to the end; False if stopped before."""
        while True:
            self._run_phase(PHASES[self.progress.phase])
            if self.stopping:
                self._save()
                return False
            last = self.progress.phase == len(PHASES) - 1
            self._export(PHASES[self.progress.phase].name)
            if last:
                self._save()
                return True
            self.progress = Progress(phase=self.progress.phase + 1)
            self._optimizers_of_phase()

    def _run_phase(self, phase: PhaseSettings) -> None:
        recent: list[float] = []
        clock = time.monotonic()
        stream = Stream(self.settings, self.codec, phase)
        for batch in stream.batches(self.progress.place):
            if self.stopping or self.progress.seconds >= 60 * phase.minutes:
                break
            now = time.monotonic()
            recent.append(self._step(phase, batch, passed=now - clock))
            clock = now
            if self.progress.step % 20 == 0:
                self._log(phase, recent)
                recent = []
            if self.checkpoint.due():
                self._save()

    def _step(self, phase: PhaseSettings, batch: Batch, passed: float) -> float:
        """One update. The first process's clock and its wish to stop are everyone's."""
        loss = batch_loss(self.model, batch, self.ranks)
        loss.backward()
        first = self.ranks.rank == 0
        mine = [loss.item(), passed * first, float(self.asked_to_stop)]
        params = list(self.model.parameters())
        total, seconds, stop = self.ranks.sum_gradients(params, torch.tensor(mine)).tolist()
        self.stopping = stop > 0
        self.progress.seconds += seconds
        if self.progress.seconds < 60 * phase.held_minutes:
            hold_circuits(self.model)
        torch.nn.utils.clip_grad_norm_(params, self.settings.clip)
        self._update(rate(phase, self.progress.seconds))
        self.progress.step += 1
        self.progress.tokens += batch.inputs.size
        self.progress.problems += batch.problems
        self.progress.place = batch.place
        return total

    def _update(self, share: float) -> None:
        for optimizer, peak in zip(self.optimizers, self.peaks, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _log(self, phase: PhaseSettings, recent: list[float]) -> None:
        if self.ranks.rank > 0:
            return
        line = {
            "phase": phase.name,
            "step": self.progress.step,
            "tokens": self.progress.tokens,
            "seconds": round(self.progress.seconds, 1),
            "loss": round(sum(recent) / len(recent), 5),
            "rate": round(rate(phase, self.progress.seconds), 4),
            "problems": dict(self.progress.problems),
        }
        with (self.work / "log.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _save(self) -> None:
        if self.ranks.rank == 0:
            self.checkpoint.save(self.model, self.optimizers, self.progress)

    def _export(self, phase: str) -> None:
        """Keep the phase's weights in LLaDA's format."""
        if self.ranks.rank > 0:
            return
        folder = self.work / phase
        folder.mkdir(exist_ok=True)
        save_llada(self.model.state_dict(), self.settings.model, self.codec, folder)
        log.info("%s phase done: %s", phase, self.progress)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="Where the weights go.")
    parser.add_argument("--work", type=Path, required=True, help="Checkpoint and log.")
    parser.add_argument("--processes", type=int, default=2, help="One per core is best.")
    return parser.parse_args()


def train(ranks: Ranks, settings: Settings, work: Path) -> Trainer | None:
    """The trainer when it is done, None if it was stopped before."""
    torch.set_num_threads(1)
    trainer = Trainer(ranks, settings, work)
    return trainer if trainer.run() else None


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options = parse()
    settings = Settings()
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.work / "tokenizer.json").exists():
        tokenizer = train_tokenizer(settings.vocabulary)
        save_tokenizer(tokenizer, options.work, settings.model.max_length)
    trainer = run_ranks(options.processes, train, settings, options.work)
    if trainer:
        save_llada(trainer.model.state_dict(), settings.model, trainer.codec, options.out)
        save_tokenizer(trainer.codec.tokenizer, options.out, settings.model.max_length)
        write_report(options.work, options.out, settings, watch(options.out))


def watch(folder: Path, n: int = 100) -> dict[str, Any]:
    """The finished model's size and its accuracy by the monitor's quick decode."""
    torch.set_num_threads(2)
    codec, model = Codec.load(folder), open_model(folder)
    scores = [evaluate(model, codec, task, n, 0) for task in MIXTURE]
    for score in scores:
        log.info("%s", score)
    return {
        "parameters": sum(param.numel() for param in model.parameters()),
        "monitoring": {
            score.task: {"n": n, "accuracy": score.correct / n, "in_tail": score.in_tail}
            for score in scores
        },
    }


if __name__ == "__main__":
    main()
