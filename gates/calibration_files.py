"""Calibration files: the setting of a gate that `c4 calibrate` chose, read back and checked."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
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
"""Result columns of the table, in addition to one accuracy column per task."""


def column_of(parameter: str) -> str:
    """Name of a parameter's column, prefixed if it would collide with a result column."""
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
    """The content of a calibration file: the chosen setting, its pool, and the size of its grid."""

    path: Location
    gate: str
    gate_sha256: str | None
    """Hash of the source of a user's own gate; None for one of c4's."""
    parameters: Mapping[str, Value] | None
    """None if no setting met the requirement; see `chosen`."""
    reading: AnswerReading
    """How answers were read during calibration; the setting is not valid for another reading."""
    statement: str
    """The result as one quotable sentence."""
    pool: Sequence[PoolShare]
    tried: int
    """Number of settings in the grid."""
    seconds: float
    """Duration of the search in seconds."""
    worst_drop: float | None
    """Largest loss of accuracy on any task of the pool, in percentage points."""

    @property
    def file(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def label(self) -> str:
        """Label of the setting's decisions in tables and figures."""
        return frozen_label(self.gate, self.file)

    @property
    def chosen(self) -> Mapping[str, Value]:
        """The chosen parameters; raises `ConfigError` if no setting was chosen."""
        if self.parameters is None:
            raise ConfigError(f"{self.file}: that calibration chose no setting: {self.statement}")
        return self.parameters

    def check_reading(self, reading: AnswerReading) -> None:
        """Raise `ConfigError` if the reading differs from the one used for calibration."""
        if reading != self.reading:
            raise ConfigError(
                f"{self.file} was chosen under {self.reading.options}, and {reading.options} is "
                "asked for; leave these options out, or calibrate with them"
            )

    def make(self, family: Family, named: Collection[str] = ()) -> Gate:
        """Build the gate with its frozen parameters.

        Args:
            named: the gates that the user has named. Only these may run a user's own code: a
                calibration file must not decide which code is executed.
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
        """Raise `ConfigError` if the gate's source has changed since the calibration.

        Args:
            name: the gate's name as the user typed it.
        """
        if self.gate_sha256 not in (None, find_gate(name).source_sha256):
            raise ConfigError(
                f"{self.file} was chosen for {self.gate} before its source was edited; calibrate "
                "again"
            )


LARGEST_FILE = 2**28
"""Maximum size of a calibration file in bytes; the largest grid takes 30 MB."""
HEAD = 1000
"""Number of bytes at the start of a calibration file that contain its first keys."""
FIRST_KEYS = (b'"gate":', b'"parameters":', b'"reading":')
"""Keys that identify a calibration file; two suffice, because one may be damaged."""


def find_calibrations(folder: Location) -> list[Location]:
    """Return the files in a folder that look like calibrations; they may be damaged."""
    found = []
    for path in list_files(folder):
        if path.suffix == ".json":
            with suppress(OSError, RunError):
                head = read_file(path, HEAD)  # another kind of file may be large
                found += [path] if sum(key in head for key in FIRST_KEYS) >= 2 else []
    return found


def check_calibration(path: Location) -> ConfigError | None:
    """Return the error in a calibration file, or None. A file without a chosen setting is valid."""
    try:
        load_calibration(path)
    except ConfigError as error:
        return error
    return None


def load_calibration(path: Location) -> FrozenSetting:
    """Read and check a calibration file."""
    try:
        frozen = json.loads(read_limited(path, LARGEST_FILE))
        if not isinstance(frozen, dict):
            raise TypeError(f"it holds a {type(frozen).__name__}")
        content = {name: value for name, value in frozen.items() if name != "checksum"}
        if frozen["checksum"] != content_checksum(content):
            raise ConfigError(
                f"{path}: edited or damaged since `c4 calibrate` wrote it (its content does not "
                "match its checksum); calibrate again, or give a setting of your own with --set"
            )
        return _frozen_setting(path, frozen)
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
    """Check the parsed JSON of a calibration file and convert it."""
    pool = [
        PoolShare(dict(share["identity"]), frozenset(share["trajectories"]))
        for share in frozen["pool"]
    ]
    if not pool:
        raise ValueError("its pool is empty")
    for share in pool:
        validate_identity(share.identity)
    parameters = None if frozen["parameters"] is None else dict(frozen["parameters"])
    if not all(isinstance(value, int | float | str) for value in (parameters or {}).values()):
        raise TypeError("a parameter is neither a number nor a word")
    drops = [
        float(row["worst_drop"])
        for row in frozen["table"]
        if parameters is not None
        and all(row[column_of(name)] == value for name, value in parameters.items())
    ]
    if parameters is not None and not drops:
        raise ValueError(f"its table has no row for {parameters}")
    return FrozenSetting(
        path=path,
        gate=str(frozen["gate"]),
        gate_sha256=frozen.get("gate_sha256"),
        parameters=parameters,
        reading=AnswerReading.parse(**frozen["reading"]),
        statement=str(frozen["statement"]),
        pool=pool,
        tried=len(frozen["table"]),
        seconds=float(frozen["seconds"]),
        worst_drop=drops[0] if drops else None,
    )
