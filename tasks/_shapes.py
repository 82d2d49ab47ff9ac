"""The paper's shapes, one per family."""

from c4.tasks._task import Shape

LETTERS_SHAPE = Shape(length=64, steps=64, block=16)
LONG_REASONING_SHAPE = Shape(length=256, steps=256, block=32)
CODE_SHAPE = Shape(length=384, steps=384, block=32)
