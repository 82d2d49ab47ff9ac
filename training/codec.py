"""The tokenizer, trained on the lessons, and texts as ids."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from c4.store.arrays import IntArray
from c4.tasks.problems import EVALUATION
from c4.tasks.vocabulary import Vocabulary
from training.lessons import lesson
from training.settings import MIXTURE

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
    """Texts as ids, with the specials by name."""

    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The tokenizer of a folder that `save_tokenizer` wrote."""
        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))

    @cached_property
    def end(self) -> int:
        return self._id(END)

    @cached_property
    def mask(self) -> int:
        return self._id(MASK)

    @cached_property
    def size(self) -> int:
        """Tokens there are, the specials included."""
        return int(self.tokenizer.get_vocab_size())

    @cached_property
    def numbers(self) -> IntArray:
        """Ids of the tokens that are numbers, 0 to 99."""
        return np.array([i for token, i in self.tokenizer.get_vocab().items() if token.isdecimal()])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What turns generated ids back into text."""
        return Vocabulary(self.tokenizer.to_str(), [self.end])

    def prompt(self, text: str) -> list[int]:
        """What the chat template makes of one user message."""
        return self.response(f"{USER}{text}{ASSISTANT}")

    def response(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _id(self, token: str) -> int:
        return int(self.tokenizer.get_vocab()[token])
