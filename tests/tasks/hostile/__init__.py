"""Hostile programs, as data: what each does, the tests it is given, how its run may end.

Every kind has its module. `Control` says how it is shown that an attempt is sound: that it would
have worked on a grader, or without a wall, that does less.
"""

from hostile._blames import BLAMES
from hostile._bombs import BOMBS
from hostile._escapes import ESCAPES
from hostile._names import REDEFINED
from hostile._objects import LYING_OBJECTS
from hostile._program import HONEST, TESTS, WRONG, Control, Hostile, Kind
from hostile._reports import FORGED_REPORTS
from hostile._runner import (
    LIMITS,
    blames_without_filter,
    passes_in_one_process,
    passes_without_wall,
    run_hostile,
    survivors,
)
from hostile._survivors import SURVIVORS
from hostile._thefts import LOOK, THEFTS, THIEVES
from hostile._world import World, outside_world

HOSTILE = [
    *FORGED_REPORTS,
    *REDEFINED,
    *LYING_OBJECTS,
    *THEFTS,
    *BOMBS,
    *ESCAPES,
    *BLAMES,
    *SURVIVORS,
]
"""All of them."""

__all__ = [
    "HONEST",
    "HOSTILE",
    "LIMITS",
    "LOOK",
    "TESTS",
    "THIEVES",
    "WRONG",
    "Control",
    "Hostile",
    "Kind",
    "World",
    "blames_without_filter",
    "outside_world",
    "passes_in_one_process",
    "passes_without_wall",
    "run_hostile",
    "survivors",
]
