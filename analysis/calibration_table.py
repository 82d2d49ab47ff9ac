"""Cost of calibrations, read from the files they write."""

import logging
from collections.abc import Sequence

import polars as pl

from c4.analysis.paper import published_model, unlike_paper
from c4.errors import ConfigError
from c4.gates.calibration_files import (
    FrozenSetting,
    find_calibrations,
    load_calibration,
)
from c4.store.locations import Location
from c4.store.runs import Run

log = logging.getLogger(__name__)

CALIBRATIONS = pl.Schema(
    {
        "file": pl.String(),
        "model": pl.String(),
        "gate": pl.String(),
        "pool": pl.String(),  # tasks of the pool
        "trajectories": pl.Int64(),
        "forward_passes": pl.Int64(),  # null if recordings of the pool are gone
        "decode_seconds": pl.Float64(),  # likewise
        "settings": pl.Int64(),  # number of settings tried
        "search_seconds": pl.Float64(),
        "chosen": pl.String(),
        "worst_drop": pl.Float64(),  # on the pool, in points
        "paper": pl.String(),  # published model that decoded the pool; null if not comparable
        "unlike_paper": pl.String(),  # reason why the paper's numbers are not comparable
    }
)


def calibration_table(calibrations: Sequence[FrozenSetting], runs: Sequence[Run]) -> pl.DataFrame:
    """Return one row for every setting that `c4 calibrate` froze. See `CALIBRATIONS`."""
    rows = []
    for frozen in calibrations:
        identities = [share.identity for share in frozen.pool]
        count = sum(len(share.trajectories) for share in frozen.pool)
        decoded = [  # rows of recordings that are still on disk
            row
            for share in frozen.pool
            for run in [r for r in runs if dict(r.manifest.identity) == share.identity][:1]
            for row in run.rows()
            if row.trajectory in share.trajectories
        ]
        reasons = [unlike_paper({**identity, **identity["shape"]}) for identity in identities]
        unlike = next((reason for reason in reasons if reason), None)
        whole = len(decoded) == count
        setting = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in (frozen.parameters or {}).items()
        ]
        rows.append(
            {
                "file": frozen.file,
                "model": ", ".join(sorted({identity["model"] for identity in identities})),
                "gate": frozen.gate,
                "pool": ", ".join(identity["task"] for identity in identities),
                "trajectories": count,
                "forward_passes": sum(row.steps for row in decoded) if whole else None,
                "decode_seconds": sum(row.wall_seconds for row in decoded) if whole else None,
                "settings": frozen.tried,
                "search_seconds": frozen.seconds,
                "chosen": ", ".join(setting) or None,
                "worst_drop": frozen.worst_drop,
                "paper": None if unlike else published_model(identities[0]["model"]),
                "unlike_paper": unlike,
            }
        )
    return pl.DataFrame(rows, schema=CALIBRATIONS)


def readable_calibrations(folder: Location) -> list[FrozenSetting]:
    """Load the calibrations in a folder; skip unreadable files with a warning."""
    found = []
    for path in find_calibrations(folder):
        try:
            found.append(load_calibration(path))
        except ConfigError as error:
            log.warning(
                "%s; if it is a damaged calibration, calibrate again: the examples it was chosen "
                "on count as evaluation now",
                error,
            )
    return found
