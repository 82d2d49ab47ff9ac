"""Checks for plug-ins of users' own: the contracts that c4's own keep.

Each function takes an object, a class or a name, tries it on made-up data, and raises
`BrokenPlugin` with everything that it found wrong. c4's own tests call the same functions.
"""

from c4.testing._contract import BrokenPlugin
from c4.testing._extractors import check_extractor
from c4.testing._gates import check_gate
from c4.testing._graders import check_grader
from c4.testing._rules import check_rule
from c4.testing._signals import check_signal
from c4.testing._tasks import check_task

__all__ = [
    "BrokenPlugin",
    "check_extractor",
    "check_gate",
    "check_grader",
    "check_rule",
    "check_signal",
    "check_task",
]
