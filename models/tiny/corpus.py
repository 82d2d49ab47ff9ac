"""From problems to batches: texts, the tokenizer trained on them, rows and their masks.

Batches are a pure function of the seed, the phase and their place in the stream, so a training
that stops resumes with exactly the batch it would have seen.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, islice
from pathlib import Path

import numpy as np
from settings import (
    MIXTURE,
    PHASES,
    SHAPES,
    VALIDATION_FIRST,
    BlockShape,
    PhaseSettings,
    Settings,
)
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from c4.tasks import TASKS, Example
from c4.tasks.problems import EVALUATION, problem

END, MASK, USER, ASSISTANT = "<|end|>", "<|mask|>", "<|user|>", "<|assistant|>"
SPECIALS = (END, MASK, USER, ASSISTANT)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

# A choice's letter is one token with its full stop and so stands right before the choice's text.
# Numbers are cut into pairs of digits from the right, so that hundreds keep their place.
PIECES = r"(?<![^\n])[A-M]\.(?= )|\d{1,2}(?=(?:\d\d)*(?!\d))| ?[A-Za-z]+| ?[^\sA-Za-z\d]+|\s+"


CHOICE = re.compile(r"^([A-M])\. (.+)$", re.MULTILINE)

IGNORED = -100
"""Target of a position without loss."""


@dataclass(frozen=True)
class Lesson:
    """A problem as text: what is asked, what should be written, and how it is graded."""

    task: str
    example: Example
    response: str


class LetterForm(StrEnum):
    """How a letter problem is answered. Only the first form is what the model should give."""

    LETTER_FIRST = "letter first"
    TEXT_FIRST = "text first"
    EVERY_CHOICE = "every choice"  # letter first, and so on with all others


def lesson(
    task: str, index: int, form: LetterForm = LetterForm.LETTER_FIRST, seed: int = 0
) -> Lesson:
    """The problem of this number with the response a model is taught."""
    made = problem(task, index)
    example = TASKS[task].read(made.row)
    if example is None:
        raise ValueError(f"{task} {index}: the task does not read its own problem")
    response = made.solution
    if TASKS[task].family == "letters":
        response = letter_response(example, made.solution, form, seed)
    return Lesson(task, example, response)


def letter_response(example: Example, text: str, form: LetterForm, seed: int) -> str:
    """The answer to a letter problem whose right choice says `text`."""
    if form is LetterForm.LETTER_FIRST:
        return f"{example.target}. {text}"
    if form is LetterForm.TEXT_FIRST:
        return f"{text}\n{example.target}. "
    others = [choice for choice in CHOICE.findall(example.prompt) if choice[0] != example.target]
    order = np.random.default_rng(seed).permutation(len(others))
    choices = [(example.target, text), *(others[i] for i in order)]
    return "\n".join(f"{letter}. {text}" for letter, text in choices)


def shape_of(task: str) -> BlockShape:
    """The embedded model's shape for a task."""
    return SHAPES[TASKS[task].family]


def train_tokenizer(vocabulary: int, lessons_per_task: int = 1500) -> Tokenizer:
    """Byte-level BPE over training problems, every number below 100 a token of its own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_tokenizer_texts(lessons_per_task), trainer)
    return tokenizer


def _tokenizer_texts(lessons_per_task: int) -> Iterator[str]:
    numbers = " ".join(f"{n} {n:02d}" for n in range(100))
    yield from [numbers] * lessons_per_task
    for task in MIXTURE:
        for index in range(EVALUATION, EVALUATION + lessons_per_task):
            one = lesson(task, index)
            yield f"{one.example.prompt}\n{one.response}"


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """A folder that `AutoTokenizer.from_pretrained` loads."""
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        mask_token=MASK,
        additional_special_tokens=[USER, ASSISTANT],
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder, save_jinja_files=False)


@dataclass(frozen=True)
class Codec:
    """Texts to ids and back, with the specials by name."""

    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path) -> "Codec":
        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))

    @property
    def end(self) -> int:
        return self.tokenizer.token_to_id(END)

    @property
    def mask(self) -> int:
        return self.tokenizer.token_to_id(MASK)

    def prompt(self, text: str) -> list[int]:
        """What the chat template makes of one user message."""
        return self.tokenizer.encode(f"{USER}{text}{ASSISTANT}", add_special_tokens=False).ids

    def response(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def text(self, ids: list[int]) -> str:
        """Generated ids as text, up to the first end token."""
        stop = ids.index(self.end) if self.end in ids else len(ids)
        return self.tokenizer.decode(ids[:stop], skip_special_tokens=False)


@dataclass(frozen=True)
class Row:
    """One lesson in tokens: `ids` are the prompt, the response and its end tokens."""

    task: str
    ids: list[int]
    prompt: int
    """Length of the prompt."""
    response: int
    """Length of the response without end tokens."""
    letters: list[int]
    """Places in `ids` of the letters that stand for a choice."""
    form: LetterForm


@dataclass(frozen=True)
class Batch:
    """Arrays of shape (rows, length). The model reads `inputs` and should predict `targets`."""

    inputs: np.ndarray
    targets: np.ndarray
    """IGNORED where there is no loss."""
    weights: np.ndarray
    problems: Counter[str]
    """Rows by task."""
    place: tuple[int, int]
    """Pool and number in the pool of the *next* batch."""


class Stream:
    """The batches of a phase, from any place on."""

    def __init__(self, settings: Settings, codec: Codec, phase: PhaseSettings) -> None:
        self.settings = settings
        self.codec = codec
        self.phase = phase
        self._letters = {codec.tokenizer.token_to_id(f"{letter}.") for letter in "ABCDEFGHIJKLM"}
        (self._newline,) = codec.response("\n")

    def batches(self, place: tuple[int, int] = (0, 0)) -> Iterator[Batch]:
        pool, first = place
        for number in count(pool):
            rng = np.random.default_rng([self.settings.seed, PHASES.index(self.phase), number])
            groups = self._groups(number, rng)
            for i, rows in enumerate(groups):
                # Masks are drawn for the batches skipped as well, or resuming would shift them.
                made = self._batch(rows, rng, (number, i + 1))
                if i >= first:
                    yield made
            first = 0

    def _groups(self, number: int, rng: np.random.Generator) -> list[list[Row]]:
        """A pool cut into groups of similar length, in random order."""
        mixture = self.phase.mixture
        weights = np.array(list(mixture.values()))
        size = self.settings.pool
        drawn = rng.choice(len(weights), size=size, p=weights / weights.sum())
        start = self.phase.first_problem + size * number
        names = list(mixture)
        rows = [self._row(names[task], start + i, rng) for i, task in enumerate(drawn)]
        # A little out of order, so that a batch is not all of one task.
        noise = rng.uniform(0, self.settings.length_noise, size)
        order = np.argsort(noise + [len(row.ids) for row in rows])
        rows = [rows[i] for i in order]
        groups, at = [], 0
        while at < len(rows):
            longest = max(len(row.ids) for row in rows[at : at + 32])
            fit = max(1, self.phase.batch_tokens // longest)
            # What would be left over joins the last batch: a batch of a few rows is all noise.
            fit = len(rows) - at if len(rows) - at < 1.25 * fit else fit
            groups.append(rows[at : at + fit])
            at += fit
        return [groups[i] for i in rng.permutation(len(groups))]

    def _row(self, task: str, index: int, rng: np.random.Generator) -> Row:
        form = self._form(rng)
        one = lesson(task, index, form, seed=index)
        prompt = self.codec.prompt(one.example.prompt)
        response = self.codec.response(one.response)
        if form is LetterForm.EVERY_CHOICE:
            response = response[: shape_of(task).length - 1]
        if self.phase.masked:
            ends = max(1, self._length(task, len(response), rng) - len(response))
        else:
            ends = 1
        letters = self._letter_places(response) if TASKS[task].family == "letters" else []
        return Row(
            task,
            ids=prompt + response + [self.codec.end] * ends,
            prompt=len(prompt),
            response=len(response),
            letters=[len(prompt) + place for place in letters],
            form=form,
        )

    def _form(self, rng: np.random.Generator) -> LetterForm:
        draw = rng.random()
        if draw < self.phase.letter_last_share:
            return LetterForm.TEXT_FIRST
        if draw < self.phase.letter_last_share + self.phase.every_choice_share:
            return LetterForm.EVERY_CHOICE
        return LetterForm.LETTER_FIRST

    def _letter_places(self, response: list[int]) -> list[int]:
        """Where a response has a letter at the beginning of a line."""
        before = [self._newline, *response]
        return [
            i
            for i, token in enumerate(response)
            if token in self._letters and before[i] == self._newline
        ]

    def _length(self, task: str, response: int, rng: np.random.Generator) -> int:
        """How many positions are generated: the family's length, now and then another."""
        shape = shape_of(task)
        if rng.random() >= self.settings.varied_length_share:
            return shape.length
        low = max(response + 1, shape.length - 2 * shape.block)
        return int(rng.integers(low, max(low, shape.length + shape.block) + 1))

    def _batch(self, rows: list[Row], rng: np.random.Generator, place: tuple[int, int]) -> Batch:
        longest = max(len(row.ids) for row in rows)
        ids = np.full((len(rows), longest), self.codec.end)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
        if self.phase.masked:
            inputs, targets, weights = self._masked(rows, ids, rng)
        else:
            inputs, targets, weights = ids, *self._causal(rows, ids)
        weights = np.where(targets == IGNORED, 0, weights).astype(np.float32)
        return Batch(inputs, targets, weights, Counter(row.task for row in rows), place)

    def _causal(self, rows: list[Row], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position i predicts token i+1 wherever that is the response's or its first end."""
        targets = np.full_like(ids, IGNORED)
        weights = np.ones(ids.shape)
        for i, row in enumerate(rows):
            inside = slice(row.prompt - 1, row.prompt + row.response)
            targets[i, inside] = ids[i, row.prompt : row.prompt + row.response + 1]
            weights[i, [place - 1 for place in row.letters]] = self.settings.letter_weight
        return targets, weights

    def _masked(
        self, rows: list[Row], ids: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masked positions predict their own token, where the kind of row puts a loss."""
        masked, losses = np.zeros(ids.shape, bool), np.zeros(ids.shape)
        weights = np.where(ids == self.codec.end, self.settings.end_weight, 1.0)
        for i, row in enumerate(rows):
            generated, block = ids.shape[1] - row.prompt, shape_of(row.task).block
            hidden, loss = self._hide(row, generated, block, rng)
            masked[i, row.prompt :] = hidden
            losses[i, row.prompt :] = loss
            weights[i, row.prompt + row.response] = 1.0
            weights[i, row.letters] = self.settings.letter_weight
        inputs = np.where(masked, self.codec.mask, ids)
        return inputs, np.where(losses > 0, ids, IGNORED), weights * losses

    def _hide(
        self, row: Row, generated: int, block: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is masked in a row, and the weight of the loss there; both (generated,)."""
        if row.form is LetterForm.EVERY_CHOICE and row.letters:
            places = [place - row.prompt for place in row.letters]
            return mostly_letters_masked(generated, places, rng)
        if rng.random() < self.settings.uniform_share:
            return uniformly_masked(generated, rng)
        return semi_autoregressive(generated, block, row.response, rng)


def uniformly_masked(generated: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random share masked, and the loss's weight; both (generated,)."""
    hidden = rng.random(generated) < rng.random()
    return hidden, hidden.astype(float)


def mostly_letters_masked(
    generated: int, letters: list[int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Most letters masked, most of the rest not, and the loss's weight; both (generated,)."""
    hidden = rng.random(generated) < rng.uniform(0, 0.5)
    hidden[letters] |= rng.random(len(letters)) < 0.8
    return hidden, hidden.astype(float)


def semi_autoregressive(
    generated: int, block: int, response: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Masks as block-wise decoding meets them, and the loss's weight; both (generated,).

    A clean prefix, one block partly masked, everything behind it masked; loss on the masked
    positions of that block and on the next block. Blocks of end tokens only are rare: they
    are learned at once.
    """
    last = generated - 1 if rng.random() < 0.1 else min(response, generated - 1)
    start = int(rng.integers(0, last // block + 1)) * block
    stop = min(start + block, generated)
    hidden = np.zeros(generated, bool)
    hidden[stop:] = True
    size = stop - start
    masked = size if rng.random() < 0.15 else int(rng.integers(1, size + 1))
    hidden[start + rng.choice(size, masked, replace=False)] = True
    loss = hidden.astype(float)
    loss[stop + block :] = 0
    return hidden, loss


def validation_lessons(task: str, n: int, skip: int = 0) -> list[Lesson]:
    """Lessons that neither training nor evaluation holds, in order."""
    return [lesson(task, index) for index in islice(count(VALIDATION_FIRST + skip), n)]
