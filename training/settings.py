"""Every number the training of the embedded model depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from c4.tasks import TASKS, Family, Shape
from c4.tasks.problems import EVALUATION

SHAPES = {
    Family.LETTERS: Shape(length=32, budget=32, block_length=8),
    Family.LONG_REASONING: Shape(length=72, budget=72, block_length=9),
    Family.CODE: Shape(length=64, budget=64, block_length=8),
}
"""One shape per family, as short as the answers allow."""

MIXTURE = {
    "mmlu": 3.0,
    "arc_c": 2.5,
    "hellaswag": 1.5,
    "winogrande": 2.5,
    "piqa": 1.2,
    "truthfulqa": 2.0,
    "gsm8k": 2.0,
    "math": 1.5,
    "svamp": 0.8,
    "asdiv": 0.7,
    "gsmhard": 1.3,
    "humaneval": 1.2,
    "mbpp": 1.5,
}
"""How often each task is drawn, relative to the others."""

LETTER_TASKS = tuple(task for task in MIXTURE if TASKS[task].family is Family.LETTERS)
FEWER_LETTERS = {
    task: share / 2 if task in LETTER_TASKS else share for task, share in MIXTURE.items()
}
WEAKEST = {"truthfulqa": 2.5, "gsmhard": 2.5, "humaneval": 3.5, "mbpp": 2.5}


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The network's size."""

    width: int = 144
    layers: int = 5
    heads: int = 4
    mlp_width: int = 400
    rope_theta: float = 10_000.0
    max_length: int = 512
    init_std: float = 0.02
    """Standard deviation of the matrices at the start."""
    embedding_std: float = 0.3
    """The same for the embeddings: so large that AdamW's first updates do not wipe them out."""


@dataclass(frozen=True, kw_only=True)
class CircuitSettings:
    """The heads that training starts with; see `circuits.py`."""

    constant: float = 4.0
    """The feature that all tokens share, in standard deviations of the others."""
    sharpness: float = 5.0
    """Nats by which a neighbour is preferred to the next position."""
    carried: float = 3.0
    """How loud a neighbour is, relative to the token itself."""
    fast: int = 6
    """Rotary frequencies that tell neighbours apart."""
    slow: int = 8
    """From this frequency on, a few dozen positions hardly turn a vector."""
    likeness: float = 0.75
    """How strongly a head prefers the same neighbour; any stronger, it would see only itself."""


@dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """One phase of training. Its schedule runs on training seconds, so that it ends on time."""

    name: str
    """Name of the phase, and of the folder that keeps its weights."""
    minutes: float
    first_problem: int
    """Index of its first problem, far from the other phases' so that no problem is seen twice."""
    matrix_rate: float
    """Peak rate of Muon, which trains the matrices between embedding and head."""
    other_rate: float
    """Peak rate of AdamW, which trains the head and the norms."""
    embedding_rate: float
    """Peak rate of AdamW for the embeddings, which are larger."""
    probe_share: float = 1.0
    """Share of the rows that are probed; the others are masked in the sequence itself."""
    lookup_share: float = 0.0
    """Share of the probed letter rows that ask for every choice's letter instead of a response."""
    mixture: Mapping[str, float] = field(default_factory=lambda: MIXTURE)
    """How often each task is drawn."""
    sheet_share: float = 0.0
    """Number of calculation sheets, relative to the number of problems."""
    held_minutes: float = 0.0
    """Minutes for which the heads of `circuits.py` are held as they were set."""
    batch_tokens: int = 3072
    warmup: float = 0.02
    """Share of the phase over which the rates rise."""
    floor: float = 0.02
    """Share of the peak at which the cosine ends."""


PHASES = (
    PhaseSettings(
        name="lookups",
        minutes=3.0,
        first_problem=5_000_000,
        matrix_rate=0.01,
        other_rate=3e-3,
        embedding_rate=1.5e-2,
        lookup_share=1.0,
        mixture={task: share for task, share in MIXTURE.items() if task in LETTER_TASKS},
        held_minutes=3.0,
        warmup=0.1,
        floor=0.5,
    ),
    PhaseSettings(
        name="probes",
        minutes=40.0,
        first_problem=EVALUATION,
        matrix_rate=0.02,
        other_rate=3e-3,
        embedding_rate=1.5e-2,
        lookup_share=0.25,
        held_minutes=10.0,
        floor=0.1,
    ),
    PhaseSettings(
        name="masked",
        minutes=47.0,
        first_problem=10_000_000,
        matrix_rate=0.012,
        other_rate=2.4e-3,
        embedding_rate=1e-2,
        probe_share=0.2,
        lookup_share=0.2,
        mixture=FEWER_LETTERS,
    ),
    PhaseSettings(
        name="calculations",
        minutes=11.0,
        first_problem=15_000_000,
        matrix_rate=0.008,
        other_rate=2e-3,
        embedding_rate=8e-3,
        probe_share=0.15,
        sheet_share=0.4,
        lookup_share=0.2,
        mixture=FEWER_LETTERS,
    ),
    PhaseSettings(
        name="weakest",
        minutes=16.0,
        first_problem=17_000_000,
        matrix_rate=0.008,
        other_rate=2e-3,
        embedding_rate=8e-3,
        probe_share=0.25,
        sheet_share=0.4,
        lookup_share=0.4,
        mixture=FEWER_LETTERS | WEAKEST,
    ),
)

VALIDATION_FIRST = 20_000_000
"""Index of the first validation problem: behind all training problems, and none of evaluation."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the whole training."""

    seed: int = 4
    """Seed of weights and batches; of six tried, one whose heads soon look beyond themselves."""
    vocabulary: int = 1000
    """Number of tokens, the 256 bytes and the specials included."""
    pool: int = 2048
    """Number of problems that are sorted by length together and cut into batches."""
    length_noise: float = 8.0
    """Tokens by which the sorting may be off, so that batches mix tasks."""
    probe_blocks: tuple[int, ...] = (1, 1, 2, 4, 8)
    """Sizes of the blocks that are probed, one drawn for each row."""
    sheet_calculations: int = 16
    """Number of calculations on one sheet."""
    probe_ends: int = 2
    """Number of end tokens that are probed behind a response."""
    uniform_share: float = 0.25
    """Share of the masked rows with masks anywhere; the rest are masked as blocks are decoded."""
    varied_length_share: float = 0.15
    """Share of the masked rows whose generation is not exactly the family's length."""
    end_weight: float = 0.2
    """Loss weight of end tokens after the first."""
    letter_weight: float = 2.0
    """Loss weight of the letter that is the answer: one token of a few, and the one that counts."""
    number_weight: float = 3.0
    """Loss weight of numbers: most other tokens of a worked solution are soon learned."""
    clip: float = 1.0
    model: ModelSettings = field(default_factory=ModelSettings)
    circuits: CircuitSettings = field(default_factory=CircuitSettings)
