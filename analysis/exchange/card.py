"""The card of a data set on the hub: what was recorded, with what, its columns, how to replay."""

import shlex
from collections.abc import Mapping, Sequence

import pyarrow as pa

from c4.analysis.exchange.columns import MEANINGS
from c4.store.manifest import Manifest
from c4.store.schema import CELLS, GRADES, ROWS
from c4.tasks import TASKS
from c4.tasks.registry import PLAIN_NAME

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

ENDS_CODE = str.maketrans(dict.fromkeys("`|\\", "_"))


def make_card(repo: str, manifests: Mapping[str, Manifest]) -> str:
    """The card of a data set with some runs. What manifests say is shown and never interpreted.

    Args:
        manifests: the manifest of each run, by the run's folder in the data set.
    """
    has_cells = any(manifest.identity["cells"] for manifest in manifests.values())
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
        lines += [
            f"`{kind}`: {what}.",
            "",
            *_table(("column", "meaning and type"), _columns(schema)),
            "",
        ]
    lines += [
        "A folder says which run its rows are of. With hive partitioning, as in "
        '`polars.scan_parquet("runs/**/rows/*.parquet", hive_partitioning=True)`, '
        "`model`, `task` and `method` are columns too.",
        "",
        "## How to replay",
        "",
        "```",
        f"c4 pull {repo}",
        *_commands(manifests),
        "```",
        "",
        *_own_tasks(manifests),
    ]
    return "\n".join(lines)


def _runs(manifests: Mapping[str, Manifest]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for folder, manifest in manifests.items():
        identity = manifest.identity
        shape = "/".join(str(identity["shape"][k]) for k in ("length", "budget", "block_length"))
        kept = "kept" if identity["cells"] else "not kept"
        names = (_code(identity[k]) for k in ("model", "task", "label"))
        rows.append((_code(folder), *names, shape, kept))
    return rows


def _made(manifests: Mapping[str, Manifest]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for folder, manifest in manifests.items():
        identity = manifest.identity
        weights = f"sha256 {identity['weights_sha256'][:16]}"
        values = (weights, *(identity[k] for k in ("dtype", "device", "origin")))
        rows.append((_code(folder), *map(_code, values), _code(_programs(manifest))))
    return rows


def _programs(manifest: Manifest) -> str:
    found = manifest.made_with.get("libraries")
    programs = found if isinstance(found, dict) else {}
    return ", ".join(f"{name} {programs[name]}" for name in sorted(programs))


def _columns(schema: pa.Schema) -> list[Sequence[str]]:
    return [(_code(f.name), f"{MEANINGS[f.name]} ({_type_name(f.type)})") for f in schema]


def _type_name(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def _commands(manifests: Mapping[str, Manifest]) -> list[str]:
    """What anybody can type who has nothing but the data set."""
    replayed = (m for m in manifests.values() if m.identity["cells"] and not _needs_code(m))
    recorded = sorted({str(manifest.identity["task"]) for manifest in replayed})
    named = [shlex.quote(task) for task in recorded if PLAIN_NAME.fullmatch(task)]
    return [f"c4 replay --task {task}" for task in named] or ["c4 runs"]


def _own_tasks(manifests: Mapping[str, Manifest]) -> list[str]:
    """What else is needed for tasks that are code."""
    tasks = {str(m.identity["task"]) for m in manifests.values() if _needs_code(m)}
    if not tasks:
        return []
    listed = ", ".join(map(_code, sorted(tasks)))
    return [
        f"These tasks are not part of c4: {listed}. To replay them, ask their authors for the "
        "task, and name it with `--task my_task.py:TASK`. A data set never brings code.",
        "",
    ]


def _needs_code(manifest: Manifest) -> bool:
    """Whether a task is code of a user's own; a manifest brings the whole of a YAML file."""
    task, definition = manifest.identity["task"], manifest.identity.get("task_definition", {})
    return not (task in TASKS or task.startswith("lm-eval:") or "fields" in definition)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _code(value: object) -> str:
    """A cell that shows a text as it is: inside code nothing is a link, a picture or a tag.

    The characters that would end the code or the cell become underscores.
    """
    text = " ".join(str(value).split()).translate(ENDS_CODE)
    return f"`{text}`" if text else ""
