"""Names of devices and number formats: one, or several with commas between them."""

import pytest
import torch

from c4.errors import ConfigError
from c4.models import resolve_device, resolve_devices, resolve_dtype


@pytest.fixture
def four_gpus(monkeypatch):
    """A machine with four GPUs, as far as torch says."""
    ones = torch.ones

    def on_some_device(*args, device=None, **kwargs):
        if torch.device(device).index not in (None, 0, 1, 2, 3):
            raise RuntimeError("CUDA error: invalid device ordinal\nmore")
        return ones(*args, **kwargs)

    monkeypatch.setattr(torch, "ones", on_some_device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)


ALL = ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("auto", ALL),
        ("cuda", ALL),
        ("cuda:2", ["cuda:2"]),
        ("cuda:0,cuda:1", ["cuda:0", "cuda:1"]),
        ("cuda:3, cuda:1", ["cuda:3", "cuda:1"]),
        ("cpu", ["cpu"]),
        ("cpu:0", ["cpu"]),
    ],
)
def test_several_devices_are_named_with_commas(four_gpus, text, devices):
    assert resolve_devices(text) == devices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda:0,cuda:0", "names cuda:0 twice; a device holds one model"),
        ("cuda,cuda:1", "names cuda:1 twice"),
        ("cpu,cpu:0", "names cpu twice"),
        ("cuda:0,cpu", "mixes kinds of devices"),
        ("cuda:0,", "expected names of devices with commas between them, as in cuda:0,cuda:1"),
        (",", "expected names of devices"),
        ("auto,cuda:1", "expected names of devices"),
        ("cuda:0,cuda:4", "device 'cuda:4' cannot be used here: CUDA error: invalid device"),
        ("cuda:0;cuda:1", "device 'cuda:0;cuda:1' cannot be used here"),
        ("cuda:0,1", "device '1' cannot be used here"),
        ("", "device '' cannot be used here"),
        ("gpu", "device 'gpu' cannot be used here"),
    ],
)
def test_devices_that_cannot_be_meant_are_refused(four_gpus, text, message):
    with pytest.raises(ConfigError) as caught:
        resolve_devices(text)
    assert message in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_there_is_the_cpu():
    assert resolve_devices("auto") == [resolve_device("auto")] == ["cpu"]
    with pytest.raises(ConfigError, match="device 'cuda:0' cannot be used here"):
        resolve_devices("cuda:0,cuda:1")


def test_devices_and_dtypes_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="device 'cuda:99' cannot be used here"):
        resolve_device("cuda:99")
    with pytest.raises(ConfigError, match="no dtype named 'int4'"):
        resolve_dtype("int4", "cpu")
    assert resolve_dtype("auto", "cuda:0") == "bfloat16"
