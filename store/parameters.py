"""Numeric parameters that refuse what cannot be meant; gates and commit rules share them."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from c4.errors import ConfigError, unknown_name

Value = float | str
"""A parameter as a user writes it."""

TRUTHS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def parameter(
    default: float,
    *,
    low: float = 0.0,
    high: float = np.inf,
    meaning: str = "",
    stricter: int = 1,
    whole: bool = False,
) -> Any:
    """A numeric field of a gate or a rule.

    Args:
        low: the least value that makes sense, as `high` is the greatest.
        stricter: 1 if a higher value makes a gate exit later, -1 if a lower one does.
        whole: whether it counts something, so that fractions and infinity make no sense.
    """
    facts = {"low": low, "high": high, "meaning": meaning, "stricter": stricter, "whole": whole}
    return field(default=default, metadata=facts)


@dataclass(frozen=True)
class Checked:
    """Refuses parameters that cannot be meant, on construction."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            if "low" not in spec.metadata:
                continue
            low, high = spec.metadata["low"], spec.metadata["high"]
            value = getattr(self, spec.name)
            try:
                values = np.asarray(value, dtype=np.float64)
                meant = bool(((values >= low) & (values <= high)).all())
                if spec.metadata["whole"]:
                    meant = meant and bool(
                        (np.isfinite(values) & (values == np.floor(values))).all()
                    )
            except (TypeError, ValueError):
                meant = False
            if not meant:
                bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
                kind = "a whole number of " if spec.metadata["whole"] else ""
                raise ConfigError(
                    f"{type(self).__name__} takes {spec.name} {kind}{bounds}, not {value}"
                )


def typed_parameters(name: str, kind: type[object], params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as the fields of a gate or a rule want them; unknown names are refused.

    Args:
        params: values, or the texts that a user wrote.
    """
    if not is_dataclass(kind):
        return dict(params)
    known = {spec.name: spec for spec in fields(kind)}
    for param in params:
        if param not in known:
            raise unknown_name(f"parameter of {name}", param, sorted(known))
    return {param: _typed(name, known[param], value) for param, value in params.items()}


def _typed(name: str, spec: Field[Any], value: Any) -> Any:
    wanted: object = spec.type
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        if value not in list(wanted):
            raise ConfigError(f"{name} takes {spec.name} of {', '.join(wanted)}, not {value!r}")
        return wanted(value)
    if wanted is bool and not isinstance(value, bool):
        if str(value).lower() not in TRUTHS:
            raise ConfigError(f"{name} takes {spec.name} on or off, not {value!r}")
        return TRUTHS[str(value).lower()]
    if wanted in (str, "str") or not isinstance(value, str):  # a name: annotations not evaluated
        return value
    read = parse_value(value)
    if wanted in (float, int, "float", "int") and isinstance(read, str):
        raise ConfigError(f"{name} takes {spec.name} as a number, not {value!r}")
    return read


def parse_value(text: str) -> Value:
    """A number, if the text is one, else the word."""
    try:
        return float(text)
    except ValueError:
        return text.strip()
