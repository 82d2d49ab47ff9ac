"""Trajectories of pixeli99/Prophet: one `.pt` file per question.

A file holds what the model predicted at every position and step (`x0_history`), which positions
were committed at each step (`true_indices_history`), and where the answer stands in the finished
text. It holds no confidences.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from c4.errors import DataError
from c4.exchange.courses import Course
from c4.exchange.tensors import Array, read_tensors

FILES = "question_0000_steps_256.pt"
NAME = re.compile(r"question_(\d+)_steps_(\d+)\.pt")
KEYS = {
    *("x0_history", "true_indices_history", "gen_ids", "prompt_token_len"),
    *("ans_posidx", "pred_token_id"),
}


def find_files(folder: Path) -> list[Path]:
    """The files of questions below a folder, in order."""
    return sorted(path for path in folder.rglob("*.pt") if NAME.fullmatch(path.name))


def read_course(path: Path, task: str, budget: int | None) -> Course:  # noqa: ARG001
    """One decode. The answer at a step is what stands at the final answer's place."""
    named = NAME.fullmatch(path.name)
    saved = read_tensors(path)
    if named is None or not isinstance(saved, dict) or not saved.keys() >= KEYS:
        raise DataError(f"{path}: no file of Prophet's trajectories")
    try:
        return _course(int(named[1]), budget or int(named[2]), saved)
    except (DataError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise DataError(f"{path}: its steps do not fit together ({error})") from error


def _course(number: int, budget: int, saved: dict[str, Any]) -> Course:
    final: Array = np.array(saved["gen_ids"], dtype=np.int64)  # (L,)
    start, length = int(saved["prompt_token_len"]), len(final)
    token = np.concatenate([_steps_of(block) for block in saved["x0_history"]])[:, start:]  # (T, L)
    if token.shape[1] != length:
        raise ValueError(f"{token.shape[1]} predictions of {length} positions")
    commit_step = _commit_steps(saved["true_indices_history"], start, length)
    steps = np.arange(1, len(token) + 1)
    masked = commit_step[None, :] >= steps[:, None]  # at the start of each step, (T, L)
    filled = np.where(masked, token, final)
    answer = np.array(saved["pred_token_id"], dtype=np.int64)
    at = int(saved["ans_posidx"]) - start
    is_final = np.zeros(len(token), dtype=np.bool_)
    if len(answer) and 0 <= at <= length - len(answer):
        is_final = (filled[:, at : at + len(answer)] == answer).all(axis=1)
    correct = saved.get("correct")
    return Course(
        number=number,
        is_final=is_final.tolist(),
        budget=budget,
        commit_step=commit_step.tolist(),
        answer=str(saved.get("pred_ans") or "") or None,
        target=None if saved.get("gt_text") is None else str(saved["gt_text"]),
        correct=None if correct is None else bool(correct),
    )


def _steps_of(block: Any) -> Array:
    """The predictions of a block's steps: stacked, or one tensor for each. (steps, prompt + L)"""
    return np.concatenate(block) if isinstance(block, list) else np.asarray(block)


def _commit_steps(history: Any, start: int, length: int) -> Array:
    """Per position, the step at which it was committed; 0 where it was given from the start."""
    commit_step = np.zeros(length, dtype=np.int32)
    step = 0
    for block in history:
        for pairs in block:  # (committed, 2): row of the batch, position
            step += 1
            places = np.asarray(pairs)[:, 1] - start
            if len(places) and not (places.min() >= 0 and places.max() < length):
                raise ValueError("a position outside the generated text")
            commit_step[places] = step
    return commit_step
