"""The paper's shapes, one per family."""

from c4.tasks.task import Family, Shape

LETTERS_SHAPE = Shape(length=64, budget=64, block_length=16)
LONG_REASONING_SHAPE = Shape(length=256, budget=256, block_length=32)
CODE_SHAPE = Shape(length=384, budget=384, block_length=32)
SHAPES = {
    Family.LETTERS: LETTERS_SHAPE,
    Family.LONG_REASONING: LONG_REASONING_SHAPE,
    Family.CODE: CODE_SHAPE,
}
