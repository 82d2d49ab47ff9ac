"""What the letter tasks share: a question, lettered choices, one right letter."""

from collections.abc import Sequence

from c4.tasks.task import Example

LETTERS = "ABCDEFGHIJKLM"


def multiple_choice(question: str, choices: Sequence[str], answer: int) -> Example | None:
    """The question, its choices one per line, `Answer:`. None if the letters do not suffice."""
    if not 0 <= answer < len(choices) <= len(LETTERS):
        return None
    texts = tuple(text.strip() for text in choices)
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False)]
    prompt = "\n".join([question.strip(), *lines, "Answer:"])
    return Example(prompt=prompt, target=LETTERS[answer], choices=texts)
