"""Whether c4 and lm-evaluation-harness agree, style of task by style of task.

    python benchmarks/lm_eval_agreement.py baseline cvee [--only STYLE]

Writes one task of each style in `tests/harness/task_styles.py`, decodes it with the embedded model
by `c4 run --task lm-eval:…` and by `simple_evaluate(model=C4LM(…))`, and compares prompt, text and
verdict of every example. Ends with exit code 1 if any differs.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from typer.testing import CliRunner

from c4.cli.app import app
from c4.lm_eval import C4LM
from c4.lm_eval._tasks import find_harness_task
from c4.store import Row, find_runs, open_run
from tests.record.lm_eval.task_styles import STYLES, save_styles

SHAPE = {"gen_length": 32, "steps": 16, "block_length": 16}


def decoded_by_c4(path: Path, method: str, out: Path) -> dict[int, Row]:
    """The rows of a run of c4's own, by the number of their document."""
    shape = [f"--{name.replace('_', '-')}={value}" for name, value in SHAPE.items()]
    asked = ["run", "--task", f"lm-eval:{path}", "--method", method, "--out", str(out), *shape]
    done = CliRunner().invoke(app, asked)  # in this process, which has loaded torch already
    if done.exit_code:
        sys.exit(f"{path.stem}: {done.stderr}")
    (folder,) = find_runs(out)
    return {row.source_row: row for row in open_run(folder).rows()}


def judged_by_harness(path: Path, model: C4LM) -> list[dict[str, Any]]:
    """The harness's samples of a task, under the task's first filter."""
    manager = TaskManager(include_defaults=False)
    found = simple_evaluate(
        model=model, tasks=[str(path)], task_manager=manager, bootstrap_iters=0, log_samples=True
    )
    (samples,) = found["samples"].values()
    return [sample for sample in samples if sample["filter"] == samples[0]["filter"]]


def agrees(row: Row, sample: dict[str, Any], metric: str | None) -> bool:
    """Whether prompt, text and verdict of one example are the same."""
    value = sample.get(metric, sample[sample["metrics"][0]])
    is_same_text = row.text.startswith(sample["resps"][0][0])
    is_same_prompt = row.prompt == sample["arguments"][0][0]
    return is_same_prompt and is_same_text and row.correct == (float(value) == 1)


def main() -> None:
    """Compare, and print one line for each style and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--only", choices=STYLES, action="append")
    asked = parser.parse_args()
    totals = {}
    with tempfile.TemporaryDirectory() as scratch:
        files = save_styles(Path(scratch) / "tasks")
        for method in asked.methods:
            model, same, n = C4LM(model="tiny", method=method, **SHAPE), 0, 0
            for name in asked.only or files:
                rows = decoded_by_c4(files[name], method, Path(scratch) / method / name)
                metric = find_harness_task(str(files[name])).metric
                samples = judged_by_harness(files[name], model)
                agreed = sum(agrees(rows[s["doc_id"]], s, metric) for s in samples)
                print(f"{method:10} {name:24} {agreed} of {len(samples)}", flush=True)
                same, n = same + agreed, n + len(samples)
            totals[method] = {"same": same, "of": n}
    print(json.dumps(totals))
    sys.exit(any(total["same"] != total["of"] for total in totals.values()))


if __name__ == "__main__":
    main()
