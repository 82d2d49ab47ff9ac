"""The card of a data set on the hub: what was recorded, with what, its columns, how to replay."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from c4.store.schema import CELLS, GRADES, ROWS

FRONT = """\
---
tags:
- c4
- diffusion-language-model
- trajectories
configs:
- config_name: rows
  data_files: "runs/**/rows/*.parquet"
  default: true
{cells}---
"""
CELLS_CONFIG = """\
- config_name: cells
  data_files: "runs/**/cells/*.parquet"
"""
KINDS = {
    "rows": (ROWS, "one row per trajectory"),
    "cells": (CELLS, "one row per trajectory, step and position, where every step was kept"),
    "grades": (GRADES, "grades that were added later"),
}


def make_card(repo: str, manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """The card of a data set with some runs.

    Args:
        manifests: what the manifest of each run holds, by the run's folder in the data set.
    """
    has_cells = any(manifest["identity"]["cells"] for manifest in manifests.values())
    lines = [
        FRONT.format(cells=CELLS_CONFIG if has_cells else ""),
        f"# {repo}",
        "",
        "Decodes of masked diffusion language models, recorded by c4: "
        "what the model predicted, how surely, and what was still masked.",
        "",
        "## What was recorded",
        "",
        *_table(("run", "model", "task", "method", "shape", "every step"), _runs(manifests)),
        "",
        "Shapes are generated positions / steps / positions per block.",
        "",
        "## With what",
        "",
        *_table(("run", "weights", "dtype", "device", "examples", "made with"), _made(manifests)),
        "",
        "## Columns",
        "",
    ]
    for kind, (schema, what) in KINDS.items():
        lines += [f"`{kind}`: {what}.", "", *_table(("column", "type"), _columns(schema)), ""]
    lines += [
        "c4's docs/format.md says what each column means.",
        "",
        "## How to replay",
        "",
        "```",
        f"c4 pull {repo}",
        *_commands(manifests),
        "```",
        "",
    ]
    return "\n".join(lines)


def _runs(manifests: Mapping[str, Mapping[str, Any]]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for folder, manifest in manifests.items():
        identity = manifest["identity"]
        shape = "/".join(str(identity["shape"][k]) for k in ("length", "budget", "block_length"))
        kept = "kept" if identity["cells"] else "not kept"
        rows.append((folder, *(identity[k] for k in ("model", "task", "label")), shape, kept))
    return rows


def _made(manifests: Mapping[str, Mapping[str, Any]]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for folder, manifest in manifests.items():
        identity, environment = manifest["identity"], manifest.get("environment", {})
        weights = f"sha256 {identity['weights_sha256'][:16]}"
        programs = environment.get("libraries", {})
        made = ", ".join(f"{name} {programs[name]}" for name in sorted(programs))
        rows.append(
            (folder, weights, identity["dtype"], identity["device"], identity["origin"], made)
        )
    return rows


def _columns(schema: pa.Schema) -> list[Sequence[str]]:
    return [(f"`{field.name}`", str(field.type)) for field in schema]


def _commands(manifests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    recorded = sorted({m["identity"]["task"] for m in manifests.values() if m["identity"]["cells"]})
    return [f"c4 replay --task {task}" for task in recorded] or ["c4 runs"]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table of Markdown; names come from users, so bars and line ends in them are taken out."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_cell(value) for value in line)} |" for line in lines]


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
