"""Templates over the fields of a row, rendered by a sandbox: data that runs no code."""

from collections.abc import Mapping
from typing import Any

from jinja2 import TemplateError, UndefinedError

from c4.errors import ConfigError, did_you_mean
from c4.tasks._template_limits import SELF, Sandbox, start_rendering

ENVIRONMENT = Sandbox()
FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError, SyntaxError),
)
"""What the operations of a template raise, besides Jinja's own errors."""


class Template:
    """A text with fields of a row in it: `Q: {{question}}`."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        """What an error calls the template."""
        start_rendering()  # Jinja computes what is constant when it compiles
        try:
            self._compiled = ENVIRONMENT.from_string(text)
        except (TemplateError, *FAILURES) as error:
            raise ConfigError(f"{where}: not a Jinja template ({error})") from error

    def render(self, row: Mapping[str, Any]) -> str:
        """The text with a row's values in it."""
        start_rendering()
        fields = {SELF if name == "self" else str(name): value for name, value in row.items()}
        try:
            return self._compiled.render(fields)
        except UndefinedError as error:
            missing = str(error).partition("'")[2].partition("'")[0]
            near = did_you_mean(missing, map(str, row)) or f"there are {', '.join(map(str, row))}"
            raise ConfigError(f"{self.where}: {error}; {near}") from error
        except TemplateError as error:
            raise ConfigError(f"{self.where}: {error}") from error
        except FAILURES as error:
            raise ConfigError(f"{self.where}: {type(error).__name__}: {error}") from error
