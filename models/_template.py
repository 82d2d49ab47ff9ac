"""A checkpoint's chat template: whether it can be rendered at all, and what ends a turn in it.

A template is a small program by a stranger. It is tried once in a process of its own, with limits
on time and memory; only then are prompts rendered in this one.
"""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from c4.errors import ModelError

log = logging.getLogger(__name__)

WORKER = Path(__file__).with_name("_template_worker.py")
WALL_SECONDS = 15.0
"""Limit for the worker's life; it ends itself after two seconds of work, but may have to wait."""
USERS = ("c4firstquestion", "c4secondquestion")
ASSISTANTS = ("c4firstanswer", "c4secondanswer")


def turn_ends(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids of the special tokens with which the chat template ends an assistant's turn."""
    template = chat_template(tokenizer)
    if template is None:
        return ()
    variables = json.dumps(tokenizer.special_tokens_map, default=str, sort_keys=True)
    prompt, chat = try_template(template, variables)
    if "error" in prompt:
        raise ModelError(f"the chat template fails on a user's message ({prompt['error']})")
    if USERS[0] not in prompt["text"]:
        raise ModelError("the chat template leaves out the user's message")
    if "error" in chat:
        log.warning(
            "the chat template cannot write an assistant's turn (%s), so it does not say what "
            "ends one",
            chat["error"],
        )
        return ()
    special = _special_tokens(tokenizer)
    never = {tokenizer.bos_token_id, tokenizer.mask_token_id}
    ends = [special[token] for token in _ends_in(chat["text"], special)]
    return tuple(token for token in ends if token not in never)


def chat_template(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The template that renders prompts; None if prompts are used as they are."""
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


@lru_cache(maxsize=16)
def try_template(template: str, variables: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Render a prompt and a chat of two turns; each answer has a `text` or an `error`."""
    turns = [
        {"role": role, "content": words}
        for pair in zip(USERS, ASSISTANTS, strict=True)
        for role, words in zip(("user", "assistant"), pair, strict=True)
    ]
    chats = [
        {"messages": turns[:1], "add_generation_prompt": True},
        {"messages": turns, "add_generation_prompt": False},
    ]
    prompt, chat = _ask_worker(
        {"template": template, "variables": json.loads(variables), "chats": chats}
    )
    return prompt, chat


def _ask_worker(request: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    # The worker finds jinja2 where this process would, and nothing in the current folder.
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, "-P", str(WORKER)],
            input=json.dumps(request),
            capture_output=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": paths},
            timeout=WALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(TOO_MUCH) from None
    if done.returncode < 0:  # ended by the system
        raise ModelError(TOO_MUCH)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ModelError(f"the chat template cannot be tried ({reason})")
    answers: list[Mapping[str, str]] = json.loads(done.stdout)
    return answers


TOO_MUCH = (
    "the chat template does not come to an end within the time and memory that a short chat may "
    "take; check chat_template in the checkpoint"
)


def _special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Every special token's text and id."""
    added = {t.content: i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    named = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
    return added | {text: i for text, i in named if text and i is not None}


def _ends_in(text: str, special: Mapping[str, int]) -> list[str]:
    """The special tokens directly behind both answers of the chat that `try_template` renders.

    A token that follows only one of them begins the next turn. Nor does one end a turn that stands
    behind another and also in front of the first question, as the opening of a message does.
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
    """The special tokens at the start of a text, ignoring white space."""
    longest_first = sorted(special, key=len, reverse=True)
    token = re.compile(r"\s*(" + "|".join(map(re.escape, longest_first)) + ")")
    found: list[str] = []
    place = 0
    while special and (match := token.match(text, place)):
        found.append(match[1])
        place = match.end()
    return found
