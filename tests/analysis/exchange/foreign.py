"""Files as other projects write them, made from decodes small enough to read."""

import io
import json
import os
import pickle
import zipfile
from dataclasses import dataclass, field

import torch

PROMPT = 3


@dataclass
class Decode:
    """Predictions of every step, and the step at which each position was committed."""

    predictions: list[list[int]]
    """predictions[step][position]"""
    commit_step: list[int]
    answer: list[int] = field(default_factory=lambda: [7])
    """Tokens of the answer, as its authors would find them."""
    at: int = 2
    """Where they stand in the finished text."""

    @property
    def final(self):
        return [self.predictions[s - 1][i] if s else 50 + i for i, s in enumerate(self.commit_step)]


SETTLES_LATE = Decode(
    predictions=[[1, 2, 7, 4], [1, 2, 8, 4], [1, 2, 7, 4], [1, 2, 7, 4]],
    commit_step=[1, 2, 4, 3],
)
"""The answer 7 stands at position 2: it is there at first, gone at step 2, back from step 3 on."""
GIVEN = Decode(predictions=[[1, 9, 7, 4], [1, 9, 5, 4]], commit_step=[1, 0, 1, 2])
"""Position 1 was given from the start; the answer is committed at once, whatever is said later."""


def save_prophet(path, decode, *, blocks=2, **changes):
    """A file as Prophet's `save_question_histories` writes it."""
    prompt = [90 + i for i in range(PROMPT)]
    steps = len(decode.predictions)
    x0 = torch.tensor([[*prompt, *row] for row in decode.predictions])
    places = [
        torch.tensor(
            [[0, PROMPT + i] for i, s in enumerate(decode.commit_step) if s == step],
            dtype=torch.long,
        ).reshape(-1, 2)
        for step in range(1, steps + 1)
    ]
    per_block = steps // blocks
    cut = [slice(b * per_block, (b + 1) * per_block) for b in range(blocks)]
    saved = {
        "x0_history": [x0[part] for part in cut],
        "true_indices_history": [places[part] for part in cut],
        "correct": True,
        "pred_text": "so 7",
        "ans_posidx": PROMPT + decode.at,
        "pred_ans": "7",
        "gt_text": "7",
        "pred_token_id": decode.answer,
        "gt_token_id": decode.answer,
        "prompt_token_len": PROMPT,
        "gen_ids": decode.final,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(saved | changes, path)
    return path


class Calls:
    """Is unpickled by a call."""

    def __init__(self, called, *arguments):
        self.call = called, arguments

    def __reduce__(self):
        return self.call


def pickled(value, storage=None, protocol=None):
    """A value, or bytes in the place of its pickle, as a file of torch would hold it."""
    content = io.BytesIO()
    program = value if isinstance(value, bytes) else pickle.dumps(value, protocol)
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        archive.writestr("archive/version", "3")
        if storage is not None:
            archive.writestr("archive/data/0", storage)
    return content.getvalue()


def save_evil(path, command, protocol=2):
    """A file that looks like one of torch's and runs a command when it is loaded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickled({"x0_history": Calls(os.system, command)}, protocol=protocol))
    return path


def klass_steps(texts, positions):
    """Steps as KLASS's `stable_confident_decode` writes them."""
    steps = []
    for number, (text, places) in enumerate(zip(texts, positions, strict=True), 1):
        tokens = [
            {
                "position": p,
                "token_id": 5,
                "decoded_token": "x",
                "confidence": 0.9,
                "kl_divergence": 0.0,
            }
            for p in places
        ]
        steps.append(
            {
                "step": number,
                "decoded_text": text,
                "decoded_tokens_num": len(tokens),
                "decoded_tokens": tokens,
                "all_tokens": tokens,
            }
        )
    return steps


def save_klass(root, texts, positions, *, question=0, sample=0, steps=8):
    """A folder as KLASS leaves it: the steps of a question, and the file of results above them."""
    folder = root / "LLaDA" / "gsm8k" / "klass" / f"steps_{steps}" / "conf0.6" / "stepwise"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"all_steps_q{question}_s{sample}.json"
    path.write_text(json.dumps(klass_steps(texts, positions)))
    judged = {"sample_idx": sample, "is_correct": True, "parsed_answer": "12"}
    results = {
        "results": [{"task_id": question, "ground_truth_answer": "12", "samples": [judged]}],
    }
    (folder.parent / "all_results.json").write_text(json.dumps(results))
    return path
