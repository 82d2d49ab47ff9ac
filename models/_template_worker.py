"""Render a chat template in a process of its own, which has little time and little memory.

Run as a script by `_template`: a request comes in as JSON, one answer for each chat goes out. The
environment is the one transformers gives to templates. Imports nothing of c4 and no torch, so it
starts in a tenth of a second.
"""

import json
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

CPU_SECONDS = 2
MEMORY = 2**30
LONGEST = 100_000
"""Characters that a template may write for a chat of four short messages."""


class Generation(Extension):
    """The tags around an assistant's words, which matter in training only."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def limit_resources() -> None:
    """Let the system end this process when it takes too much, where the system can."""
    try:
        import resource
    except ImportError:
        return  # the parent's clock is left
    for kind, limit in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY)):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or hard > limit:
            with suppress(ValueError, OSError):  # macOS knows the memory limit and refuses it
                resource.setrlimit(kind, (limit, hard))


def environment() -> ImmutableSandboxedEnvironment:
    """What transformers offers to a template."""

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


def answer(request: dict[str, Any]) -> list[dict[str, str]]:
    """For each chat the text that the template writes, or the error that it ends with."""
    answers = []
    for chat in request["chats"]:
        try:
            template = environment().from_string(request["template"])
            text = template.render(tools=None, documents=None, **request["variables"], **chat)
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"[:300]})
            continue
        if len(text) > LONGEST:
            answers.append({"error": f"it writes {len(text):,} characters for a short chat"})
        else:
            answers.append({"text": text})
    return answers


if __name__ == "__main__":
    limit_resources()
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
