"""Validated reading of a checkpoint's JSON files, which are untrusted.

A key that holds `null` counts as absent. Every other value is checked before use, so an absurd
configuration raises a readable error instead of allocating memory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from c4.errors import ModelError

LARGEST_FILE = 64 * 2**20
"""Maximum size of a JSON file in bytes; the largest published index has 0.3 MB."""


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file, without its null values."""
    try:
        if not path.is_file():
            raise ModelError(f"{path}: not a file that can be read")
        if path.stat().st_size > LARGEST_FILE:
            raise ModelError(f"{path}: {path.stat().st_size:,} bytes are too many for this file")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: holds {shown(value)} instead of an object with keys")
    return without_null(value)


def without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def shown(value: object) -> str:
    """Format a value for error messages, as shortened JSON."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def whole(
    config: Mapping[str, Any], key: str, default: int | None = None, *, least: int = 1, most: int
) -> int:
    """Return the value of a key, which must be a whole number between two limits."""
    value = _value(config, key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ModelError(
            f"config.json: {key} is {shown(value)}, not a whole number from {least} to {most}"
        )
    return value


def positive(config: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """Return the value of a key, which must be a number above zero and below 1e30."""
    value = _value(config, key, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e30:
        raise ModelError(f"config.json: {key} is {shown(value)}, not a number above zero")
    return float(value)


def flag(config: Mapping[str, Any], key: str, default: bool | None = None) -> bool:
    """Return the value of a key, which must be true or false."""
    value = _value(config, key, default)
    if not isinstance(value, bool):
        raise ModelError(f"config.json: {key} is {shown(value)}, neither true nor false")
    return value


def word(config: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return the value of a key, which must be a string."""
    value = _value(config, key, default)
    if not isinstance(value, str):
        raise ModelError(f"config.json: {key} is {shown(value)}, not a string")
    return value


def section(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a nested object without its null values; empty if the key is absent."""
    value = config.get(key, {})
    if not isinstance(value, dict):
        raise ModelError(f"config.json: {key} is {shown(value)}, not an object with keys")
    return without_null(value)


def _value(config: Mapping[str, Any], key: str, default: object) -> Any:
    value = config.get(key, default)
    if value is None:
        raise ModelError(f"config.json lacks {key}")
    return value
