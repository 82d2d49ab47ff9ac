"""Versions of the libraries in use, read without importing torch."""

import platform
from importlib.metadata import version
from typing import Any

LIBRARIES = ("c4-dlm", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


def programs() -> dict[str, Any]:
    """Return the machine type and the versions of Python and the libraries."""
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }
