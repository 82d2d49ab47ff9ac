"""A job that costs a worker its life, in a module that a new process imports in no time."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KillerJob:
    """The first worker that comes to it is killed; the next does everything."""

    mark: Path
    folders = ()

    def work(self, worker):
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [1, 2, 3]
