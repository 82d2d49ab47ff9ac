"""From problems to batches: texts, the tokenizer trained on them, rows and their masks.

Batches are a pure function of the seed, the phase and their place in the stream, so a training
that stops resumes with exactly the batch it would have seen.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path

import numpy as np
from settings import (
    LETTER_TASKS,
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
from c4.tasks.problems import EVALUATION, equation, problem

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

CHOICE = r"^[A-M]\. .+$"
"""A line of a prompt that offers a choice."""

NEVER = 2**30
"""Order of a position that nobody outside its group sees."""

IGNORED = -100
"""Target of a position without loss."""


@dataclass(frozen=True)
class Lesson:
    """A problem as text: what is asked, what should be written, and how it is graded."""

    task: str
    example: Example
    response: str


def lesson(task: str, index: int) -> Lesson:
    """The problem of this number with the response a model is taught."""
    made = problem(task, index)
    example = TASKS[task].read(made.row)
    if example is None:
        raise ValueError(f"{task} {index}: the task does not read its own problem")
    response = made.solution
    if task in LETTER_TASKS:
        response = f"{example.target}. {response}"
    return Lesson(task, example, response)


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
    letters = "\n".join(f"{letter}. " for letter in "ABCDEFGHIJKLM")
    yield from [numbers, letters] * lessons_per_task
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

    @cached_property
    def numbers(self) -> np.ndarray:
        """Ids of the tokens that are numbers, 0 to 99."""
        return np.array([i for token, i in self.tokenizer.get_vocab().items() if token.isdecimal()])

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
    """One lesson in tokens: `ids` are the prompt, the response and its end tokens.

    Or, if there are `choices`, the prompt alone.
    """

    task: str
    ids: list[int]
    prompt: int
    """Length of the prompt."""
    response: int
    """Length of the response without end tokens."""
    has_letter: bool
    """Whether the response begins with the letter that is the answer."""
    probed: bool
    """Asked for by probes if true, else masked in the sequence itself."""
    choices: tuple[list[int], ...] = ()
    """Letter and text of each, if their letters are asked for instead of a response."""
    results: tuple[int, ...] = ()
    """Where in `ids` the results of calculations stand, if only these are masked."""

    @property
    def cost(self) -> int:
        """Positions that it takes in a batch."""
        probe = len(self.ids) - self.prompt if self.probed else 0
        return len(self.ids) + probe + sum(map(len, self.choices))


@dataclass(frozen=True)
class Sight:
    """Who sees whom, where not everybody sees everybody. Arrays are (rows, length).

    A position sees those whose `order` its `limit` reaches, and those of its own `group`.
    """

    positions: np.ndarray
    """Rotary positions."""
    order: np.ndarray
    limit: np.ndarray
    group: np.ndarray
    """0 is nobody's group."""


@dataclass(frozen=True)
class Probe:
    """What stands behind a row and is asked for. All arrays have one length."""

    shown: np.ndarray
    """Tokens, and masks where they are asked for."""
    asked: np.ndarray
    """Tokens, IGNORED where they are shown."""
    place: np.ndarray
    """Where they would stand in the response."""
    limit: np.ndarray
    """As in `Sight`, as is the group."""
    group: np.ndarray


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
    sight: Sight | None = None


class Stream:
    """The batches of a phase, from any place on."""

    def __init__(self, settings: Settings, codec: Codec, phase: PhaseSettings) -> None:
        self.settings = settings
        self.codec = codec
        self.phase = phase

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
        """A pool cut into groups of one kind and similar length, in random order."""
        weights = np.array(list(self.phase.mixture.values()))
        size = self.settings.pool
        drawn = rng.choice(len(weights), size=size, p=weights / weights.sum())
        start = self.phase.first_problem + size * number
        names = list(self.phase.mixture)
        probed = rng.random(size) < self.phase.probe_share
        rows = [self._row(names[drawn[i]], start + i, bool(probed[i]), rng) for i in range(size)]
        rows += [self._sheet(rng) for _ in range(round(size * self.phase.sheet_share))]
        # A little out of order, so that a batch is not all of one task.
        noise = rng.uniform(0, self.settings.length_noise, len(rows))
        order = np.argsort(noise + [row.cost for row in rows])
        groups = []
        for kind in (True, False):
            groups += self._cut([rows[i] for i in order if rows[i].probed == kind])
        return [groups[i] for i in rng.permutation(len(groups))]

    def _cut(self, rows: list[Row]) -> list[list[Row]]:
        """Sorted rows cut into batches of the phase's size."""
        groups, at = [], 0
        while at < len(rows):
            longest = max(row.cost for row in rows[at : at + 32])
            fit = max(1, self.phase.batch_tokens // longest)
            # What would be left over joins the last batch: a batch of a few rows is all noise.
            fit = len(rows) - at if len(rows) - at < 1.25 * fit else fit
            groups.append(rows[at : at + fit])
            at += fit
        return groups

    def _row(self, task: str, index: int, probed: bool, rng: np.random.Generator) -> Row:
        one = lesson(task, index)
        prompt = self.codec.prompt(one.example.prompt)
        if probed and task in LETTER_TASKS and rng.random() < self.phase.lookup_share:
            return self._choices_row(task, one.example.prompt)
        response = self.codec.response(one.response)
        ends = self.settings.probe_ends
        if not probed:
            ends = max(1, self._length(task, len(response), rng) - len(response))
        return Row(
            task,
            ids=prompt + response + [self.codec.end] * ends,
            prompt=len(prompt),
            response=len(response),
            has_letter=task in LETTER_TASKS,
            probed=probed,
        )

    def _sheet(self, rng: np.random.Generator) -> Row:
        """A sheet of calculations as the solutions write them, their results to be filled in."""
        prompt = self.codec.prompt("")
        ids, results = list(prompt), []
        for _ in range(self.settings.sheet_calculations):
            left, operator, right = draw_calculation(rng)
            tokens = self.codec.response(f" {equation(left, operator, right)}")
            last = max(i for i, token in enumerate(tokens) if token in self.codec.numbers)
            results.append(len(ids) + last)
            ids += tokens
        return Row(
            "calculations",
            ids=ids,
            prompt=len(prompt),
            response=len(ids) - len(prompt),
            has_letter=False,
            probed=False,
            results=tuple(results),
        )

    def _choices_row(self, task: str, text: str) -> Row:
        """A prompt without a response, every choice of which is asked for its letter."""
        prompt = self.codec.prompt(text)
        lines = re.findall(CHOICE, text, flags=re.MULTILINE)
        if not lines:
            raise ValueError(f"{task}: no choices in {text!r}")
        choices = tuple(self.codec.response(line) for line in lines)
        return Row(
            task,
            ids=prompt,
            prompt=len(prompt),
            response=0,
            has_letter=False,
            probed=True,
            choices=choices,
        )

    def _length(self, task: str, response: int, rng: np.random.Generator) -> int:
        """How many positions are generated: the family's length, now and then another."""
        shape = shape_of(task)
        if rng.random() >= self.settings.varied_length_share:
            return shape.length
        low = max(response + 1, shape.length - 2 * shape.block)
        return int(rng.integers(low, max(low, shape.length + shape.block) + 1))

    def _batch(self, rows: list[Row], rng: np.random.Generator, place: tuple[int, int]) -> Batch:
        make = self._probes if rows[0].probed else self._masked
        inputs, targets, weights, sight = make(rows, rng)
        numbers = np.isin(targets, self.codec.numbers)
        weights = weights * np.where(numbers, self.settings.number_weight, 1.0)
        weights = np.where(targets == IGNORED, 0, weights).astype(np.float32)
        problems = Counter(row.task for row in rows)
        return Batch(inputs, targets, weights, problems, place, sight)

    def _probes(
        self, rows: list[Row], rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Sight]:
        """Every block of every response asked for at once, each from what stands before it.

        Behind a row stands a copy of its response, masked but for what is revealed. A block of
        the copy sees the prompt, the real response before the block, and itself: what block-wise
        decoding sees, but for the masked rest. The real response sees only what is before it,
        so that it tells nothing it could not know. Behind a row without a response stands every
        choice, its letter masked: which letter belongs to which text is hard to find out from
        one letter a row.
        """
        shape = (len(rows), max(row.cost for row in rows))
        inputs = np.full(shape, self.codec.end)
        targets, weights = np.full(shape, IGNORED), np.ones(shape)
        positions, limit, group = (np.zeros(shape, np.int64) for _ in range(3))
        order = np.full(shape, NEVER)
        for i, row in enumerate(rows):
            probe = self._ask_choices(row) if row.choices else self._ask_response(row, rng)
            stop = len(row.ids)
            real, copy = slice(0, stop), slice(stop, row.cost)
            inputs[i, real], inputs[i, copy] = row.ids, probe.shown
            targets[i, copy] = probe.asked
            positions[i, real], positions[i, copy] = np.arange(stop), row.prompt + probe.place
            order[i, real] = limit[i, real] = np.maximum(0, np.arange(stop) - row.prompt + 1)
            limit[i, copy], group[i, copy] = probe.limit, probe.group
            if row.has_letter:
                weights[i, stop] = self.settings.letter_weight
        return inputs, targets, weights, Sight(positions, order, limit, group)

    def _ask_response(self, row: Row, rng: np.random.Generator) -> Probe:
        """All blocks of a response, each from what stands before it."""
        answer = np.array(row.ids[row.prompt :])
        place = np.arange(len(answer))
        block = int(rng.choice(self.settings.probe_blocks))
        hidden = part_masked(len(answer), block, rng)
        return Probe(
            shown=np.where(hidden, self.codec.mask, answer),
            asked=np.where(hidden, answer, IGNORED),
            place=place,
            limit=place // block * block,
            group=place // block + 1,
        )

    def _ask_choices(self, row: Row) -> Probe:
        """Every choice's letter, from the prompt and the choice's text."""
        place = np.concatenate([np.arange(len(choice)) for choice in row.choices])
        line = np.concatenate(row.choices)
        return Probe(
            shown=np.where(place == 0, self.codec.mask, line),
            asked=np.where(place == 0, line, IGNORED),
            place=place,
            limit=np.zeros_like(place),
            group=np.cumsum(place == 0),
        )

    def _masked(
        self, rows: list[Row], rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, None]:
        """Masked positions predict their own token, where the kind of row puts a loss."""
        ids = np.full((len(rows), max(len(row.ids) for row in rows)), self.codec.end)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
        masked, losses = np.zeros(ids.shape, bool), np.zeros(ids.shape)
        weights = np.where(ids == self.codec.end, self.settings.end_weight, 1.0)
        for i, row in enumerate(rows):
            generated = ids.shape[1] - row.prompt
            hidden, loss = self._hide(row, generated, rng)
            masked[i, row.prompt :] = hidden
            losses[i, row.prompt :] = loss
            if not row.results:
                weights[i, row.prompt + row.response] = 1.0
            if row.has_letter:
                weights[i, row.prompt] = self.settings.letter_weight
        inputs = np.where(masked, self.codec.mask, ids)
        return inputs, np.where(losses > 0, ids, IGNORED), weights * losses, None

    def _hide(
        self, row: Row, generated: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is masked in a row, and the weight of the loss there; both (generated,)."""
        if row.results:
            hidden = np.isin(np.arange(generated) + row.prompt, row.results)
            return hidden, hidden.astype(float)
        block = shape_of(row.task).block
        if rng.random() < self.settings.uniform_share:
            return uniformly_masked(generated, rng)
        return semi_autoregressive(generated, block, row.response, rng)


def draw_calculation(rng: np.random.Generator) -> tuple[int, str, int]:
    """A calculation of the kind that the worked solutions hold: left, operator, right."""
    kind = rng.integers(9)
    if kind < 3:
        return int(rng.integers(2, 25)), "+", int(rng.integers(2, 25))
    if kind < 5:
        right = int(rng.integers(2, 25))
        return right + int(rng.integers(1, 32)), "-", right
    if kind == 5:
        return int(rng.integers(2, 9)), "*", int(rng.integers(2, 9))
    if kind == 6:
        right = int(rng.integers(2, 9))
        return right * int(rng.integers(2, 14)), "/", right
    return int(rng.integers(9, 65)), "+", int(rng.integers(9, 21))


def uniformly_masked(generated: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random share masked, and the loss's weight; both (generated,)."""
    hidden = rng.random(generated) < rng.random()
    return hidden, hidden.astype(float)


def part_masked(generated: int, block: int, rng: np.random.Generator) -> np.ndarray:
    """What is masked where every block is at some point of being filled. (generated,)

    Half of the blocks are masked whole; of the others at least one position is masked.
    """
    hidden = np.ones(generated, bool)
    for start in range(0, generated, block):
        size = min(block, generated - start)
        if size > 1 and rng.random() < 0.5:
            shown = rng.choice(size, int(rng.integers(1, size)), replace=False)
            hidden[start + shown] = False
    return hidden


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
