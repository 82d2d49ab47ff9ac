"""The reader looks at small windows first; what it says is what the whole text says."""

import numpy as np
import pytest
from conftest import byte_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.gates.candidates import CandidateReader
from c4.tasks import TASKS, AnswerReading, Ending
from c4.tasks.vocabulary import Vocabulary

LENGTH = 48
PIECES = [
    *("A", "B", " C.", "Answer", " a", "D's", "7", " 12", "1,", "234", "-", "$", ".", ",", "x"),
    *("\\boxed{", "\\boxed {", "{", "}", "\\frac12", "def f(x):", "(", ")", "\n", "    return x"),
    *("\n```\n", "async def g(", "漢", "\u00a0", " the", " is ", "−", " - ", "{,}", "\\,", "e3"),
    *(" \\times 10^", "^", "f = lambda x: x", "\\boxed g", "answer", " wrong", "=", "\\$", "pass"),
]
HALF_CHARACTERS = ["Ã", "æ", "©"]  # 0xC3 and 0xE6 begin a character, 0xA9 goes on with one
TOKENIZER = byte_tokenizer(PIECES)
END = TOKENIZER.token_to_id("<|end|>")
VOCABULARY = Vocabulary(TOKENIZER.to_str(), [END])
IDS = [TOKENIZER.token_to_id(text) for text in PIECES + HALF_CHARACTERS]

rows = st.lists(st.sampled_from(IDS), min_size=LENGTH, max_size=LENGTH)


def in_whole(task, ids, start, ending):
    """Value and span in the tokens from `start` on, read in one piece."""
    if ending is Ending.CUT:
        ids = ids[: VOCABULARY.ending(ids)]
    traced = VOCABULARY.trace(ids[start:], ending)
    found = TASKS[task].extract(traced.text)
    if found is None:
        return None, None
    span = traced.token_span(found.start, found.end)
    return found.value, span and (span[0] + start, span[1] + start)


@pytest.mark.parametrize("task", ["mmlu", "gsm8k", "math", "humaneval"])
@settings(max_examples=300)
@given(
    ids=rows,
    end=st.integers(0, LENGTH),
    filler=st.sampled_from([*IDS, END]),
    kept=st.integers(0, 47),
    ending=st.sampled_from(Ending),
    ends=st.sets(st.integers(0, 47), max_size=3),
)
def test_windows_read_what_the_whole_text_says(task, ids, end, filler, kept, ending, ends):
    # Long stretches of one token make the rare tokens, and with them large windows, matter.
    ids = [*ids[:kept], *[filler] * (LENGTH - kept)]
    ids = [*ids[:end], *[END] * (LENGTH - end)]
    ids = [END if i in ends else token for i, token in enumerate(ids)]
    reader = CandidateReader(TASKS[task], VOCABULARY, LENGTH, AnswerReading(ending=ending))
    first = reader.tail_start if TASKS[task].search == "last" else 0
    value, span = in_whole(task, ids, first, ending)
    if TASKS[task].search == "first5" and span and span[0] >= 5:
        span = None
    ((found, answer),) = reader.read(np.array([ids], dtype=np.int32), [()])
    assert (found.value, found.span) == (value, span) if found else (value, span) == (None, None)
    assert answer == in_whole(task, ids, 0, ending)[0]


@pytest.mark.parametrize(
    "number",
    [
        *("1.5e-5", "1.5E-5", "1.5e−5", "2e+3", "3e3", "1 e-7", "−7", "- 7", "-$7", "12–7", "x-7"),
        *("1\\: 234", "1\\;234", "1\\, 234", "1{,}234", "3 x 10^5", "3 \\times 10^{-2}", "10^{ 4}"),
    ],
)
def test_a_number_is_the_same_wherever_a_window_begins(number):
    reader = CandidateReader(TASKS["gsm8k"], VOCABULARY, 100, AnswerReading(), tail_frac=1)
    for spaces in range(48):
        text = f"is {number}" + " " * spaces + "in all ok"
        ids = (TOKENIZER.encode(text).ids + [END] * 100)[:100]
        ((_, answer),) = reader.read(np.array([ids], dtype=np.int32), [()])
        assert answer == in_whole("gsm8k", ids, 0, Ending.CUT)[0]


@pytest.mark.parametrize(("style", "reads"), [("careful", 1), ("plain", 2)])
def test_what_only_the_whole_text_decides_is_read_once(style, reads, monkeypatch):
    seen, extract = [], CandidateReader._extract

    def counted(self, tokens, *rest):
        seen.append(len(tokens))
        return extract(self, tokens, *rest)

    monkeypatch.setattr(CandidateReader, "_extract", counted)
    ids = [TOKENIZER.token_to_id("x")] * 10 + [TOKENIZER.token_to_id(" C.")] * 5
    ids += [TOKENIZER.token_to_id("\n")] * (LENGTH - len(ids))
    reading = AnswerReading.parse(style, "cut")
    reader = CandidateReader(TASKS["mmlu"], VOCABULARY, LENGTH, reading)
    ((_, answer),) = reader.read(np.array([ids], dtype=np.int32), [("a", "b", "c")])
    assert (answer, len(seen)) == ("C", reads)


@pytest.mark.parametrize(
    ("task", "text", "conclusive"),
    [
        ("mmlu", "B. the dog", False),  # "is wrong; the answer is C" may follow
        ("gsm8k", "is 12", True),
        ("gsm8k", "= −3", True),
        ("gsm8k", "is - 3", False),  # "this - 3" may be cut
        ("gsm8k", "{,}234", False),  # so may "1{,}234"
        ("gsm8k", "x 10^3", False),
        ("gsm8k", "12", False),  # "312" may be cut
        ("gsm8k", "-3", False),
        ("gsm8k", "e-5", False),  # so may "1.5e-5"
        ("gsm8k", "be -5", True),
        ("gsm8k", ": 234", False),  # so may "1\\: 234"
        ("math", r"so \boxed{4}", True),
        ("math", "so 4", False),  # a box may come earlier
        ("humaneval", "def f():\n    return 1\nx", True),
        ("humaneval", "def f():\n    return 1\n", False),
    ],
)
def test_extractors_say_whether_more_text_could_change_them(task, text, conclusive):
    assert TASKS[task].extract(text).conclusive is conclusive


@pytest.mark.parametrize(
    ("task", "text", "conclusive"),
    [
        ("mmlu", "B. the dog", True),
        ("mmlu", "B", False),  # "Bee" may follow
        ("mmlu", "B\N{REPLACEMENT CHARACTER}", False),  # so may half an é
        ("gsm8k", "is 12", True),
        ("gsm8k", "12", False),  # "312" may be cut
    ],
)
def test_so_do_the_plain_ones(task, text, conclusive):
    assert TASKS[task].plain(text).conclusive is conclusive
