"""Read trajectories of pixeli99/Prophet: one `.pt` file per question.

A file holds the model's prediction at every position and step (`x0_history`), the positions
committed at each step (`true_indices_history`), and the position of the answer in the final text.
It holds no confidences.

Such a file is a zip archive with a pickle, and unpickling can run code of the author's choice.
`torch.load(weights_only=True)` builds tensors and plain data only. A small file can still demand
unbounded memory, so every size is checked before data are unpacked or copied.
"""

import io
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.errors import DataError, failure, shortened
from c4.errors.system import reason, require_plain_file
from c4.tasks import Task

FILES = "question_0000_steps_256.pt"
NAME = re.compile(r"question_(\d+)_steps_(\d+)\.pt")
KEYS = {"x0_history", "true_indices_history", "prompt_token_len", "ans_posidx", "pred_token_id"}
MISFITS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError)
"""Errors that tensors and arrays raise when values or shapes do not fit together."""
LETTER = re.compile(r"[A-Z]")

MOST_BYTES = 2**28
"""Maximum bytes of a file, of all its members, and of the predictions in it."""
LARGEST_DIRECTORY = 2**22
"""Maximum bytes of the archive's list of members; a decode of 256 steps needs 40,000."""
LARGEST_PICKLE = 2**20
"""Maximum bytes of the pickle without its tensors; a decode of 256 steps needs 60,000."""
LEAST_BYTES = 2**14
"""Bytes that each smaller tensor counts as, which limits the number of tensors."""
TENSORS = re.compile(r"torch\._utils _rebuild_tensor_v2|collections OrderedDict|torch \w+Storage")
"""The only globals that a pickle of plain tensors refers to."""

Array = npt.NDArray[np.int64]


def find_files(folder: Path) -> list[Path]:
    """All `.pt` files below a folder, sorted, including names that Prophet does not use."""
    return sorted(path for path in folder.rglob("*.pt") if not path.is_dir())


def read_decode(path: Path, task: Task, budget: int | None) -> dict[str, Any]:  # noqa: ARG001
    """Read one decode. The answer at each step is read at the position of the final answer."""
    named = NAME.fullmatch(path.name)
    saved = read_tensors(path)
    if not isinstance(saved, dict) or not saved.keys() >= KEYS:
        raise DataError(f"{path}: this is not a file of Prophet's trajectories")
    if named is None:
        raise DataError(f"{path}: its name does not say which question it is, as {FILES} does")
    try:
        decode = _read_saved(saved)
    except MISFITS as error:
        raise DataError(f"{path}: its steps do not fit together ({error})") from error
    return decode | {"number": int(named[1]), "budget": budget or int(named[2])}


def read_tensors(path: Path) -> Any:
    """Load a file written by `torch.save`, without running any code in it."""
    import torch

    try:
        require_plain_file(path, MOST_BYTES)
        operations = pickletools.genops(_checked_pickle(path))  # parsed, not run
        asked = {str(name) for op, name, _ in operations if op.name in ("GLOBAL", "INST")}
        if others := sorted(name for name in asked if not TENSORS.fullmatch(name)):
            shown = shortened(others[0].replace(" ", "."))
            raise DataError(
                f"{path}: it asks for {shown}, which is no tensor; "
                "it was refused, and nothing of it was run"
            )
        with warnings.catch_warnings(action="ignore"):  # about pickles of other versions
            return torch.load(path, map_location="cpu", weights_only=True)
    except (DataError, MemoryError):
        raise
    except UnpicklingError:
        raise DataError(
            f"{path}: it asks for more than tensors, lists, texts and numbers as torch.save writes "
            "them by default; it was refused, and nothing of it was run"
        ) from None
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a file that torch.save writes ({reason(error)})") from error
    except Exception as error:  # damaged files fail in many ways
        why = str(error) if type(error) is ValueError else failure(error)
        raise DataError(f"{path}: damaged, or no file of tensors ({shortened(why)})") from error


class _BoundedFile(io.FileIO):
    """A file that refuses long reads, since `zipfile` reads the list of members all at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > LARGEST_DIRECTORY:
            raise ValueError(f"its list of members has {size:,} bytes, which are too many")
        return super().read(size)


def _checked_pickle(path: Path) -> bytes:
    """Return the archive's pickle; refuse members that are too large or not of `torch.save`."""
    with _BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [info.filename for info in members]
        if len(set(names)) < len(names):
            raise ValueError("two of its members have the same name")
        pickles = [name for name in names if name.endswith(".pkl")]
        if len(pickles) != 1 or pickles[0].rpartition("/")[2] != "data.pkl":
            raise ValueError("it has no data.pkl, or other pickles")
        root = pickles[0].removesuffix("data.pkl")
        if ".." in root or not all(name.startswith(root) for name in names):
            raise ValueError("it has members outside its folder")
        if any(info.compress_type != zipfile.ZIP_STORED for info in members):
            raise ValueError("it is compressed, which torch.save never does")
        size = archive.getinfo(pickles[0]).file_size
        if size > LARGEST_PICKLE or sum(info.file_size for info in members) > MOST_BYTES:
            raise ValueError("its members have too many bytes")
        return archive.read(pickles[0])


def _read_saved(saved: dict[str, Any]) -> dict[str, Any]:
    start, whole = _number(saved["prompt_token_len"]), _predictions(saved["x0_history"])
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
    correct = saved.get("correct")
    return {
        "is_final": is_final.tolist(),
        "commit_step": commit_step.tolist(),
        "answer": _text(saved.get("pred_ans")) or None,
        "target": _text(saved.get("gt_text")),
        "correct": _number(correct) if hasattr(correct, "numel") else correct,
    }


def _finished(token: Array, commit_step: Array, gen_ids: Any) -> Array:
    """Final tokens: the prediction at each position when it was committed. Shape (L,).

    Published files lack `gen_ids`, the only source for tokens that were given from the start; for
    those the last prediction stands in.
    """
    final = token[-1].copy() if gen_ids is None else _ids(gen_ids)
    if len(final) != token.shape[1]:
        raise ValueError(f"{token.shape[1]} predictions of {len(final)} positions")
    (committed,) = np.nonzero(commit_step)
    final[committed] = token[commit_step[committed] - 1, committed]
    return final


def _answer(saved: dict[str, Any], final: Array, at: int) -> Array:
    """Tokens of the final answer at its position in the text; empty if that is out of range.

    For a letter, return the token in the text: it may be the one with a leading space, which
    differs from the token that the file names.
    """
    answer = _ids(saved["pred_token_id"])
    if not 0 <= at <= len(final) - len(answer):
        return answer[:0]
    is_letter = LETTER.fullmatch(_text(saved.get("pred_ans")) or "")
    return final[at : at + len(answer)] if is_letter else answer


def _predictions(history: Any) -> Array:
    """Predictions of all steps, (T, prompt + L). A block is one stacked tensor or one per step."""
    steps: list[Array] = []
    size = 0
    for tensor in _steps(history):
        steps.append(_array(tensor, MOST_BYTES))
        size += max(LEAST_BYTES, steps[-1].nbytes)
        if size > MOST_BYTES:
            raise ValueError("more predictions than a decode has")
    return np.concatenate(steps)  # (T, prompt + L)


def _commit_steps(history: Any, start: int, shape: tuple[int, ...]) -> Array:
    """Per position, the step at which it was committed; 0 if it was given from the start.

    Args:
        shape: shape of the predictions, (T, L).
    """
    most, length = shape
    commit_step = np.zeros(length, dtype=np.int64)
    for step, pairs in enumerate(_steps(history), 1):  # (committed, 2): batch row, position
        if step > most:
            raise ValueError("more commits than steps")
        places = _array(pairs, 16 * length)[:, 1] - start
        if len(places) and not (places.min() >= 0 and places.max() < length):
            raise ValueError("a position outside the generated text")
        commit_step[places] = step
    return commit_step


def _steps(history: Any) -> Iterator[Any]:
    """Yield the tensors of all blocks: a block has one per step, or a single one."""
    if not isinstance(history, list):  # an empty tensor could claim any number of blocks
        raise ValueError("blocks that are no list")
    for block in history:
        yield from block if isinstance(block, list) else [block]


def _array(tensor: Any, most: int) -> Array:
    """Convert a tensor of integers to an array of at most `most` bytes.

    The size is checked first: a tensor can be far larger than the storage that it is a view of.
    """
    if not hasattr(tensor, "numel"):
        raise ValueError("expected a tensor")
    if 8 * tensor.numel() > most:
        raise ValueError("a tensor larger than a decode has")
    array: Array = tensor.long().numpy()
    return array


def _ids(value: Any) -> Array:
    """Token ids from a flat list or a tensor of one axis."""
    if isinstance(value, list) and all(type(item) is int for item in value):
        return np.array(value, dtype=np.int64)
    if isinstance(value, list) or value.ndim != 1:
        raise ValueError("token ids that are no list of numbers")
    return _array(value, MOST_BYTES).copy()


def _number(value: Any) -> int:
    if isinstance(value, int) or hasattr(value, "numel"):
        return int(value)
    raise ValueError("expected a number for a length or position")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str | int | float):
        return None if value is None else str(value)
    raise ValueError("expected a text for an answer")
