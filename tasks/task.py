"""The `Task` type: where rows come from, how a row becomes a prompt, and how answers are read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from c4.errors import ConfigError, naming_failures
from c4.plugins import plain_label

Row = Mapping[str, Any]
"""One row of a data set, with the hub's field names."""


class Family(StrEnum):
    """A family of tasks that share a shape and the settings of every peer method."""

    LETTERS = "letters"
    LONG_REASONING = "long_reasoning"
    CODE = "code"


class SearchMode(StrEnum):
    """Where in the generation an exit gate looks for the answer."""

    LAST = "last"  # the last match in the tail
    FIRST5 = "first5"  # a letter that starts within the first five positions
    CODE = "code"  # from the start through the first function's body


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a decode, checked on construction."""

    length: int
    """Generated positions, L."""
    budget: int
    """Denoising steps that a decode may spend, T; a multiple of the block count."""
    block_length: int
    """Positions per block, B; divides L."""

    def __post_init__(self) -> None:
        for name in ("length", "budget", "block_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.length % self.block_length:
            raise ConfigError(
                f"generation length {self.length} is not a multiple of block length "
                f"{self.block_length}; the nearest that is: "
                f"{_nearest_multiple(self.length, self.block_length)}"
            )
        if self.budget % self.blocks:
            raise ConfigError(
                f"{self.budget} steps cannot be shared evenly by {self.blocks} blocks "
                f"({self.length}/{self.block_length}); the nearest that can: "
                f"{_nearest_multiple(self.budget, self.blocks)}"
            )
        if self.budget > self.length:
            raise ConfigError(
                f"{self.budget} steps for {self.length} positions: a step must have a position "
                f"to commit; use at most {self.length} steps"
            )

    @property
    def blocks(self) -> int:
        """Number of blocks, N = L/B."""
        return self.length // self.block_length

    @property
    def steps_per_block(self) -> int:
        """Number of steps that every block may spend, S = T/N."""
        return self.budget // self.blocks

    def __str__(self) -> str:
        return f"{self.length}/{self.budget}/{self.block_length}"


def _nearest_multiple(value: int, base: int) -> int:
    return max(1, round(value / base)) * base


SHAPES = {
    Family.LETTERS: Shape(length=64, budget=64, block_length=16),
    Family.LONG_REASONING: Shape(length=256, budget=256, block_length=32),
    Family.CODE: Shape(length=384, budget=384, block_length=32),
}
"""The paper's shape for each family."""


@dataclass(frozen=True)
class Candidate:
    """An answer found in a text: its normal form and the characters that hold it."""

    value: str
    start: int
    end: int
    """One past the last character."""
    conclusive: bool = False
    """Whether more text cannot change the answer: text before it for an extractor that takes the
    last match, text after it for one that takes the first. False is always safe."""


class Extractor(Protocol):
    """Finds the answer in a text. A pure function, fast enough to run at every step."""

    def __call__(self, text: str, choices: Sequence[str] = ()) -> Candidate | None:
        """The answer, or None if the text holds none.

        Args:
            choices: the example's choices in the order of their letters; empty for free answers.
        """


Normal = Callable[[str], str]
"""Function that converts a gold answer to an extractor's normal form."""


class ReadingStyle(StrEnum):
    """Which of a task's extractors reads the answer."""

    CAREFUL = "careful"  # the default: knows the example's choices and how models write answers
    PLAIN = "plain"  # the paper's reading


class Ending(StrEnum):
    """How text after the first end token is treated."""

    CUT = "cut"  # dropped, as a user of the model would see it
    SKIP = "skip"  # kept without special tokens, as in the authors' release


class Grader(StrEnum):
    """How an answer is compared with the gold answer."""

    EXACT = "exact"  # equal normal forms
    MATH_VERIFY = "math-verify"  # if the forms differ, equal by computer algebra


@dataclass(frozen=True)
class AnswerReading:
    """How answers are read off tokens and compared. Recordings never depend on it.

    Signals and gates depend on style and ending, grades on all three fields.
    """

    style: str = ReadingStyle.CAREFUL
    """One of `ReadingStyle`, or the label of another extractor; see `reading.extractors`."""
    ending: Ending = Ending.CUT
    grader: str = Grader.EXACT
    """One of `Grader`, or the label of a user's grader; see `c4.tasks.graders`."""

    @classmethod
    def parse(cls, style: str, ending: str, grader: str = "exact") -> "AnswerReading":
        """The reading that a file describes; no code is loaded."""
        from c4.tasks.graders import REGISTRY as GRADERS
        from c4.tasks.reading.extractors import REGISTRY as EXTRACTORS

        return cls(EXTRACTORS.parse(style), Ending(ending), GRADERS.parse(grader))

    def __post_init__(self) -> None:
        """Turn c4's own names into enum members, so that code can compare with `is`."""
        for name, kind in (("style", ReadingStyle), ("ending", Ending), ("grader", Grader)):
            word = getattr(self, name)
            if word in list(kind):
                object.__setattr__(self, name, kind(word))  # the fields are frozen

    @property
    def style_name(self) -> str:
        """The extractor as a user would type it, without the hash of its source."""
        return plain_label(self.style)

    @property
    def grader_name(self) -> str:
        """The grader as a user would type it, without the hash of its source."""
        return plain_label(self.grader)

    @property
    def options(self) -> str:
        """The reading as command-line options."""
        return f"--reading {self.style_name} --ending {self.ending} --grader {self.grader_name}"

    @property
    def of_signals(self) -> dict[str, str]:
        """The part of the reading that signals and gates depend on."""
        return {"style": str(self.style), "ending": self.ending.value}

    def __str__(self) -> str:
        return f"{self.style}/{self.ending}"


LETTERS = "ABCDEFGHIJKLM"
"""Letters of the choices, in order."""
Choices = tuple[str, ...]
"""Texts of an example's choices, in the order of their letters; empty for free answers."""


@dataclass(frozen=True)
class Example:
    """One problem, ready to be asked and graded."""

    prompt: str
    """The user's message, without the model's chat template."""
    target: str
    """The gold answer; for code, a reference program."""
    preamble: str = ""
    """Code tasks only: source to run before the program."""
    tests: str = ""
    """Code tasks only: source to run after the program."""
    choices: Choices = ()
    """Letter tasks only: the texts of the choices, in the order of their letters."""


HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True, kw_only=True)
class HubSplit:
    """A split of a data set on the hub."""

    dataset: str
    """Hub id, or a folder that holds a copy."""
    split: str
    config: str | None = None
    revision: str | None = None
    """A branch, tag or commit; the newest version if None."""

    @property
    def public_name(self) -> str:
        """The data set's name for results, without the folders of this machine."""
        return self.dataset if HUB_ID.fullmatch(self.dataset) else f"./{Path(self.dataset).name}"


class Judge(Protocol):
    """Function that grades an answer instead of comparing normal forms."""

    def __call__(self, example: Example, answer: str, text: str) -> bool:
        """Whether an answer is right.

        Args:
            answer: the extracted answer, in normal form.
            text: the whole generation.
        """


@dataclass(frozen=True, kw_only=True)
class Task:
    """A benchmark: its rows, prompts, extractors, shape and number of examples."""

    name: str
    """Name of the task in folders, tables and options."""
    family: Family
    hub: HubSplit | None = None
    """The task's split on the hub, if it has one."""
    rows: Callable[[], Sequence[Row]] | Sequence[Row] | str | Path | None = None
    """Rows that a user's task supplies: the rows, a function that returns them, or a file."""
    read: Callable[[Row], Example | None]
    """Turns a row into an example, or into None to leave the row out."""
    extract: Extractor
    """Extractor of the careful reading."""
    plain: Extractor
    """Extractor of the paper's reading."""
    normal: Normal = str
    """Converts the gold answer to the normal form of `extract`."""
    plain_normal: Normal = str
    """Converts the gold answer to the normal form of `plain`."""
    search: SearchMode
    shape: Shape
    """The paper's shape. A model may define another one for the family."""
    fixed_shape: bool = False
    """Whether this shape takes precedence over a model's own shape for the family."""
    judge: Judge | None = None
    """Grades answers instead of comparing their normal forms."""
    n: int | None = None
    """Number of examples to evaluate; all if None."""
    skip: int = 0
    """Number of examples before those that are kept for calibration."""
    definition: Mapping[str, Any] = field(default_factory=dict)
    """Manifest entries that identify a user's task, or a prompt that replaces a task's own."""

    def __post_init__(self) -> None:
        for name, kind in (("family", Family), ("search", SearchMode)):
            word = getattr(self, name)
            if word not in list(kind):
                raise ConfigError(
                    f"the task {self.name}: {name} is one of {', '.join(kind)}, not {word!r}"
                )
            object.__setattr__(self, name, kind(word))  # the fields are frozen
        if not isinstance(self.shape, Shape):
            raise ConfigError(
                f"the task {self.name}: shape is a c4.tasks.Shape, not {self.shape!r}, as in "
                "Shape(length=64, budget=64, block_length=16)"
            )
        if isinstance(self.rows, Iterator):  # an iterator can be read only once
            object.__setattr__(self, "rows", list(self.rows))
        for name in ("read", "extract", "plain", "normal", "plain_normal"):
            if not callable(getattr(self, name)):
                raise ConfigError(f"the task {self.name}: {name} is no function")

    @property
    def is_own(self) -> bool:
        """Whether it is one of c4's own tasks, possibly with another prompt."""
        return not self.definition.keys() & {"task", "fields"}

    @property
    def grades_by_form(self) -> bool:
        """Whether an answer is right exactly if its normal form is the gold answer's."""
        return self.family is not Family.CODE and self.judge is None

    def gold(self, example: Example) -> str:
        """The gold answer, in the extractor's normal form."""
        with naming_failures(f"the normal form of {self.name} fails"):
            form = self.normal(example.target)
        if not isinstance(form, str):
            raise ConfigError(f"the normal form of {self.name} must be a text, not {form!r}")
        return form
