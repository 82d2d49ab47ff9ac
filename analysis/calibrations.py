"""What calibrations cost, read from the files they write."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from c4.analysis.paper import published_model, unlike_paper
from c4.errors import ConfigError
from c4.gates.calibrations import (
    FrozenSetting,
    PoolShare,
    find_calibrations,
    load_calibration,
)
from c4.store.locations import Location
from c4.store.rows import Row
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
        "search_seconds": pl.Float64(),
        "chosen": pl.String(),
        "worst_drop": pl.Float64(),  # on the pool, in points
        "paper": pl.String(),  # the published model that its pool was decoded by; null: none
        "unlike_paper": pl.String(),  # why
    }
)


def calibration_table(calibrations: Sequence[FrozenSetting], runs: Sequence[Run]) -> pl.DataFrame:
    """One row for everything that `c4 calibrate` froze. See `CALIBRATIONS`."""
    return pl.DataFrame([_row(frozen, runs) for frozen in calibrations], schema=CALIBRATIONS)


def readable_calibrations(folder: Location) -> list[FrozenSetting]:
    """The calibrations in a folder; one that cannot be read is said so, and left out."""
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


def _row(frozen: FrozenSetting, runs: Sequence[Run]) -> dict[str, Any]:
    rows = [_decoded(share, runs) for share in frozen.pool]
    decoded = [row for some in rows for row in some]
    whole = all(len(r) == len(s.trajectories) for r, s in zip(rows, frozen.pool, strict=True))
    identities = [share.identity for share in frozen.pool]
    reasons = [unlike_paper({**identity, **identity["shape"]}) for identity in identities]
    unlike = next((reason for reason in reasons if reason), None)
    return {
        "file": frozen.file,
        "model": ", ".join(sorted({identity["model"] for identity in identities})),
        "gate": frozen.gate,
        "pool": ", ".join(identity["task"] for identity in identities),
        "trajectories": sum(len(share.trajectories) for share in frozen.pool),
        "forward_passes": sum(row.steps for row in decoded) if whole else None,
        "decode_seconds": sum(row.wall_seconds for row in decoded) if whole else None,
        "settings": frozen.tried,
        "search_seconds": frozen.seconds,
        "chosen": _spell(frozen.parameters) if frozen.parameters else None,
        "worst_drop": frozen.worst_drop,
        "paper": None if unlike else published_model(identities[0]["model"]),
        "unlike_paper": unlike,
    }


def _decoded(share: PoolShare, runs: Sequence[Run]) -> list[Row]:
    """The trajectories of a pool's share, as far as they are still on disk."""
    run = next((r for r in runs if dict(r.manifest.identity) == share.identity), None)
    return [row for row in run.rows() if row.trajectory in share.trajectories] if run else []


def _spell(parameters: Mapping[str, Any]) -> str:
    """A setting in a line."""
    values = {k: f"{v:g}" if isinstance(v, float) else str(v) for k, v in parameters.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())
