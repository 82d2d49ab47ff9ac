"""Watch a training: `python -m training.monitor .train`, at any time, on any checkpoint.

Decodes validation problems at full budget with c4's own loop. The report that counts is that of
`c4 models eval`, on evaluation problems and with the stabilization of the answers.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from c4.decode.loop import decode
from c4.gates.candidates import CandidateReader
from c4.models import Denoiser, find_checkpoint, load_model
from c4.store.arrays import TokenArray
from c4.tasks import TASKS, AnswerReading, Ending, grade
from training.checkpoint import Checkpoint
from training.codec import Codec
from training.lessons import Lesson, shape_of, validation_lessons
from training.settings import MIXTURE
from training.weights import build_network


@dataclass(frozen=True)
class Score:
    """How a task went."""

    task: str
    n: int
    """Number of graded answers; `accuracy` is computed over them."""
    accuracy: float
    located: float
    """Share of all responses whose answer the gates can see where they look."""
    seconds: float
    texts: tuple[str, ...]
    wrong: tuple[int, ...]
    """Which of the texts are wrong."""

    def __str__(self) -> str:
        return (
            f"{self.task:<11} {self.accuracy:6.1%}  n={self.n}  "
            f"located {self.located:.0%}  {self.seconds:.0f} s"
        )


def evaluate(denoiser: Denoiser, codec: Codec, task: str, n: int, skip: int = 0) -> Score:
    """Decode a task's validation problems and score them."""
    began = time.monotonic()
    lessons = validation_lessons(task, n, skip)
    ids = decode_lessons(denoiser, codec, lessons)
    texts = tuple(codec.vocabulary.text(row.tolist(), Ending.CUT) for row in ids)
    right = [is_right(*pair) for pair in zip(lessons, texts, strict=True)]
    graded = [verdict for verdict in right if verdict is not None]
    return Score(
        task=task,
        n=len(graded),
        accuracy=sum(graded) / len(graded) if graded else float("nan"),
        located=located(codec, lessons, ids),
        seconds=time.monotonic() - began,
        texts=texts,
        wrong=tuple(i for i, verdict in enumerate(right) if verdict is False),
    )


def decode_lessons(denoiser: Denoiser, codec: Codec, lessons: list[Lesson]) -> TokenArray:
    """The responses to lessons of one task. (lessons, L)"""
    shape = shape_of(lessons[0].task)
    prompts = [np.array(codec.prompt(lesson.example.prompt)) for lesson in lessons]
    return np.stack([decode(denoiser, prompt, shape).ids for prompt in prompts]).astype(np.int32)


def is_right(lesson: Lesson, text: str) -> bool | None:
    """Whether a response is right, by the task's own grader; None where nobody can tell."""
    return grade(TASKS[lesson.task], lesson.example, text).correct


def located(codec: Codec, lessons: list[Lesson], ids: TokenArray) -> float:
    """Share of the responses whose answer the gates can see. ids: (lessons, L)"""
    task = TASKS[lessons[0].task]
    reader = CandidateReader(task, codec.vocabulary, ids.shape[1], AnswerReading())
    found = reader.read(ids, [lesson.example.choices for lesson in lessons])
    return sum(1 for candidate, _ in found if candidate and candidate.span) / len(lessons)


def open_denoiser(folder: Path, codec: Codec) -> Denoiser:
    """The denoiser of a training's last checkpoint, or of a folder with exported weights."""
    saved = Checkpoint(folder).load()
    if saved is None:
        return load_model(find_checkpoint(str(folder)), device="cpu").denoiser
    network = build_network(folder)
    network.load_state_dict(saved.model)
    return Denoiser(network.eval(), mask_id=codec.mask, shift=False)


def show_wrong(lesson: Lesson, text: str) -> None:
    print(f"    {lesson.example.prompt!r}\n    want {lesson.response!r}\n    got  {text!r}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="Work folder of a training, or exported weights.")
    parser.add_argument("-n", type=int, default=32, help="Problems per task.")
    parser.add_argument("--skip", type=int, default=0, help="Problems passed over.")
    parser.add_argument("--tasks", nargs="*", default=list(MIXTURE), choices=list(MIXTURE))
    parser.add_argument("--wrong", type=int, default=0, help="Wrong responses shown per task.")
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(1)  # matrices this small are slower on more
    codec = Codec.load(options.folder)
    denoiser = open_denoiser(options.folder, codec)
    for task in options.tasks:
        score = evaluate(denoiser, codec, task, options.n, options.skip)
        print(score, flush=True)
        for i in score.wrong[: options.wrong]:
            (lesson,) = validation_lessons(task, 1, options.skip + i)
            show_wrong(lesson, score.texts[i])


if __name__ == "__main__":
    main()
