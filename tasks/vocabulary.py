"""Decode token ids to text, with every character traced back to the tokens that hold it.

Only the tokenizer's JSON is needed, so a recording can be read without its model. Encoding the
text of predictions rarely gives the predicted tokens, so offsets come from decoding.

A special token writes nothing, but it does not join its neighbours: if text on both sides of it
is not blank, a space is put between them. So `18<|im_end|>3` is `18 3`, not `183`.
"""

import codecs
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from tokenizers import Tokenizer

from c4.tasks.task import Ending

GAP = b" "
"""Separator of two pieces of text that have special tokens between them."""


@dataclass(frozen=True)
class TokenText:
    """A text and where each of its tokens ends, in characters of that text."""

    text: str
    token_starts: Sequence[int]
    """First character that each token contributes to; never decreases."""
    token_ends: Sequence[int]
    """One past the last character that each token contributes to; never decreases."""

    def token_span(self, start: int, end: int) -> tuple[int, int] | None:
        """The tokens that hold characters start to end, as (first, one past the last)."""
        first = bisect_right(self.token_ends, start)
        last = bisect_left(self.token_starts, end)
        return (first, last) if start < end and first < last else None


class Vocabulary:
    """The text of every token id."""

    def __init__(self, tokenizer_json: str, end_ids: Iterable[int]) -> None:
        self.end_ids = frozenset(end_ids)
        self._tokenizer = Tokenizer.from_str(tokenizer_json)
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = self.end_ids | {i for i, token in added.items() if token.special}
        self._bytes = _token_bytes(self._tokenizer, json.loads(tokenizer_json))

    @property
    def by_bytes(self) -> bool:
        """Whether tokens stand for bytes, so that each can be decoded on its own."""
        return self._bytes is not None

    def ending(self, ids: Sequence[int]) -> int:
        """Number of tokens before the first end token."""
        return next((i for i, token in enumerate(ids) if token in self.end_ids), len(ids))

    def is_special(self, token: int) -> bool:
        """Whether a token writes no text: an end token or another special token."""
        return token in self._special

    def name(self, token: int) -> str:
        """The token as the vocabulary spells it; its id in angle brackets if it is unknown."""
        return self._tokenizer.id_to_token(token) or f"<{token}>"

    def piece(self, token: int) -> bytes:
        """Bytes that a token writes inside a text; one character may need several tokens."""
        if token in self._special:
            return b""
        if self._bytes is not None:
            return self._bytes.get(token, b"")
        # Decoded after itself: some tokenizers drop a space at the beginning of a text.
        once, twice = (self._tokenizer.decode([token] * n) for n in (1, 2))
        return twice[len(once) :].encode()

    def text(self, ids: Sequence[int], ending: Ending) -> str:
        """Text of the tokens up to the first end token or past it; special tokens write nothing."""
        visible = self._visible(ids, ending)
        if self._bytes is None:
            return self._trace_runs(visible).text
        return b"".join(self._pieces(visible)).decode("utf-8", "replace")

    def trace(self, ids: Sequence[int], ending: Ending) -> TokenText:
        """The text that `text` returns, with the place of every token in it."""
        visible = self._visible(ids, ending)
        if self._bytes is None:
            return self._trace_runs(visible)
        return trace_bytes(self._pieces(visible))

    def _visible(self, ids: Sequence[int], ending: Ending) -> Sequence[int]:
        return ids[: self.ending(ids)] if ending is Ending.CUT else ids

    def _pieces(self, ids: Sequence[int]) -> list[bytes]:
        """The bytes of every token, with a gap before one that special tokens set apart."""
        table = self._bytes or {}
        pieces = [table.get(token, b"") for token in ids]
        if self._special.isdisjoint(ids):
            return pieces
        before, apart = GAP, False
        for i, token in enumerate(ids):
            if token in self._special:
                pieces[i], apart = b"", True
            elif piece := pieces[i]:
                if apart and not before[-1:].isspace() and not piece[:1].isspace():
                    pieces[i] = GAP + piece
                before, apart = piece, False
        return pieces

    def _trace_runs(self, ids: Sequence[int]) -> TokenText:
        """Trace tokens that do not stand for bytes, decoding each run between special tokens."""
        text = ""
        starts: list[int] = []
        ends: list[int] = []
        for special, run in groupby(ids, key=self._special.__contains__):
            tokens = list(run)
            silent = TokenText("", [0] * len(tokens), [0] * len(tokens))
            traced = silent if special else _trace_by_prefixes(self._tokenizer, tokens)
            if text[-1:].strip() and traced.text[:1].strip():
                text += GAP.decode()
            starts += [len(text) + start for start in traced.token_starts]
            ends += [len(text) + end for end in traced.token_ends]
            text += traced.text
        return TokenText(text, starts, ends)


def trace_bytes(pieces: Sequence[bytes]) -> TokenText:
    """The text that the tokens' bytes spell. A character may be shared by several tokens."""
    data = b"".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    starts = [0, *ends[:-1]] if ends else []
    if data.isascii():
        return TokenText(data.decode(), starts, ends)
    text, char_at = _decode_bytes(data)
    # A token without bytes lies between its neighbours, or inside a character they share.
    token_starts = [char_at[start] if start < len(data) else len(text) for start in starts]
    token_ends = [char_at[end - 1] + 1 if end else 0 for end in ends]
    return TokenText(text, token_starts, token_ends)


def _decode_bytes(data: bytes) -> tuple[str, list[int]]:
    """UTF-8 with broken sequences replaced, and the character that each byte belongs to."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    char_at: list[int] = []
    for i in range(len(data)):
        text += decoder.decode(data[i : i + 1], final=i == len(data) - 1)
        # A byte that the decoder holds back is part of a character that is still incomplete.
        held = bool(decoder.getstate()[0])
        char_at.append(len(text) if held else len(text) - 1)
    return text, char_at


def _trace_by_prefixes(tokenizer: Tokenizer, ids: Sequence[int]) -> TokenText:
    """Trace tokens that do not stand for bytes: a token writes what it adds to the text."""
    ids = list(ids)
    ends = [len(tokenizer.decode(ids[: i + 1])) for i in range(len(ids))]
    ends = list(accumulate(ends, max))
    return TokenText(tokenizer.decode(ids), [0, *ends[:-1]] if ends else [], ends)


def _token_bytes(tokenizer: Tokenizer, spec: dict[str, object]) -> dict[int, bytes] | None:
    """The bytes of every token of a byte-level tokenizer; None for any other kind."""
    if not _is_byte_level(spec.get("decoder")):
        return None
    to_byte = {char: bytes([byte]) for byte, char in _byte_alphabet().items()}
    # A character outside the alphabet can only be text that was put into the vocabulary by hand.
    table = {
        token_id: b"".join(to_byte.get(char) or char.encode() for char in token)
        for token, token_id in tokenizer.get_vocab(with_added_tokens=False).items()
    }
    for token_id, added in tokenizer.get_added_tokens_decoder().items():
        table[token_id] = b"" if added.special else added.content.encode()
    return table


def _is_byte_level(decoder: object) -> bool:
    if not isinstance(decoder, dict):
        return False
    return decoder.get("type") == "ByteLevel" or any(
        map(_is_byte_level, decoder.get("decoders", []))
    )


def _byte_alphabet() -> dict[int, str]:
    """The printable character that stands for each byte in byte-level vocabularies.

    Printable Latin-1 bytes stand for themselves, the others follow from U+0100 up.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {byte: chr(byte) for byte in printable}
    return alphabet | {byte: chr(256 + i) for i, byte in enumerate(others)}
