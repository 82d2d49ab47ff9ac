"""Export the step map: the step at which each token was unmasked."""

import json
from collections.abc import Callable
from typing import Any

from c4.store import Row, Run
from c4.store.locations import Location
from c4.store.storage import put_file


def step_map(row: Row) -> dict[str, Any]:
    """Describe a trajectory as serving engines do; docs/exchange.md explains the keys."""
    return {
        "trajectory": row.trajectory,
        "prompt_ids": row.prompt_ids,
        "output_ids": row.final_ids,
        "step_map": row.commit_step,
        "steps": row.steps,
        "tokens_before_end": row.tokens_before_end,
        "text": row.text,
    }


def export_steps(run: Run, path: Location, note: Callable[[], None] = lambda: None) -> int:
    """Write the step maps of a run, one JSON object per line; return their number.

    Args:
        note: progress callback, called once per trajectory.
    """
    lines = []
    for row in run.rows():
        lines.append(json.dumps(step_map(row)).encode() + b"\n")
        note()
    put_file(path, b"".join(lines))
    return len(lines)
