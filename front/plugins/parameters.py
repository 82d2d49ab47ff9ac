"""Parameters of gates and commit rules: bounds, types and parsing."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from c4.errors import ConfigError, shortened, unknown_name

Value = float | str
"""Value of a parameter as parsed from a user's text."""

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
    """Declare a numeric field of a gate or a rule.

    Args:
        low: minimum value; `high` is the maximum.
        stricter: 1 if a higher value makes a gate exit later, -1 if a lower one does.
        whole: whether the value must be a finite whole number.
    """
    facts = {"low": low, "high": high, "meaning": meaning, "stricter": stricter, "whole": whole}
    return field(default=default, metadata=facts)


def bounds_of(spec: Field[Any]) -> dict[str, Any] | None:
    """Return what a field declares with `parameter`; None if it declares no bounds."""
    if "low" not in spec.metadata:
        return None
    usual = {"high": np.inf, "meaning": "", "stricter": 1, "whole": False}
    facts = {**usual, **spec.metadata}
    return {**facts, "whole": facts["whole"] or spec.type in (int, "int")}


@dataclass(frozen=True)
class Checked:
    """Base class that checks its parameters' bounds on construction."""

    def __post_init__(self) -> None:
        require_meant(self)


def require_meant(made: Any) -> None:
    """Raise `ConfigError` if a gate or a rule has a value outside its declared bounds."""
    for spec in fields(made):
        _require_within_bounds(type(made).__name__, spec, getattr(made, spec.name))


def _require_within_bounds(owner: str, spec: Field[Any], value: Any) -> None:
    facts = bounds_of(spec)
    if facts is None or (value is None and spec.default is None):
        return
    low, high, whole = (facts[name] for name in ("low", "high", "whole"))
    try:
        values = np.asarray(value, dtype=np.float64)
        meant = ((values >= low) & (values <= high)).all()
        if whole:
            meant = meant and (np.isfinite(values) & (values == np.floor(values))).all()
    except (TypeError, ValueError):
        meant = False
    if not meant:
        kind = "a whole number " if whole else ""
        least = "of at least" if whole else "at least"
        bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"{least} {low:g}"
        raise ConfigError(f"{owner} takes {spec.name} {kind}{bounds}, not {value}")


def settable(kind: Any) -> list[Field[Any]]:
    """Fields of a dataclass that are parameters: those of its constructor."""
    return [spec for spec in fields(kind) if spec.init]


RESERVED = {"name", "source_sha256", "reading", "ending"}
"""Other keys next to the parameters of a gate or a rule in manifests and labels."""


def _refuse_reserved(name: str, params: Iterable[str]) -> None:
    for param in RESERVED.intersection(params):
        raise ConfigError(
            f"{name} has a parameter named {param}, which means something else in the identity of "
            "a run; rename it"
        )


def typed_parameters(name: str, kind: type[object], params: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters to the field types of a gate or a rule; reject unknown names.

    Args:
        params: values, or texts that a user typed.
    """
    if not is_dataclass(kind):
        return dict(params)
    known = {spec.name: spec for spec in settable(kind)}
    for param in params:
        if param not in known:
            raise unknown_name(f"parameter of {name}", param, sorted(known))
    _refuse_reserved(name, known)
    for spec in known.values():
        if MISSING is spec.default is spec.default_factory and spec.name not in params:
            raise ConfigError(
                f"the parameter {spec.name} of {name} has no default; give it one, as in "
                f"{spec.name}: float = 0.5"
            )
    try:
        wanted = get_type_hints(kind)
    except Exception:  # an annotation may use names imported only for type checking
        built_in = {one.__name__: one for one in (bool, float, int, str)}
        wanted = {spec.name: built_in.get(str(spec.type), spec.type) for spec in fields(kind)}
    typed = {param: _typed(name, param, wanted[param], value) for param, value in params.items()}
    for param, value in typed.items():
        if not issubclass(kind, Checked):  # `Checked` checks on construction
            _require_within_bounds(name, known[param], value)
    return typed


def _typed(owner: str, param: str, wanted: Any, value: Any) -> Any:
    """Convert a value to its field's type; texts are parsed unless the field is a string."""
    if get_origin(wanted) in (Union, UnionType) and NoneType in get_args(wanted):
        if value is None or str(value).lower() == "none":
            return None
        others = [kind for kind in get_args(wanted) if kind is not NoneType]
        wanted = others[0] if len(others) == 1 else object
    if get_origin(wanted) is Literal or (isinstance(wanted, type) and issubclass(wanted, Enum)):
        return _one_of(owner, param, wanted, value)
    if wanted is bool and not isinstance(value, bool):
        if str(value).lower() not in TRUTHS:
            raise ConfigError(f"{owner} takes {param} on or off, not {value!r}")
        return TRUTHS[str(value).lower()]
    if wanted is str or not isinstance(value, str | float):
        return value  # arrays of a grid stay as they are
    read: Any = parse_value(value) if isinstance(value, str) else value
    if wanted in (float, int) and isinstance(read, str):
        what = "a number" if wanted is float else "a whole number"
        raise ConfigError(f"{owner} takes {param} as {what}, not {value!r}")
    if wanted is int:
        if not read.is_integer():
            raise ConfigError(f"{owner} takes {param} as a whole number, not {value!r}")
        return int(read)
    return read


def _one_of(owner: str, param: str, wanted: Any, value: Any) -> Any:
    """Return the member of an enumeration or a `Literal` that a value stands for."""
    members = {str(member): member for member in get_args(wanted)}
    if get_origin(wanted) is not Literal:
        members = {str(member.value): member for member in wanted}
    value = value.value if isinstance(value, Enum) else value
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if text not in members:
        raise ConfigError(f"{owner} takes {param} of {', '.join(members)}, not {text!r}")
    return members[text]


def plain_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters to JSON values; raise `ConfigError` for any that JSON cannot store."""
    _refuse_reserved(name, settings)
    plain = {param: plain_value(value) for param, value in settings.items()}
    for param, value in plain.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise ConfigError(
                f"{name} has a parameter {param} that a manifest cannot keep, "
                f"{shortened(repr(value))}; use numbers, words and truths"
            ) from None
    return plain


def plain_value(value: Any) -> Any:
    """Convert a parameter to a JSON value, infinity to text; others are returned unchanged."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    return value


def parse_value(text: str) -> Value:
    """Parse a number; other texts are returned without surrounding white space."""
    try:
        return float(text)
    except ValueError:
        return text.strip()
