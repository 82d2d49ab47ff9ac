"""A word now and then to a user who has to wait."""

import logging
import time

PATIENCE = 2.0
"""Seconds after which a waiting user is told why."""
BETWEEN = 10.0
"""Seconds from one word to the next."""


class Patience:
    """Says how far something is that is measured in bytes, once it has taken two seconds."""

    def __init__(self, log: logging.Logger, doing: str, total: int) -> None:
        self.log = log
        self.doing = doing
        self.total = total
        self.done = 0
        self.next = time.monotonic() + PATIENCE

    def advance(self, count: int) -> None:
        """Count bytes that are done."""
        self.done += count
        if self.done < self.total and time.monotonic() >= self.next:
            self.next = time.monotonic() + BETWEEN
            # A warning, because only those are shown to somebody who did not ask for more.
            self.log.warning("%s: %.1f of %.1f GB", self.doing, self.done / 1e9, self.total / 1e9)
