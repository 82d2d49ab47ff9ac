"""A training stops, goes on where it was, ends on time and leaves what c4 loads."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from fresh import FOLDER, SETTINGS

from c4.models import find_checkpoint, load_model
from training import train
from training.checkpoint import Checkpoint
from training.monitor import open_denoiser
from training.ranks import Ranks
from training.settings import PHASES
from training.train import Trainer, prepare, rate

FEW = replace(SETTINGS, pool=32)


def short_phases(minutes):
    return [replace(phase, minutes=minutes, batch_tokens=400) for phase in PHASES[1:3]]


@pytest.fixture
def work(tmp_path):
    """A work folder with the tokenizer that ships, so that none is trained."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FOLDER / name, folder / name)
    prepare(FEW, folder)
    return folder


def steps_of(work, monkeypatch, updates):
    """A trainer that was told to stop during its last update."""
    trainer = Trainer(Ranks(), FEW, work, short_phases(minutes=1e6))
    real, seen = train.batch_loss, []

    def counted(*args):
        seen.append(args)
        if len(seen) == updates:
            trainer.stop()
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(train, "batch_loss", counted)
        assert not trainer.run()
    return trainer


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(work, monkeypatch):
    other = work.with_name("other")
    shutil.copytree(work, other)
    steps_of(work, monkeypatch, 2)
    resumed = steps_of(work, monkeypatch, 1)
    whole = steps_of(other, monkeypatch, 3)
    assert resumed.progress.step == whole.progress.step == 3
    assert resumed.progress.place == whole.progress.place
    assert resumed.progress.problems == whole.progress.problems
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name


def test_the_monitor_sees_the_weights_of_the_last_checkpoint(work, monkeypatch):
    trainer = steps_of(work, monkeypatch, 1)
    denoiser = open_denoiser(work, trainer.codec)
    assert not denoiser.model.training
    assert denoiser.mask_id == trainer.codec.mask
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(denoiser.model.state_dict()[name], tensor), name


def test_phases_end_when_their_time_is_up_and_leave_a_checkpoint_each(work):
    phases = short_phases(minutes=0.01)
    trainer = Trainer(Ranks(), FEW, work, phases)
    assert trainer.run()
    assert Checkpoint(work).load().progress.phase == 1
    assert trainer.progress.seconds >= 60 * phases[-1].minutes
    models = [load_model(find_checkpoint(str(work / phase.name))) for phase in phases]
    assert models[0].weights_sha256 != models[1].weights_sha256
    last = models[1].denoiser.model.state_dict()
    assert all(torch.equal(last[name], t) for name, t in trainer.model.state_dict().items())


def test_a_work_folder_is_prepared_once(work):
    config = json.loads((work / "config.json").read_text())
    (work / "config.json").write_text(json.dumps(config | {"n_layers": 2}))
    prepare(FEW, work)
    assert json.loads((work / "config.json").read_text())["n_layers"] == 2


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_the_rate_rises_to_its_peak_and_falls_to_its_floor(phase):
    seconds = 60 * phase.minutes
    shares = [rate(phase, seconds * i / 1000) for i in range(1001)]
    peak = shares.index(max(shares))
    assert peak == round(1000 * phase.warmup)
    assert shares[:peak] == sorted(shares[:peak])
    assert shares[peak:] == sorted(shares[peak:], reverse=True)
    assert shares[peak] == 1
    assert shares[-1] == rate(phase, 2 * seconds) == pytest.approx(phase.floor)
