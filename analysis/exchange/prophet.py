"""Trajectories of pixeli99/Prophet: one `.pt` file per question.

A file holds what the model predicted at every position and step (`x0_history`), which positions
were committed at each step (`true_indices_history`), and where the answer stands in the finished
text. It holds no confidences.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from c4.analysis.exchange.courses import Course, read_verdict
from c4.analysis.exchange.tensors import MOST_TENSOR_BYTES, Array, read_tensors
from c4.errors import DataError
from c4.tasks import Task

FILES = "question_0000_steps_256.pt"
NAME = re.compile(r"question_(\d+)_steps_(\d+)\.pt")
KEYS = {"x0_history", "true_indices_history", "prompt_token_len", "ans_posidx", "pred_token_id"}
MISFITS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What arrays raise at values and shapes that do not belong together."""

LETTER = re.compile(r"[A-Z]")
LEAST_BYTES = 2**10
"""What a tensor counts for if it is smaller, so that there are not too many of them."""


def find_files(folder: Path) -> list[Path]:
    """The `.pt` files below a folder, in order, also those with names that are not Prophet's."""
    return sorted(path for path in folder.rglob("*.pt") if not path.is_dir())


def read_course(path: Path, task: Task, budget: int | None) -> Course:  # noqa: ARG001
    """One decode. The answer at a step is what stands at the final answer's place."""
    named = NAME.fullmatch(path.name)
    saved = read_tensors(path)
    if not isinstance(saved, dict) or not saved.keys() >= KEYS:
        raise DataError(f"{path}: no file of Prophet's trajectories")
    if named is None:
        raise DataError(f"{path}: its name does not say which question it is, as {FILES} does")
    try:
        return _course(int(named[1]), budget or int(named[2]), saved)
    except (DataError, *MISFITS) as error:
        raise DataError(f"{path}: its steps do not fit together ({error})") from error


def _course(number: int, budget: int, saved: dict[str, Any]) -> Course:
    start, whole = _number(saved["prompt_token_len"]), _join(saved["x0_history"])
    if not 0 <= start < whole.shape[1]:
        raise ValueError("a prompt that is longer than the text")
    token = whole[:, start:]  # (T, L)
    commit_step = _commit_steps(saved["true_indices_history"], start, token.shape)
    final = _finished(token, commit_step, saved.get("gen_ids"))
    place = saved["ans_posidx"]
    at = -1 if place is None else _number(place) - start
    answer = _answer(saved, final, at)
    here = slice(at, at + len(answer))
    steps = np.arange(1, len(token) + 1)
    masked = commit_step[None, here] >= steps[:, None]  # at the start of each step
    filled = np.where(masked, token[:, here], final[here])
    is_final = (filled == answer).all(axis=1) & (len(answer) > 0)
    return Course(
        number=number,
        is_final=is_final.tolist(),
        budget=budget,
        commit_step=commit_step.tolist(),
        answer=_text(saved.get("pred_ans")) or None,
        target=_text(saved.get("gt_text")),
        correct=read_verdict(saved.get("correct")),
    )


def _finished(token: Array, commit_step: Array, gen_ids: Any) -> Array:
    """The finished text: what was predicted at each position when it was committed. Shape (L,).

    Files that were published lack `gen_ids`, which alone say what was given from the start.
    """
    final = token[-1].copy() if gen_ids is None else _ids(gen_ids)
    if len(final) != token.shape[1]:
        raise ValueError(f"{token.shape[1]} predictions of {len(final)} positions")
    (committed,) = np.nonzero(commit_step)
    final[committed] = token[commit_step[committed] - 1, committed]
    return final


def _answer(saved: dict[str, Any], final: Array, at: int) -> Array:
    """Tokens of the final answer, which stand at a place of the text; none if they are not there.

    A letter may stand there as the token with a space before it, which is another than the one
    that the file names.
    """
    answer = _ids(saved["pred_token_id"])
    if not 0 <= at <= len(final) - len(answer):
        return answer[:0]
    is_letter = LETTER.fullmatch(_text(saved.get("pred_ans")) or "")
    return final[at : at + len(answer)] if is_letter else answer


# A file is small and can still name one list or tensor a million times, or lists inside lists, so
# the following look at how much there is before they copy it.


def _ids(value: Any) -> Array:
    """Token ids, which are a flat list or a tensor of one axis."""
    flat = isinstance(value, list) and all(type(item) is int for item in value)
    if not flat and not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise ValueError("token ids that are no list of numbers")
    return np.array(value, dtype=np.int64)


def _number(value: Any) -> int:
    if isinstance(value, int | np.ndarray):
        return int(value)
    raise ValueError("a length or a place that is no number")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str | int | float):
        return None if value is None else str(value)
    raise ValueError("an answer that is no text")


def _blocks(history: Any) -> list[Any]:
    """The blocks of a decode; an empty tensor could have them without end."""
    if isinstance(history, list):
        return history
    raise ValueError("blocks that are no list")


def _steps(block: Any) -> list[Any]:
    """The tensors of a block: one for each step, or a single one."""
    return block if isinstance(block, list) else [block]


def _join(history: Any) -> Array:
    """The predictions of all steps. A block has them stacked, or in one tensor for each."""
    steps: list[Array] = []
    size = 0
    for block in _blocks(history):
        for tensor in _steps(block):
            if not isinstance(tensor, np.ndarray):
                raise ValueError("predictions that are no tensors")
            steps.append(tensor)
            size += max(LEAST_BYTES, tensor.nbytes)
            if size > MOST_TENSOR_BYTES:
                raise ValueError("more predictions than a decode has")
    return np.concatenate(steps)  # (T, prompt + L)


def _commit_steps(history: Any, start: int, shape: tuple[int, ...]) -> Array:
    """Per position, the step at which it was committed; 0 where it was given from the start.

    Args:
        shape: of the predictions, (T, L).
    """
    most, length = shape
    commit_step = np.zeros(length, dtype=np.int32)
    step = 0
    for block in _blocks(history):
        for pairs in _steps(block):  # (committed, 2): row of the batch, position
            step += 1
            if not isinstance(pairs, np.ndarray):
                raise ValueError("commits that are no tensors")
            if step > most or len(pairs) > length:
                raise ValueError("more commits than steps and positions")
            places = pairs[:, 1] - start
            if len(places) and not (places.min() >= 0 and places.max() < length):
                raise ValueError("a position outside the generated text")
            commit_step[places] = step
    return commit_step
