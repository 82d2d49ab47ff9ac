"""Calibration files: the setting of a gate that `c4 calibrate` chose, read back and checked."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from c4.errors import ConfigError, RunError
from c4.errors.system import reason
from c4.gates.gate import Gate
from c4.gates.registry import GATES, find_gate, make_gate
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.plugins.parameters import Value
from c4.store.labels import frozen_label
from c4.store.locations import Location
from c4.store.manifest import content_checksum, validate_identity
from c4.store.parts import UNREADABLE
from c4.store.storage import list_files, read_file, read_limited
from c4.tasks import AnswerReading, Family

NOT_OURS = "not a file that `c4 calibrate` wrote"

RESULTS = {"steps", "fired", "worst_drop", "losses", "p_value", "keeps", "pareto"}
"""Columns of the table that say how a setting did, beside one of accuracies for each task."""


def column_of(parameter: str) -> str:
    """The column of a parameter, which a gate may call as the table calls a result."""
    is_taken = parameter in RESULTS or parameter.startswith("accuracy_")
    return f"set {parameter}" if is_taken else parameter


@dataclass(frozen=True)
class PoolShare:
    """The trajectories of one run that a setting was chosen on."""

    identity: Mapping[str, Any]
    """The identity of the run, as in its manifest."""
    trajectories: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class FrozenSetting:
    """What a calibration file keeps: the setting that was chosen, what on, and from how many."""

    path: Location
    gate: str
    gate_sha256: str | None
    """A hash of the source of a gate of a user's own; None for one of c4's own."""
    parameters: Mapping[str, Value] | None
    """None where no setting kept the requirement; see `chosen`."""
    reading: AnswerReading
    """How answers were read when it was chosen; it says nothing about another reading."""
    statement: str
    """The result in a sentence that can be quoted."""
    pool: Sequence[PoolShare]
    tried: int
    """Settings in the grid."""
    seconds: float
    """That the search took."""
    worst_drop: float | None
    """Points that the chosen setting loses on the pool, on the task where it loses most."""

    @property
    def file(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def label(self) -> str:
        """What its decisions go by."""
        return frozen_label(self.gate, self.file)

    @property
    def chosen(self) -> Mapping[str, Value]:
        """The chosen parameters; an error where there are none."""
        if self.parameters is None:
            raise ConfigError(f"{self.file}: that calibration chose no setting: {self.statement}")
        return self.parameters

    def check_reading(self, reading: AnswerReading) -> None:
        """Refuse to use the setting under another reading than it was chosen under."""
        if reading != self.reading:
            raise ConfigError(
                f"{self.file} was chosen under {self.reading.options}, and {reading.options} is "
                "asked for; leave these options out, "
                "or calibrate with them"
            )

    def make(self, family: Family, named: Collection[str] = ()) -> Gate:
        """The gate with its frozen parameters.

        Args:
            named: the gates that the user has named. Only these may be somebody's own code: a file
                does not choose what is run.
        """
        typed = GATE_NAMES.by_canonical_name(named)
        if self.gate not in GATES and self.gate not in typed:
            raise ConfigError(
                f"{self.file} names the gate {self.gate!r}, which is not one of c4's own, and a "
                "file does not choose which code is run; if you trust that gate, name it yourself "
                f"beside the file: --gate {self.gate}"
            )
        name = typed.get(self.gate, self.gate)
        self.check_source(name)
        return make_gate(name, family, **self.chosen)

    def check_source(self, name: str) -> None:
        """Refuse the setting for a gate whose source is not what it was chosen for.

        Args:
            name: what the user calls the gate.
        """
        if self.gate_sha256 not in (None, find_gate(name).source_sha256):
            raise ConfigError(
                f"{self.file} was chosen for {self.gate} before its source was edited; calibrate "
                "again"
            )


LARGEST_FILE = 2**28
"""Bytes of a calibration that are read at most; a grid of the most settings takes 30 MB."""
HEAD = 1000
"""Bytes of a file within which its first keys stand, if a calibration wrote it."""
FIRST_KEYS = (b'"gate":', b'"parameters":', b'"reading":')
"""Two of them make a calibration, so that damage to one does not make the file pass for another."""


def find_calibrations(folder: Location) -> list[Location]:
    """The files in a folder that look like calibrations; one may still be damaged."""
    files = (path for path in list_files(folder) if path.suffix == ".json")
    return [path for path in files if _is_calibration(path)]


def _is_calibration(path: Location) -> bool:
    try:
        head = read_file(path, HEAD)  # a large file of another kind need not be read to its end
        return sum(key in head for key in FIRST_KEYS) >= 2
    except (OSError, RunError):
        return False


def check_calibration(path: Location) -> ConfigError | None:
    """What is wrong with a calibration file; one that chose no setting is sound."""
    try:
        load_calibration(path)
    except ConfigError as error:
        return error
    return None


def _is_edited(frozen: Mapping[str, Any]) -> bool:
    """Whether a calibration's content is not what was written."""
    content = {name: value for name, value in frozen.items() if name != "checksum"}
    return "checksum" in frozen and frozen["checksum"] != content_checksum(content)


def load_calibration(path: Location) -> FrozenSetting:
    """What a calibration froze."""
    try:
        frozen = json.loads(read_limited(path, LARGEST_FILE))
        if not isinstance(frozen, dict):
            raise TypeError(f"it holds a {type(frozen).__name__}")
        if _is_edited(frozen):
            raise ConfigError(
                f"{path}: edited or damaged since `c4 calibrate` wrote it (its content does not "
                "match its checksum); calibrate again, or give a setting of your own with --set"
            )
        setting = _frozen_setting(path, frozen)
        if "checksum" not in frozen:
            raise KeyError("checksum")
        return setting
    except KeyError as error:
        if {"gate", "parameters", "table"} <= frozen.keys():
            raise ConfigError(
                f"{path}: written by an earlier c4 (it has no {error}); calibrate again"
            ) from error
        raise ConfigError(f"{path}: {NOT_OURS} (it has no {error})") from error
    except FileNotFoundError:
        raise ConfigError(f"no file {path}; `c4 calibrate` writes one") from None
    except (RunError, *UNREADABLE) as error:
        raise ConfigError(f"{path}: {NOT_OURS} ({reason(error)})") from error


def _frozen_setting(path: Location, frozen: Mapping[str, Any]) -> FrozenSetting:
    """The content of a calibration file, read back."""
    gate, chosen, pool = (frozen[name] for name in ("gate", "parameters", "pool"))
    if not pool:
        raise ValueError("its pool is empty")
    parameters = None if chosen is None else dict(chosen)
    if not all(isinstance(value, int | float | str) for value in (parameters or {}).values()):
        raise TypeError("a parameter is neither a number nor a word")
    return FrozenSetting(
        path=path,
        gate=str(gate),
        gate_sha256=frozen.get("gate_sha256"),
        parameters=parameters,
        reading=AnswerReading.parse(**frozen["reading"]),
        statement=str(frozen["statement"]),
        pool=[_read_share(share) for share in pool],
        tried=len(frozen["table"]),
        seconds=float(frozen["seconds"]),
        worst_drop=_worst_drop(frozen["table"], parameters),
    )


def _read_share(share: Mapping[str, Any]) -> PoolShare:
    identity = dict(share["identity"])
    trajectories = frozenset(share["trajectories"])
    validate_identity(identity)
    return PoolShare(identity, trajectories)


def _worst_drop(
    table: Sequence[Mapping[str, Any]], parameters: Mapping[str, Value] | None
) -> float | None:
    """What a setting loses on the pool, by the table that it was chosen from."""
    if parameters is None:
        return None
    for row in table:
        if all(row[column_of(name)] == value for name, value in parameters.items()):
            return float(row["worst_drop"])
    raise ValueError(f"its table has no row for {dict(parameters)}")
