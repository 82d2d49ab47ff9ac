"""What calibration costs, from the files it leaves behind."""

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from c4.analysis._published import published_model, unlike_paper
from c4.errors import ConfigError, failure
from c4.errors.system import reason, require_plain_file
from c4.replay.calibration import LARGEST_FILE, is_calibration, read_shares
from c4.replay.pools import Pools
from c4.store.runs import Run

log = logging.getLogger(__name__)

CALIBRATIONS = pl.Schema(
    {
        "file": pl.String(),
        "model": pl.String(),
        "gate": pl.String(),
        "pool": pl.String(),  # tasks
        "trajectories": pl.Int64(),
        "forward_passes": pl.Int64(),  # null where the pool's recordings are gone
        "decode_seconds": pl.Float64(),  # likewise
        "settings": pl.Int64(),  # tried
        "search_seconds": pl.Float64(),  # null in files of older versions
        "chosen": pl.String(),
        "worst_drop": pl.Float64(),  # on the pool, in points
        "paper": pl.String(),  # the published model that its pool was decoded by; null: none
        "unlike_paper": pl.String(),  # why
    }
)
FROZEN = {"gate", "parameters", "pool", "table"}
"""What is read of a calibration file."""


def calibration_table(paths: Sequence[Path], runs: Sequence[Run]) -> pl.DataFrame:
    """One row for every file that `c4 calibrate` wrote. See `CALIBRATIONS`."""
    return pl.DataFrame([_checked_row(path, runs) for path in paths], schema=CALIBRATIONS)


def _checked_row(path: Path, runs: Sequence[Run]) -> dict[str, Any]:
    """The row of a file that somebody may have written by hand."""
    frozen = _read(path)
    try:
        return _row(path, frozen, runs)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a file that `c4 calibrate` wrote ({failure(error)}); calibrate again"
        ) from error


def find_calibrations(folder: Path) -> list[Path]:
    """The calibration files in a folder."""
    return [path for path in sorted(folder.glob("*.json")) if _is_calibration(path)]


def read_pools(paths: Iterable[Path]) -> Pools:
    """The examples that calibration may have seen, where these are its files."""
    return Pools([share for path in paths for share in read_shares(_read(path)["pool"])])


def _is_calibration(path: Path) -> bool:
    """Whether a file is a calibration; one that begins as one but cannot be read is said so."""
    if not is_calibration(path):
        return False
    try:
        _read(path)
    except ConfigError as error:
        log.warning(
            "%s; if it is a damaged calibration, calibrate again: the examples it was chosen on "
            "count as evaluation now",
            error,
        )
        return False
    return True


def _read(path: Path) -> dict[str, Any]:
    """A calibration file; anything else is refused."""
    try:
        require_plain_file(path, LARGEST_FILE)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = reason(error)
        raise ConfigError(f"{path}: not a file that `c4 calibrate` wrote ({why})") from error
    if not isinstance(content, dict) or not content.keys() >= FROZEN:
        raise ConfigError(
            f"{path}: not a file that `c4 calibrate` wrote; make one with: c4 calibrate --gamma 2"
        )
    try:
        read_shares(content["pool"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: its pool is not one that `c4 calibrate` wrote") from error
    return content


def _row(path: Path, frozen: dict[str, Any], runs: Sequence[Run]) -> dict[str, Any]:
    pool = frozen["pool"]
    passes, seconds = 0, 0.0
    whole = True
    for cohort in pool:
        run = next((r for r in runs if dict(r.manifest.identity) == cohort["identity"]), None)
        wanted = set(cohort["trajectories"])
        rows = [row for row in run.rows() if row.trajectory in wanted] if run else []
        whole &= len(rows) == len(wanted)
        passes += sum(row.steps for row in rows)
        seconds += sum(row.wall_seconds for row in rows)
    parameters = frozen["parameters"]
    identities = [cohort["identity"] for cohort in pool]
    reasons = [unlike_paper({**identity, **identity["shape"]}) for identity in identities]
    unlike = next((reason for reason in reasons if reason), None)
    drops = [
        row["worst_drop"]
        for row in frozen["table"]
        if parameters and all(row[name] == value for name, value in parameters.items())
    ]
    return {
        "file": path.name,
        "model": ", ".join(sorted({identity["model"] for identity in identities})),
        "gate": frozen["gate"],
        "pool": ", ".join(identity["task"] for identity in identities),
        "trajectories": sum(len(cohort["trajectories"]) for cohort in pool),
        "forward_passes": passes if whole else None,
        "decode_seconds": seconds if whole else None,
        "settings": len(frozen["table"]),
        "search_seconds": frozen.get("seconds"),
        "chosen": _spell(parameters) if parameters else None,
        "worst_drop": drops[0] if drops else None,
        "paper": None if unlike else published_model(identities[0]["model"]),
        "unlike_paper": unlike,
    }


def _spell(parameters: dict[str, Any]) -> str:
    """A setting in a line."""
    values = {k: f"{v:g}" if isinstance(v, float) else str(v) for k, v in parameters.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())
