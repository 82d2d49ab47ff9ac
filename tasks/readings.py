"""A reading as a user names it."""

from dataclasses import dataclass

from c4.tasks.extractors import find_style
from c4.tasks.graders import find_grader


@dataclass(frozen=True)
class ReadingNames:
    """The extractor and the grader as a user names them, if the user does.

    A reading holds what they go by. A process that has not been told these names, such as a worker,
    loads the user's own objects by them.
    """

    style: str | None = None
    grader: str | None = None

    def load(self) -> None:
        """Let this process know the user's own objects."""
        if self.style is not None:
            find_style(self.style)
        if self.grader is not None:
            find_grader(self.grader)
