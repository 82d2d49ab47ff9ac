"""Devices and number formats: validate user input and resolve `auto`."""

import torch

from c4.errors import ConfigError, shortened, unknown_name

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(device: str) -> str:
    """Validate a torch device name; `auto` is CUDA if available, otherwise the CPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.ones(1, device=device).cpu()
    except Exception as error:  # torch raises no specific error for an invalid device
        reason = shortened(" ".join(str(error).split("\n")[:1]))
        raise ConfigError(
            f"device {shortened(device)!r} cannot be used here: {reason}; try --device auto"
        ) from None
    return device


def resolve_devices(devices: str) -> list[str]:
    """Resolve a list of devices, each of which holds its own copy of the model.

    Args:
        devices: one device or several separated by commas, as in `cuda:0,cuda:1`. Without a number,
            `cuda` means all GPUs; `auto` is `cuda` if available, otherwise `cpu`.
    """
    names = [name.strip() for name in devices.split(",")]
    if len(names) > 1 and not {"", "auto"}.isdisjoint(names):
        raise ConfigError(
            f"--device {devices!r}: expected names of devices with commas between them, "
            "as in cuda:0,cuda:1"
        )
    found = [one for name in names for one in _every(resolve_device(name))]
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice:
        raise ConfigError(f"--device {devices!r} names {twice} twice; a device holds one model")
    if len({torch.device(name).type for name in found}) > 1:
        raise ConfigError(
            f"--device {devices!r} mixes kinds of devices, whose numbers differ; name one kind"
        )
    return found


def _every(device: str) -> list[str]:
    """Expand a device to full names; `cuda` without a number to all GPUs."""
    kind, index = torch.device(device).type, torch.device(device).index
    if kind in ("cpu", "mps"):
        return [kind]  # there is only one, so its number does not matter
    if kind != "cuda":
        return [device]
    numbers = range(torch.cuda.device_count()) if index is None else [index]
    return [f"cuda:{number}" for number in numbers]


def resolve_dtype(dtype: str, device: str) -> str:
    """Validate a dtype name; `auto` is bfloat16 on CUDA and float32 elsewhere."""
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, ["auto", *DTYPES])
    return dtype
