"""Progress messages for slow loads."""

import logging
import time

QUIET_SECONDS = 2.0
"""Seconds before the first message."""
BETWEEN_SECONDS = 10.0
"""Seconds from one message to the next."""


class Progress:
    """Logs how many bytes of a task are done, once it has taken two seconds."""

    def __init__(self, log: logging.Logger, doing: str, total: int) -> None:
        self.log = log
        self.doing = doing
        self.total = total
        self.done = 0
        self.next = time.monotonic() + QUIET_SECONDS

    def advance(self, count: int) -> None:
        """Count bytes that are done."""
        self.done += count
        if self.done < self.total and time.monotonic() >= self.next:
            self.next = time.monotonic() + BETWEEN_SECONDS
            # A warning, because commands show lower levels only on request.
            self.log.warning("%s: %.1f of %.1f GB", self.doing, self.done / 1e9, self.total / 1e9)
