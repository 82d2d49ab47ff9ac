"""Read trajectories of shkim0116/KLASS: one JSON file per question and sample.

A file is a list of steps. Each has the text committed so far (Dream: after the whole prompt), the
tokens committed at the step with confidence and KL, and the same for the masked positions of the
current block (LLaDA) or of the whole text (Dream). Other predictions are not stored, so answers
are read from the committed text.
"""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from c4.errors import DataError
from c4.errors.system import reason, require_plain_file
from c4.tasks import Task

FILES = "all_steps_q0_s0.json (LLaDA) or q0_s0.json (Dream)"
NAME = re.compile(r"(?:all_steps_)?q(\d+)_s(\d+)\.json")
BUDGET = re.compile(r"steps_(\d+)")
RESULTS = "all_results.json"
LARGEST_FILE = 2**26
LONGEST = 2**16
"""Maximum number of positions from the first committed one to the last."""
PROMPT_END = "<|im_start|>assistant\n"
"""End of the prompt in texts of Dream; texts of LLaDA have no prompt."""
TURN_END = "<|im_end|>"


def find_files(folder: Path) -> list[Path]:
    """Files of steps below a folder, sorted."""
    return sorted(path for path in folder.rglob("*.json") if NAME.fullmatch(path.name))


def read_decode(path: Path, task: Task, budget: int | None) -> dict[str, Any]:
    """Read one decode. At each step, the task extracts the answer from the committed text."""
    named = NAME.fullmatch(path.name)
    if named is None:
        raise DataError(f"{path}: this is not a file of KLASS's steps")
    number, sample = int(named[1]), int(named[2])
    steps = _load(path)
    try:
        texts = []
        for step in steps:
            # Drop the prompt: an answer in the question does not count.
            _, prompted, written = step["decoded_text"].partition(PROMPT_END)
            texts.append((written if prompted else step["decoded_text"]).replace(TURN_END, ""))
        commit_step = _commit_steps(steps)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise DataError(f"{path}: this is not a file of KLASS's steps ({error!r})") from error
    values = [found.value if (found := task.extract(text)) else None for text in texts]
    final = values[-1]
    if budget is None:  # KLASS stores it in a folder name
        named_so = filter(None, map(BUDGET.fullmatch, reversed(path.absolute().parts)))
        budget = next((int(found[1]) for found in named_so), None)
    if budget is None:
        raise DataError(
            f"{path}: no folder above it is called steps_N; say how many steps with --budget N"
        )
    return {
        "number": number,
        "sample": f" s{sample}" if sample else "",
        "is_final": [value is not None and value == final for value in values],
        "budget": budget,
        "commit_step": commit_step,
        "answer": final,
    } | _judged(path, number, sample)


def _load(path: Path) -> list[dict[str, Any]]:
    try:
        require_plain_file(path, LARGEST_FILE)
        steps = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from error
    if not isinstance(steps, list) or not steps:
        raise DataError(f"{path}: this is not a file of KLASS's steps (it holds no list)")
    return steps


def _commit_steps(steps: list[dict[str, Any]]) -> list[int]:
    """Per position of the text, the step at which it was committed, from 1.

    A step that may commit more tokens than are masked overwrites arbitrary positions, even in the
    prompt.
    """
    commits = {
        int(token["position"]): number
        for number, step in enumerate(steps, 1)
        for token in step["decoded_tokens"]
    }
    masked = [int(token["position"]) for step in steps for token in step.get("all_tokens", ())]
    first = min(masked or commits, default=0)
    places = range(first, max(commits, default=first - 1) + 1)
    if len(places) > LONGEST:
        raise ValueError("its committed positions lie too far apart")
    return [commits.get(place, 0) for place in places]


def _judged(path: Path, number: int, sample: int) -> dict[str, Any]:
    """Verdict and target from the results file next to the folder of steps; empty without one.

    Code problems have identifiers of their own, so their number is their place in the list.
    """
    try:
        listed = _results(path.parent.parent / RESULTS)
        is_code = "ground_truth_answer" not in listed[0]
        (question,) = (
            one for n, one in enumerate(listed) if (n if is_code else one["task_id"]) == number
        )
        (found,) = [one for one in question["samples"] if one["sample_idx"] == sample]
        target = question.get("ground_truth_answer")
        return {
            "correct": found["is_correct"] if "is_correct" in found else found["passed"],
            "target": None if target is None else str(target),
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


@lru_cache(maxsize=1)
def _results(path: Path) -> Any:
    """Questions in a results file, cached because thousands of step files share it."""
    require_plain_file(path, LARGEST_FILE)
    return json.loads(path.read_bytes())["results"]
