"""Chat templates of checkpoints: check that they render, and find the tokens that end a turn.

A template is an untrusted program. `c4.templates` first tries it in a process with limits on time
and memory; only then are prompts rendered in this process.
"""

import json
import logging
import re
from collections.abc import Mapping
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from c4.errors import ModelError
from c4.templates import LimitError, RenderError, render

log = logging.getLogger(__name__)

USERS = ("c4firstquestion", "c4secondquestion")
ASSISTANTS = ("c4firstanswer", "c4secondanswer")


def turn_ends(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids of the special tokens with which the chat template ends an assistant's turn."""
    template = chat_template(tokenizer)
    if template is None:
        return ()
    variables = json.dumps(tokenizer.special_tokens_map, default=str, sort_keys=True)
    try:
        prompt = render_turns(template, variables, 1)
    except RenderError as error:
        raise ModelError(f"the chat template fails on a user's message ({error})") from error
    if USERS[0] not in prompt:
        raise ModelError("the chat template leaves out the user's message")
    try:
        chat = render_turns(template, variables, 4)
    except LimitError as error:
        raise ModelError(f"the chat template fails on a short chat ({error})") from error
    except RenderError as error:
        log.warning(
            "the chat template cannot write an assistant's turn (%s), so it does not say what "
            "ends one",
            error,
        )
        return ()
    special = {t.content: i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    named = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
    special |= {text: i for text, i in named if text and i is not None}
    never = {tokenizer.bos_token_id, tokenizer.mask_token_id}
    ends = [special[token] for token in _ends_in(chat, special)]
    return tuple(token for token in ends if token not in never)


def chat_template(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Return the template for prompts; None if prompts are used unchanged."""
    if tokenizer.chat_template is None:
        return None
    try:
        template = tokenizer.get_chat_template()
    except ValueError as error:
        raise ModelError(f"no chat template can be chosen ({error})") from error
    if not isinstance(template, str):
        raise ModelError(f"the chat template is a {type(template).__name__}, not a string")
    if any("\ud800" <= letter <= "\udfff" for letter in template):
        raise ModelError("the chat template holds half of a surrogate pair, which is no text")
    return template


@lru_cache(maxsize=32)
def render_turns(template: str, variables: str, count: int) -> str:
    """Render the first turns of a sample chat, with a generation prompt after a user's turn.

    Args:
        variables: special tokens by name, as JSON.
    """
    roles, words = ("user", "assistant") * 2, (USERS[0], ASSISTANTS[0], USERS[1], ASSISTANTS[1])
    turns = [{"role": r, "content": w} for r, w in zip(roles, words, strict=True)][:count]
    chat = {"messages": turns, "add_generation_prompt": turns[-1]["role"] == "user"}
    given = {"tools": None, "documents": None, **json.loads(variables), **chat}
    return render(template, given, "chat")


def _ends_in(text: str, special: Mapping[str, int]) -> list[str]:
    """Special tokens that directly follow both answers in the chat that `render_turns` renders.

    A token that follows only one answer begins the next turn. So does a token, other than the
    first, that also appears before the first question: it opens a message.
    """
    if any(words not in text for words in ASSISTANTS):
        return []
    opening = text.partition(USERS[0])[0]
    first, second = (_specials_behind(text.partition(words)[2], special) for words in ASSISTANTS)
    ends: list[str] = []
    for token, other in zip(first, second, strict=False):
        if token != other or (ends and token in opening):
            break
        ends.append(token)
    return ends


def _specials_behind(text: str, special: Mapping[str, int]) -> list[str]:
    """Special tokens at the start of a text, ignoring white space."""
    longest_first = sorted(special, key=len, reverse=True)
    token = re.compile(r"\s*(" + "|".join(map(re.escape, longest_first)) + ")")
    found: list[str] = []
    place = 0
    while special and (match := token.match(text, place)):
        found.append(match[1])
        place = match.end()
    return found
