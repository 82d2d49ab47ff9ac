"""How a program that a model wrote is run: isolated, with limits, and judged by its tests.

docs/sandbox.md says what this promises, and what not.
"""

from c4.tasks.sandbox.run import Limits, Outcome, RunEnd, can_isolate, run_program

__all__ = ["Limits", "Outcome", "RunEnd", "can_isolate", "run_program"]
