"""Versions of the libraries in use; nothing here loads torch."""

import platform
from importlib.metadata import version
from typing import Any

LIBRARIES = ("c4-dlm", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


def programs() -> dict[str, Any]:
    """The machine's kind, and the versions of what runs on it."""
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }
