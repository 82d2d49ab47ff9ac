"""Watch a training: `python models/tiny/monitor.py .train`, at any time, on any checkpoint.

Decodes validation problems in batches, as the plain decode does it (one position a step, the
most confident of the block first). Quick, and only for watching: the report that counts comes from
the package's own decode.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from corpus import Codec, Lesson, shape_of, validation_lessons
from settings import MIXTURE, BlockShape, Settings
from torch import Tensor
from weights import build_model, load_llada

from c4.tasks import TASKS, grade

TAIL = 0.3


@dataclass(frozen=True)
class Score:
    """How a task went."""

    task: str
    n: int
    correct: int
    in_tail: float
    """Share of answers that begin in the last 30% of the positions; means little for letters."""
    settled: float
    """Progress from which 90% of the cohort keep their final answer (s_0.9); NaN if not traced."""
    seconds: float
    texts: tuple[str, ...]
    wrong: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"{self.task:<11} {self.correct / self.n:6.1%}  n={self.n}  "
            f"tail {self.in_tail:.0%}  s_0.9 {self.settled:.2f}  {self.seconds:.0f} s"
        )


def left_padded(prompts: Sequence[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Prompts that end together, and where they are real. Both (rows, longest)."""
    longest = max(map(len, prompts))
    ids = [[pad] * (longest - len(prompt)) + prompt for prompt in prompts]
    real = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids), torch.tensor(real)


@torch.inference_mode()
def decode_blocks(
    model: Any, codec: Codec, prompts: Sequence[list[int]], shape: BlockShape
) -> tuple[Tensor, list[Tensor]]:
    """Final ids (rows, L), and the filled prediction at every step."""
    ids, real = left_padded(prompts, codec.end)
    rows, start = ids.shape
    ids = torch.cat([ids, torch.full((rows, shape.length), codec.mask)], dim=1)
    real = torch.cat([real, torch.ones(rows, shape.length, dtype=real.dtype)], dim=1)
    filled = []
    for step in range(shape.length):
        block = start + step // shape.block * shape.block
        logits = model(input_ids=ids, attention_mask=real).logits[:, start:]  # (rows, L, V)
        confidence, token = logits.softmax(-1).max(-1)
        masked = ids[:, start:] == codec.mask
        filled.append(torch.where(masked, token, ids[:, start:]))
        inside = torch.zeros_like(masked)
        inside[:, block - start : block - start + shape.block] = True
        best = confidence.masked_fill(~(masked & inside), -1).argmax(-1)  # (rows,)
        ids[torch.arange(rows), start + best] = token[torch.arange(rows), best]
    return ids[:, start:], filled


def passes(lesson: Lesson, text: str) -> bool:
    """Whether a response is right, by the task's own grader."""
    return grade(TASKS[lesson.task], lesson.example, text).correct


def answer_position(codec: Codec, task: str, text: str) -> int | None:
    """The token at which the answer begins."""
    found = TASKS[task].extract(text)
    if found is None:
        return None
    offsets = codec.tokenizer.encode(text).offsets
    return next((i for i, (_, end) in enumerate(offsets) if end > found.start), None)


def settled(codec: Codec, task: str, trace: list[Tensor], final: Sequence[str]) -> float:
    """s_0.9 of a traced decode: the progress by which 90% of the rows keep their answer."""
    if not trace:
        return float("nan")
    progress = []
    for row, text in enumerate(final):
        answer = TASKS[task].extract(text)
        since = len(trace)
        for step in reversed(range(len(trace))):
            now = TASKS[task].extract(codec.text(trace[step][row].tolist()))
            if (now and now.value) != (answer and answer.value):
                break
            since = step + 1
        progress.append(since / len(trace))
    return sorted(progress)[max(0, -(-9 * len(progress) // 10) - 1)]


def evaluate(model: Any, codec: Codec, task: str, n: int, skip: int) -> Score:
    """Decode a task's validation problems and score them."""
    began = time.monotonic()
    lessons = validation_lessons(task, n, skip)
    shape = shape_of(task)
    prompts = [codec.prompt(lesson.example.prompt) for lesson in lessons]
    ids, trace = decode_blocks(model, codec, prompts, shape)
    texts = tuple(codec.text(row) for row in ids.tolist())
    right = [passes(*pair) for pair in zip(lessons, texts, strict=True)]
    places = [answer_position(codec, task, text) for text in texts]
    tail = sum(place is not None and place >= int(shape.length * (1 - TAIL)) for place in places)
    return Score(
        task=task,
        n=n,
        correct=sum(right),
        in_tail=tail / n,
        settled=settled(codec, task, trace, texts),
        seconds=time.monotonic() - began,
        texts=texts,
        wrong=tuple(i for i, good in enumerate(right) if not good),
    )


def open_model(folder: Path) -> Any:
    """The model of a work folder's checkpoint, or of a folder with exported weights."""
    checkpoint = folder / "checkpoint.pt"
    if not checkpoint.exists():
        return load_llada(folder)
    state = torch.load(checkpoint, weights_only=True)["model"]
    model = build_model(Settings().model, state["lm_head.weight"].shape[0])
    model.load_state_dict(state)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="Work folder of a training, or exported weights.")
    parser.add_argument("--tokenizer", type=Path, help="Its folder, if another.")
    parser.add_argument("-n", type=int, default=32, help="Problems per task.")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--tasks", nargs="*", default=list(MIXTURE))
    parser.add_argument("--wrong", type=int, default=0, help="Wrong responses shown per task.")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    codec = Codec.load(options.tokenizer or options.folder)
    model = open_model(options.folder)
    for task in options.tasks:
        score = evaluate(model, codec, task, options.n, options.skip)
        print(score, flush=True)
        for i in score.wrong[: options.wrong]:
            lesson = validation_lessons(task, 1, options.skip + i)[0]
            print(f"    {lesson.example.prompt!r}\n    want {lesson.response!r}")
            print(f"    got  {score.texts[i]!r}")


if __name__ == "__main__":
    main()
