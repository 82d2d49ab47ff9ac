"""Render Jinja templates in a process of its own, which has little time and little memory.

Run as a script by `c4.templates`: every line of the input is a request as JSON, and so is every
line of the answers. Imports nothing of c4 and no torch, so it starts in a tenth of a second.
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
"""Characters that a template may write."""


class Generation(Extension):
    """The tags around an assistant's words, which matter in training only."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def chat_environment() -> ImmutableSandboxedEnvironment:
    """What transformers offers to a chat template."""

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
    """What a task's template may use: an unknown name is an error, and white space is kept."""
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, loader=FunctionLoader(refuse_file)
    )
    made.filters = {name: listed(made_filter) for name, made_filter in made.filters.items()}
    return made


def refuse_file(_: str) -> None:
    raise TemplateError("a template stands alone, without other files")


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that returns a list where Jinja's returns a generator, which has no text."""

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
    """The text that a template writes, or the error that it ends with."""
    try:
        text = compiled(request["kind"], request["template"]).render(request["variables"])
    except (MemoryError, RecursionError) as error:
        return {"limit": type(error).__name__}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"text": text} if len(text) <= LONGEST else {"limit": "characters"}


def limit_memory() -> None:
    """Refuse memory beyond the limit, where the system can."""
    with suppress(ImportError, ValueError, OSError):  # macOS knows the limit and refuses it
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def set_clocks(cpu: float, wall: float) -> None:
    """Let the system end this process after so many seconds from now; 0 stops the clocks."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu)
        signal.setitimer(signal.ITIMER_REAL, wall)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
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
