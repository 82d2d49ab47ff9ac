"""Prompts of the benchmarks, and user-defined templates that replace them."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from c4.errors import ConfigError, did_you_mean
from c4.errors.system import reason, require_plain_file, user_path
from c4.tasks.task import LETTERS, Example, Row, Task
from c4.templates import RenderError, render

LARGEST_PROMPT = 2**20
"""Maximum size of a template, in bytes."""


def step_by_step(question: str) -> str:
    """The prompt of a long-reasoning task: the bare question with the chain-of-thought cue."""
    return f"Q: {question.strip()}\nA: Let's think step by step."


def multiple_choice(question: str, choices: Sequence[str], answer: int) -> Example | None:
    """Return an example with one choice per line; None if the answer or a choice has no letter."""
    if not 0 <= answer < len(choices) <= len(LETTERS):
        return None
    texts = tuple(text.strip() for text in choices)
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False)]
    prompt = "\n".join([question.strip(), *lines, "Answer:"])
    return Example(prompt=prompt, target=LETTERS[answer], choices=texts)


class Template:
    """A Jinja template over the fields of a row, such as `Q: {{question}}`. It runs no code."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        """Name of the template in error messages."""
        from jinja2 import Environment, TemplateError, nodes  # most commands do not need it

        try:
            names = Environment(autoescape=True).parse(text).find_all(nodes.Name)
            if any(name.name == "self" for name in names):
                raise ConfigError(f"{where}: Jinja keeps the word self to itself; rename the field")
        except (TemplateError, RecursionError) as error:
            raise ConfigError(f"{where}: not a Jinja template ({error})") from error

    def render(self, row: Row) -> str:
        """Return the template's text with a row's values filled in."""
        try:
            return render(self.text, row, "prompt")
        except RenderError as error:
            message = f"{self.where}: {error}"
        if "UndefinedError: '" in message:
            missing = message.split("'")[1]
            near = did_you_mean(missing, map(str, row)) or f"there are {', '.join(map(str, row))}"
            message += f"; {near}"
        raise ConfigError(message)


def with_prompt(task: Task, file: str | None) -> Task:
    """Return the task with prompts from the template in `file`; the task itself if it is None.

    The template can use the row's fields, the example's `choices` in the order of their letters,
    and the task's own prompt as `prompt`, unless the row has a field of that name.
    """
    if file is None:
        return task
    path = user_path(file)
    text = _read(path)
    template = Template(text, str(path))

    def read(row: Row) -> Example | None:
        example = task.read(row)
        if example is None:
            return None
        own = {"prompt": example.prompt, "choices": list(example.choices)}
        fields = {**own, **row, **({"choices": own["choices"]} if example.choices else {})}
        return replace(example, prompt=template.render(fields))

    digest = hashlib.sha256(text.encode()).hexdigest()
    wording = {"prompt": path.name, "prompt_sha256": digest}
    return replace(task, read=read, definition={**task.definition, **wording})


def _read(path: Path) -> str:
    try:
        require_plain_file(path, LARGEST_PROMPT)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as a prompt ({reason(error)})") from error
    if not text.strip():
        raise ConfigError(f"{path}: this prompt is empty")
    return text.removesuffix("\n")
