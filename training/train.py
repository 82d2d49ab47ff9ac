"""Train the embedded model: `python -m training.train --out models/tiny --work .train`.

The network starts with a few heads set by hand (`circuits.py`). The first phase drills which letter
belongs to which choice. The second uses probes: every block of a response is predicted in one pass,
from copies that see what stands before them. The later phases mask most rows in the sequence,
as the decode meets them. Phases run on a clock of training seconds that is kept in the checkpoint,
so a training that is started again goes on where it was and its learning rate ends on time.
"""

import argparse
import json
import logging
import math
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from training.batches import Batch
from training.checkpoint import Checkpoint, Progress
from training.circuits import hold_circuits, start_circuits
from training.codec import Codec, save_tokenizer, train_tokenizer
from training.loss import batch_loss
from training.monitor import evaluate, open_denoiser
from training.optimizer import make_optimizers
from training.ranks import Ranks, run_ranks
from training.report import write_report
from training.settings import MIXTURE, PHASES, PhaseSettings, Settings
from training.stream import Stream
from training.weights import build_network, save_weights, write_config

log = logging.getLogger("train")


def rate(phase: PhaseSettings, seconds: float) -> float:
    """The share of the peak rate at this time: a linear rise, then a cosine."""
    done = min(1.0, seconds / (60 * phase.minutes))
    if done < phase.warmup:
        return max(0.01, done / phase.warmup)
    fallen = (done - phase.warmup) / (1 - phase.warmup)
    return phase.floor + (1 - phase.floor) * (1 + math.cos(math.pi * fallen)) / 2


class Trainer:
    """Runs the phases one after the other, from a checkpoint if there is one."""

    def __init__(
        self, ranks: Ranks, settings: Settings, work: Path, phases: Sequence[PhaseSettings] = PHASES
    ) -> None:
        self.ranks, self.settings, self.work, self.phases = ranks, settings, work, phases
        self.codec = Codec.load(work)
        self.checkpoint = Checkpoint(work)
        self.asked_to_stop = self.stopping = False
        torch.manual_seed(settings.seed)
        self.model = build_network(work)
        start_circuits(self.model, settings.circuits, settings.model.embedding_std)
        self._resume()

    def stop(self, *_: object) -> None:
        """End after the next update; also what a signal calls."""
        self.asked_to_stop = True

    def _resume(self) -> None:
        saved = self.checkpoint.load()
        self.progress = saved.progress if saved else Progress()
        if saved:
            self.model.load_state_dict(saved.model)
        self._enter_phase()
        if saved:
            for optimizer, state in zip(self.optimizers, saved.optimizers, strict=True):
                optimizer.load_state_dict(state)

    def _enter_phase(self) -> None:
        phase = self.phases[self.progress.phase]
        self.optimizers = make_optimizers(self.model, phase, self.ranks)
        self.peaks = [optimizer.param_groups[0]["lr"] for optimizer in self.optimizers]

    def run(self) -> bool:
        """Train to the end; False if stopped before."""
        while True:
            phase = self.phases[self.progress.phase]
            self._run_phase(phase)
            if not self.stopping:
                self._export(phase.name)
            if self.stopping or self.progress.phase == len(self.phases) - 1:
                self._save()
                return not self.stopping
            self.progress = Progress(phase=self.progress.phase + 1)
            self._enter_phase()

    def _run_phase(self, phase: PhaseSettings) -> None:
        recent: list[float] = []
        clock = time.monotonic()
        stream = Stream(self.settings, self.codec, phase, self.progress.phase)
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
        """Make one update and return its loss.

        All processes follow the clock of the first, and stop when it is asked to.
        """
        loss = batch_loss(self.model, batch, self.ranks)
        loss.backward()
        mine = [loss.item(), passed * self.ranks.first, float(self.asked_to_stop)]
        params = list(self.model.parameters())
        total, seconds, stop = self.ranks.sum_gradients(params, torch.tensor(mine)).tolist()
        self.stopping = stop > 0
        self.progress.seconds += seconds
        if self.progress.seconds < 60 * phase.held_minutes:
            hold_circuits(self.model)
        torch.nn.utils.clip_grad_norm_(params, self.settings.clip)
        self._update(rate(phase, self.progress.seconds))
        self.progress.count(batch)
        return total

    def _update(self, share: float) -> None:
        for optimizer, peak in zip(self.optimizers, self.peaks, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _log(self, phase: PhaseSettings, recent: list[float]) -> None:
        if not self.ranks.first:
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
        if self.ranks.first:
            self.checkpoint.save(self.model, self.optimizers, self.progress)

    def _export(self, phase: str) -> None:
        """Keep the phase's weights in LLaDA's format."""
        if self.ranks.first:
            export(self, self.work / phase)
            log.info("%s phase done: %s", phase, self.progress)


def prepare(settings: Settings, work: Path) -> None:
    """Train the tokenizer and write down the network's sizes, unless the work folder has both."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "tokenizer.json").exists():
        save_tokenizer(train_tokenizer(settings.vocabulary), work, settings.model.max_length)
    if not (work / "config.json").exists():
        write_config(settings.model, Codec.load(work), work)


def export(trainer: Trainer, folder: Path) -> None:
    """Write a checkpoint that c4 loads: weights, configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(trainer.model.state_dict(), folder)
    write_config(trainer.settings.model, trainer.codec, folder)
    save_tokenizer(trainer.codec.tokenizer, folder, trainer.settings.model.max_length)


def train(ranks: Ranks, settings: Settings, work: Path) -> Trainer | None:
    """The trainer when it is done, None if it was stopped before."""
    torch.set_num_threads(1)
    trainer = Trainer(ranks, settings, work)
    if ranks.first:
        signal.signal(signal.SIGTERM, trainer.stop)
        signal.signal(signal.SIGINT, trainer.stop)
    return trainer if trainer.run() else None


def watch(folder: Path, n: int = 100) -> dict[str, Any]:
    """The finished model's size and its accuracy on validation problems."""
    codec = Codec.load(folder)
    denoiser = open_denoiser(folder, codec)
    scores = [evaluate(denoiser, codec, task, n) for task in MIXTURE]
    for score in scores:
        log.info("%s", score)
    return {
        "parameters": denoiser.model.num_parameters(),
        "monitoring": {
            score.task: {"n": score.n, "accuracy": score.accuracy, "located": score.located}
            for score in scores
        },
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="Where the weights go.")
    parser.add_argument("--work", type=Path, required=True, help="Checkpoint and log.")
    parser.add_argument("--processes", type=int, default=2, help="One per core is best.")
    return parser.parse_args()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options = parse()
    settings = Settings()
    prepare(settings, options.work)
    trainer = run_ranks(options.processes, train, settings, options.work)
    if trainer:
        export(trainer, options.out)
        write_report(options.work, options.out, settings, watch(options.out))


if __name__ == "__main__":
    main()
