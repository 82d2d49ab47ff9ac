"""Sandbox for model-written programs: run isolated, with limits, and judged by their tests.

See docs/sandbox.md for what it guarantees and what it does not.
"""

from c4.tasks.sandbox.run import Limits, Outcome, RunEnd, can_isolate, run_program

__all__ = ["Limits", "Outcome", "RunEnd", "can_isolate", "run_program"]
