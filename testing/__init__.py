"""Checks for gates, commit rules and tasks of users' own: the contracts that c4's own keep.

Each function takes an object, a class or a name, tries it on made-up data, and raises
`BrokenPlugin` with everything that it found wrong. c4's own tests call the same functions.
"""

from c4.testing._contract import BrokenPlugin
from c4.testing._gates import check_gate
from c4.testing._rules import check_rule
from c4.testing._tasks import check_task

__all__ = ["BrokenPlugin", "check_gate", "check_rule", "check_task"]
