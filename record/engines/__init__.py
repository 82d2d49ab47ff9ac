"""Engines: ways to start workers. What a worker does is a job; the run itself divides the work.

An engine starts workers, says which have ended, and stops them. Whatever it is, workers claim their
trajectories from the run's folder, so any number of engines and commands may work on one run, and
none of them needs to survive.
"""

from c4.record.engines.choice import ENGINES, EngineChoice, open_engine
from c4.record.engines.jobs import DecodeJob, GradeJob, Request
from c4.record.engines.supervise import Engine, Supervisor
from c4.record.engines.work import Job, Outcome, Worker

__all__ = [
    "ENGINES",
    "DecodeJob",
    "Engine",
    "EngineChoice",
    "GradeJob",
    "Job",
    "Outcome",
    "Request",
    "Supervisor",
    "Worker",
    "open_engine",
]
