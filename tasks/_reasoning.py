"""What the long-reasoning tasks share: the question and a one-line cue."""


def step_by_step(question: str) -> str:
    """The bare question with the chain-of-thought cue."""
    return f"Q: {question.strip()}\nA: Let's think step by step."
