import json
from itertools import groupby

import pytest
from conftest import byte_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from c4.tasks import Ending
from c4.tasks.vocabulary import Vocabulary, trace_bytes

END, MASK = 256, 257


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(byte_tokenizer().to_str(), [END])


@pytest.fixture(scope="module")
def merged():
    """A trained byte-level tokenizer, with merges inside and across multi-byte characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>", "<|mask|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(["The answer is 漢字 1,234 dollars 😀😀 café."] * 50, trainer)
    return tokenizer


pieces = st.lists(
    st.one_of(
        st.text(alphabet="aé漢😀 1", max_size=3).map(str.encode),
        st.binary(max_size=3),
        st.just("漢".encode()[:2]),
        st.just("漢".encode()[2:]),
    ),
    max_size=12,
)


@given(pieces)
def test_the_text_is_what_utf_8_says_and_spans_never_go_back(tokens):
    traced = trace_bytes(tokens)
    assert traced.text == b"".join(tokens).decode("utf-8", "replace")
    assert list(traced.token_starts) == sorted(traced.token_starts)
    assert list(traced.token_ends) == sorted(traced.token_ends)


@given(st.lists(st.text(alphabet="aé漢😀 1", max_size=3), max_size=8), st.data())
def test_a_span_is_exactly_the_tokens_that_share_bytes_with_it(words, data):
    tokens = [word.encode() for word in words]
    traced = trace_bytes(tokens)
    if not traced.text:
        return
    start = data.draw(st.integers(0, len(traced.text) - 1))
    end = data.draw(st.integers(start + 1, len(traced.text)))
    low = len(traced.text[:start].encode())
    high = len(traced.text[:end].encode())
    touching, at = [], 0
    for i, token in enumerate(tokens):
        if token and at < high and at + len(token) > low:
            touching.append(i)
        at += len(token)
    assert traced.token_span(start, end) == (touching[0], touching[-1] + 1)


def test_a_character_split_over_tokens_belongs_to_all_of_them():
    first, second, third = ("漢".encode()[i : i + 1] for i in range(3))
    traced = trace_bytes([b"a", first, second, third, b"b"])
    assert traced.text == "a漢b"
    assert traced.token_span(1, 2) == (1, 4)
    assert traced.token_span(2, 3) == (4, 5)


def test_an_unfinished_character_is_one_replacement():
    traced = trace_bytes([b"a", "漢".encode()[:2], b"b"])
    assert traced.text == "a�b"
    assert traced.token_span(1, 2) == (1, 2)
    assert traced.token_span(2, 3) == (2, 3)


def test_text_ends_at_the_first_end_token(vocabulary):
    ids = [vocabulary._tokenizer.token_to_id(c) for c in "abc"]
    assert vocabulary.text([ids[0], ids[1], END, ids[2]], Ending.CUT) == "ab"
    assert vocabulary.ending([ids[0], ids[1], END, ids[2], END]) == 2
    assert vocabulary.ending([ids[0]]) == 1


def test_special_tokens_and_unknown_ids_write_nothing(vocabulary):
    a = vocabulary._tokenizer.token_to_id("a")
    traced = vocabulary.trace([MASK, a, 9999, a], Ending.CUT)
    assert traced.text == "aa"
    assert traced.token_span(0, 1) == (1, 2)
    assert traced.token_span(1, 2) == (3, 4)
    assert traced.token_span(1, 1) is None


@given(st.text(alphabet="The answr is漢字1,234 dol😀café.\n", max_size=40))
def test_decoding_agrees_with_the_tokenizer_s_own(merged, text):
    ids = merged.encode(text).ids
    traced = Vocabulary(merged.to_str(), []).trace(ids, Ending.CUT)
    assert traced.text == merged.decode(ids) == text
    for i, (low, high) in enumerate(merged.encode(text).offsets):
        assert (traced.token_starts[i], traced.token_ends[i]) == (low, high)


def test_a_number_written_with_a_comma_keeps_its_span(merged):
    text = "The answer is 1,234 dollars"
    traced = Vocabulary(merged.to_str(), []).trace(merged.encode(text).ids, Ending.CUT)
    first, last = traced.token_span(text.index("1"), text.index("4") + 1)
    covered = text[traced.token_starts[first] : traced.token_ends[last - 1]]
    assert covered.strip() == "1,234"


def test_a_token_put_into_the_vocabulary_by_hand_writes_its_text():
    spec = json.loads(byte_tokenizer().to_str())
    spec["model"]["vocab"]["<|my end|>"] = 900
    assert Vocabulary(json.dumps(spec), []).text([900], Ending.CUT) == "<|my end|>"


def test_tokenizers_that_do_not_work_on_bytes_are_traced_too():
    vocab = {"[UNK]": 0, "the": 1, "answer": 2, "##s": 3, "is": 4, "12": 5}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    traced = Vocabulary(tokenizer.to_str(), []).trace([1, 2, 3, 4, 5], Ending.CUT)
    assert traced.text == "the answers is 12"
    assert traced.token_span(4, 11) == (1, 3)
    assert traced.token_span(15, 17) == (4, 5)


def spelled(vocabulary, *pieces):
    """Token ids of letters and special tokens."""
    return [vocabulary._tokenizer.token_to_id(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("pieces", "cut", "skipped"),
    [
        (["1", "8", "<|end|>", "3"], "18", "18 3"),
        (["B", "<|end|>", "<|end|>", "b"], "B", "B b"),
        (["1", "<|end|>", ".", "5"], "1", "1 .5"),
        (["a", "<|mask|>", "b"], "a b", "a b"),  # no special token glues, end or not
        (["a", "Ġ", "<|end|>", "b"], "a ", "a b"),
        (["a", "<|end|>", "Ċ", "b"], "a", "a\nb"),
        (["<|end|>", "a", "<|end|>"], "", "a"),
        (["<|end|>"], "", ""),
        ([], "", ""),
    ],
)
def test_special_tokens_vanish_and_never_glue(vocabulary, pieces, cut, skipped):
    ids = spelled(vocabulary, *pieces)
    for ending, text in ((Ending.CUT, cut), (Ending.SKIP, skipped)):
        assert vocabulary.text(ids, ending) == vocabulary.trace(ids, ending).text == text


@given(st.lists(st.sampled_from([*range(60, 90), END, MASK, 200, 201]), max_size=12), st.data())
def test_skipping_loses_nothing_and_spans_keep_their_tokens(vocabulary, ids, data):
    traced = vocabulary.trace(ids, Ending.SKIP)
    assert traced.text == vocabulary.text(ids, Ending.SKIP)
    assert len(traced.token_starts) == len(traced.token_ends) == len(ids)
    written = [i for i, token in enumerate(ids) if token not in (END, MASK) and token < 200]
    for i in written:
        char = vocabulary.text([ids[i]], Ending.SKIP)
        assert traced.text[traced.token_starts[i] : traced.token_ends[i]].strip() == char.strip()
        if char.strip():
            place = traced.token_ends[i] - 1
            assert traced.token_span(place, place + 1) == (i, i + 1)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6]), max_size=10))
def test_words_that_special_tokens_set_apart_stay_apart_without_bytes_too(ids):
    vocab = {"[UNK]": 0, "the": 1, "answer": 2, "##s": 3, "is": 4, "12": 5}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.add_special_tokens(["[END]"])
    vocabulary = Vocabulary(tokenizer.to_str(), [6])
    runs = [list(run) for end, run in groupby(ids, key=lambda i: i == 6) if not end]
    texts = [tokenizer.decode(run) for run in runs]
    assert vocabulary.text(ids, Ending.SKIP) == " ".join(texts)
    assert vocabulary.text(ids, Ending.CUT) == (texts[0] if ids[:1] not in ([], [6]) else "")
    traced = vocabulary.trace(ids, Ending.SKIP)
    assert list(traced.token_starts) == sorted(traced.token_starts)
    for i, token in enumerate(ids):
        if token in (1, 2, 4, 5):
            place = traced.token_ends[i] - 1
            assert traced.token_span(place, place + 1) == (i, i + 1)
