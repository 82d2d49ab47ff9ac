"""Render Jinja templates in a separate process with limits on time and memory.

Run as a script by `c4.templates`: each input line is a request as JSON, and each output line an
answer as JSON. Imports neither c4 nor torch, so it starts in a tenth of a second.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY = 2**30
LONGEST = 1_000_000
"""Maximum number of characters that a template may produce."""


class Generation(Extension):
    """Ignores the tags around an assistant's text, which matter only in training."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def chat_environment() -> ImmutableSandboxedEnvironment:
    """Make the environment that transformers provides to chat templates."""

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return made


def prompt_environment() -> ImmutableSandboxedEnvironment:
    """Make the environment of a task's template: strict on unknown names, keeps white space."""
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, loader=FunctionLoader(refuse_file)
    )
    made.filters = {name: listed(made_filter) for name, made_filter in made.filters.items()}
    return made


def refuse_file(_: str) -> None:
    raise TemplateError("a template stands alone, without other files")


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a Jinja filter to return a list instead of a generator, which has no useful text."""

    @wraps(function)
    def as_list(*args: Any, **options: Any) -> Any:
        made = function(*args, **options)
        return list(made) if isinstance(made, Iterator) else made

    return as_list


ENVIRONMENTS = {"chat": chat_environment(), "prompt": prompt_environment()}


@lru_cache
def compiled(kind: str, text: str) -> Template:
    return ENVIRONMENTS[kind].from_string(text)


def answer(request: dict[str, Any]) -> dict[str, str]:
    """Return the text of a template, or the error or exceeded limit."""
    try:
        text = compiled(request["kind"], request["template"]).render(request["variables"])
    except (MemoryError, RecursionError) as error:
        return {"limit": type(error).__name__}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"text": text} if len(text) <= LONGEST else {"limit": "characters"}


def limit_memory() -> None:
    """Limit the memory of this process, if the system supports it."""
    with suppress(ImportError, ValueError, OSError):  # macOS defines the limit but rejects it
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def set_clocks(cpu: float, wall: float) -> None:
    """Let the system end this process after the given seconds; 0 stops the clocks."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu)
        signal.setitimer(signal.ITIMER_REAL, wall)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    limit_memory()
    for line in sys.stdin:
        request = json.loads(line)
        set_clocks(request["cpu_seconds"], request["wall_seconds"])
        answered = json.dumps(answer(request))
        set_clocks(0, 0)
        sys.stdout.write(answered + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
