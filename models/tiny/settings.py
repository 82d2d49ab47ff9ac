"""Every number the training of the embedded model depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from c4.tasks.problems import EVALUATION


@dataclass(frozen=True, kw_only=True)
class BlockShape:
    """A decode's size: positions, steps and positions per block."""

    length: int
    steps: int
    block: int


SHAPES = {
    "letters": BlockShape(length=32, steps=32, block=8),
    "long_reasoning": BlockShape(length=72, steps=72, block=9),
    "code": BlockShape(length=64, steps=64, block=8),
}
"""One shape per family, as short as the answers allow."""

MIXTURE = {
    "mmlu": 1.6,
    "arc_c": 1.6,
    "hellaswag": 1.4,
    "winogrande": 1.6,
    "piqa": 1.4,
    "truthfulqa": 1.2,
    "gsm8k": 2.0,
    "math": 1.5,
    "svamp": 0.8,
    "asdiv": 0.7,
    "gsmhard": 1.3,
    "humaneval": 1.3,
    "mbpp": 1.6,
}
"""How often each task is drawn, relative to the others."""

LETTERS_MIXTURE = {
    "mmlu": 5.0,
    "arc_c": 4.0,
    "hellaswag": 3.0,
    "winogrande": 4.0,
    "piqa": 1.5,
    "truthfulqa": 4.0,
    "gsm8k": 1.0,
    "math": 0.7,
    "svamp": 0.5,
    "asdiv": 0.5,
    "gsmhard": 1.0,
    "humaneval": 0.7,
    "mbpp": 0.7,
}
"""The same for the phases that are about letters."""

MASKED_MIXTURE = {
    "mmlu": 4.0,
    "arc_c": 2.5,
    "hellaswag": 1.3,
    "winogrande": 3.0,
    "piqa": 1.0,
    "truthfulqa": 2.5,
    "gsm8k": 2.0,
    "math": 1.5,
    "svamp": 0.8,
    "asdiv": 0.7,
    "gsmhard": 1.4,
    "humaneval": 1.2,
    "mbpp": 1.4,
}
"""The same for the last phase: what letters lack, they are given."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The network's size."""

    width: int = 160
    layers: int = 4
    heads: int = 4
    mlp_width: int = 448
    rope_theta: float = 10_000.0
    max_length: int = 512
    init_std: float = 0.02


@dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """One phase of training. Its schedule runs on training seconds, so that it ends on time."""

    name: str
    masked: bool
    """Whether the model denoises; else it writes from left to right."""
    minutes: float
    first_problem: int
    """Far from those of the other phases, so that no problem is seen twice."""
    mixture: Mapping[str, float] = field(default_factory=lambda: MIXTURE)
    letter_last_share: float = 0.0
    """Letter problems answered with the text first and the letter behind it: to find the letter
    that stands before a text is half of choosing one."""
    every_choice_share: float = 0.0
    """Letter problems whose answer goes on with all other choices: a letter to find in each."""
    matrix_rate: float
    """Peak rate of Muon, which trains the matrices between embedding and head."""
    other_rate: float
    """Peak rate of AdamW, which trains the rest."""
    batch_tokens: int = 4608
    warmup: float = 0.02
    """Share of the phase over which the rates rise."""
    floor: float = 0.02
    """Share of the peak at which the cosine ends."""


PHASES = (
    PhaseSettings(
        name="causal",
        masked=False,
        minutes=32.0,
        first_problem=EVALUATION,
        letter_last_share=0.5,
        matrix_rate=0.02,
        other_rate=3e-3,
    ),
    PhaseSettings(
        name="letters",
        masked=False,
        minutes=7.0,
        first_problem=5_000_000,
        mixture=LETTERS_MIXTURE,
        letter_last_share=0.3,
        matrix_rate=0.015,
        other_rate=3e-3,
    ),
    PhaseSettings(
        name="masked letters",
        masked=True,
        minutes=10.0,
        first_problem=8_000_000,
        mixture=LETTERS_MIXTURE,
        every_choice_share=0.5,
        matrix_rate=0.012,
        other_rate=3e-3,
        floor=0.7,
    ),
    PhaseSettings(
        name="masked",
        masked=True,
        minutes=36.0,
        first_problem=10_000_000,
        mixture=MASKED_MIXTURE,
        batch_tokens=2048,
        matrix_rate=0.01,
        other_rate=2.5e-3,
    ),
)

VALIDATION_FIRST = 20_000_000
"""Problem number behind all training, for watching it: evaluation problems stay unseen."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The whole run."""

    seed: int = 0
    vocabulary: int = 1013
    """Tokens, the 256 bytes and the specials included."""
    pool: int = 2048
    """Problems sorted by length at a time, to be cut into batches."""
    length_noise: float = 8.0
    """Tokens by which the sorting may err."""
    uniform_share: float = 0.4
    """Rows of the masked phase with a random share masked; the rest are semi-autoregressive."""
    varied_length_share: float = 0.15
    """Rows of the masked phase whose generation is not exactly the family's length."""
    end_weight: float = 0.2
    """Loss weight of end tokens after the first."""
    letter_weight: float = 4.0
    """Loss weight of the letter that is the answer: one token of a few, and the one that counts."""
    clip: float = 1.0
    model: ModelSettings = field(default_factory=ModelSettings)
