"""Make the card of a data set on the hub: its runs, their origin, columns and replay commands."""

import shlex
from collections.abc import Mapping, Sequence

from c4.store.cells import CELLS
from c4.store.columns import COLUMNS
from c4.store.grades import GRADES
from c4.store.manifest import Manifest
from c4.store.rows import ROWS
from c4.tasks import TASKS
from c4.tasks.registry import PLAIN_NAME

CARD = """\
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

# {repo}

Decodes of masked diffusion language models, recorded by c4: what the model predicted, how surely, \
and what was still masked.

## What was recorded

{recorded}

Shapes are generated positions / steps / positions per block.

## With what

{made}

## Columns

{columns}

A folder says which run its rows are of. With hive partitioning, as in \
`polars.scan_parquet("runs/**/rows/*.parquet", hive_partitioning=True)`, \
`model`, `task` and `method` are columns too.

## How to replay

```
c4 pull {repo}
{commands}
```
{own}"""
CELLS_CONFIG = """\
- config_name: cells
  data_files: "runs/**/cells/*.parquet"
"""
OWN = """
These tasks are not part of c4: {tasks}. To replay them, ask their authors for the task, and name \
it with `--task my_task.py:TASK`. A data set never brings code.
"""
KINDS = {
    "rows": (ROWS, "one row per trajectory"),
    "cells": (CELLS, "one row per trajectory, step and position, where every step was kept"),
    "grades": (GRADES, "grades that were added later"),
}
ENDS_CODE = str.maketrans(dict.fromkeys("`|\\", "_"))


def make_card(repo: str, manifests: Mapping[str, Manifest]) -> str:
    """Make the card of a data set. Texts from manifests are escaped, since they are untrusted.

    Args:
        manifests: the manifest of each run, by the run's folder in the data set.
    """
    recorded: list[Sequence[str]] = [("run", "model", "task", "method", "shape", "every step")]
    made: list[Sequence[str]] = [("run", "weights", "dtype", "device", "examples", "made with")]
    replayed, coded = set(), set()
    for folder, manifest in manifests.items():
        identity, run = manifest.identity, _code(folder)
        names = [_code(identity[key]) for key in ("model", "task", "label")]
        shape = "/".join(str(identity["shape"][k]) for k in ("length", "budget", "block_length"))
        recorded.append((run, *names, shape, "kept" if identity["cells"] else "not kept"))
        weights = f"sha256 {identity['weights_sha256'][:16]}"
        made_by = [weights, *(identity[key] for key in ("dtype", "device", "origin"))]
        made.append((run, *map(_code, made_by), _code(_libraries(manifest))))
        task, definition = str(identity["task"]), identity.get("task_definition", {})
        # A manifest holds the full definition of a YAML task, but no code of a Python task.
        if not (task in TASKS or task.startswith("lm-eval:") or "fields" in definition):
            coded.add(task)
        elif identity["cells"] and PLAIN_NAME.fullmatch(task):
            replayed.add(task)
    columns = []
    for kind, (schema, what) in KINDS.items():
        rows = [("column", "meaning and type")]
        for field in schema:
            items = getattr(field.type, "value_type", None)
            of_type = str(field.type) if items is None else f"list of {items}"
            rows.append((_code(field.name), f"{COLUMNS[field.name].meaning} ({of_type})"))
        columns.append(f"`{kind}`: {what}.\n\n{_table(rows)}")
    commands = [f"c4 replay --task {shlex.quote(task)}" for task in sorted(replayed)]
    return CARD.format(
        cells=CELLS_CONFIG if any(m.identity["cells"] for m in manifests.values()) else "",
        repo=repo,
        recorded=_table(recorded),
        made=_table(made),
        columns="\n\n".join(columns),
        commands="\n".join(commands or ["c4 runs"]),
        own=OWN.format(tasks=", ".join(map(_code, sorted(coded)))) if coded else "",
    )


def _libraries(manifest: Manifest) -> str:
    found = manifest.made_with.get("libraries")
    versions = found if isinstance(found, dict) else {}
    return ", ".join(f"{name} {versions[name]}" for name in sorted(versions))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a Markdown table; the first row is the header."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{' --- |' * len(rows[0])}", *body])


def _code(value: object) -> str:
    """Format a value as inline code, in which links, images and tags are not interpreted.

    Characters that would end the code or the cell become underscores.
    """
    text = " ".join(str(value).split()).translate(ENDS_CODE)
    return f"`{text}`" if text else ""
