"""Templates over the fields of a row, rendered by Jinja's sandbox: data that runs no code."""

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from c4.errors import ConfigError, did_you_mean

MOST_REPEATED = 100_000
"""Items that a product may have, and the greatest exponent times a hundred."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which moreover refuses to multiply texts and numbers without end."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (isinstance(right, int) and abs(right) <= 100):
            raise SecurityError("exponents of at most 100 are computed")
        counts = [x for x in (left, right) if isinstance(x, int)]
        sized = [len(x) for x in (left, right) if isinstance(x, str | list | tuple)]
        if sized and counts and sized[0] * counts[0] > MOST_REPEATED:
            raise SecurityError(f"a repetition may have {MOST_REPEATED:,} items")
        return super().call_binop(context, operator, left, right)


ENVIRONMENT = Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)


class Template:
    """A text with fields of a row in it: `Q: {{question}}`."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        """What an error calls the template."""
        try:
            self._compiled = ENVIRONMENT.from_string(text)
        except TemplateError as error:
            raise ConfigError(f"{where}: not a Jinja template ({error})") from error

    def render(self, row: Mapping[str, Any]) -> str:
        """The text with a row's values in it."""
        try:
            return self._compiled.render(**{str(name): value for name, value in row.items()})
        except TemplateError as error:
            missing = str(error).partition("'")[2].partition("'")[0]
            near = did_you_mean(missing, map(str, row)) or f"there are {', '.join(map(str, row))}"
            raise ConfigError(f"{self.where}: {error}; {near}") from error
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
            raise ConfigError(f"{self.where}: {type(error).__name__}: {error}") from error
