"""Trajectories of other projects: read as they are, and never run."""

import copyreg
import functools
import io
import json
import os
import pickle
import sys
import zipfile
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.analysis.exchange import klass
from c4.analysis.exchange.imports import IMPORTED, read_verdict, settling_steps
from c4.analysis.exchange.prophet import read_decode, read_tensors
from c4.errors import DataError
from c4.figures import stabilization_figure
from c4.tasks import TASKS
from tests.analysis.exchange.foreign import (
    GIVEN,
    SETTLES_LATE,
    Calls,
    Decode,
    klass_steps,
    pickled,
    save_evil,
    save_klass,
    save_prophet,
)
from tests.commands import c4, done, refused

TASK = TASKS["gsm8k"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def imported(tmp_path):
    """What `c4 import` prints of one trajectory, which it writes to imported.parquet."""
    save_prophet(tmp_path / "hist" / "question_0003_steps_004.pt", SETTLES_LATE)
    return done("import", "prophet", "hist").stdout


def naive_settled(predictions, commit_step, final, answer, at):
    """The paper's definition, word for word, over filled predictions."""
    same = []
    for step, row in enumerate(predictions, 1):
        filled = [final[i] if commit_step[i] < step else row[i] for i in range(len(row))]
        same.append(filled[at : at + len(answer)] == answer)
    settled = next((u for u in range(1, len(same) + 1) if all(same[u - 1 :])), None)
    return settled, (same.index(True) + 1 if settled else None)


def test_prophets_trajectories_tell_when_answers_settle(tmp_path):
    save_prophet(tmp_path / "hist" / "question_0003_steps_004.pt", SETTLES_LATE)
    save_prophet(tmp_path / "hist" / "question_0001_steps_002.pt", GIVEN, blocks=1)
    result = done("import", "prophet", "hist", "--out", "a.parquet", "--figure", "s.png", "--json")
    frame = pl.read_parquet("a.parquet")
    assert frame.schema == IMPORTED
    assert frame["trajectory"].to_list() == [1, 3]
    assert frame["stabilization"].to_list() == [1 / 2, 3 / 4]
    assert frame["first_appearance"].to_list() == [1 / 2, 1 / 4]
    assert frame["commit_step"].to_list() == [GIVEN.commit_step, SETTLES_LATE.commit_step]
    assert frame["correct"].to_list() == [True, True]
    assert json.loads(result.stdout)["summary"][0]["n"] == 2
    assert (tmp_path / "s.png").stat().st_size > 5_000
    assert stabilization_figure(frame).axes


decodes = st.integers(2, 4).flatmap(
    lambda half: st.builds(
        Decode,
        predictions=st.lists(
            st.lists(st.integers(5, 8), min_size=6, max_size=6),
            min_size=2 * half,
            max_size=2 * half,
        ),
        commit_step=st.lists(st.integers(0, 2 * half), min_size=6, max_size=6),
        at=st.integers(0, 4),
    )
)


@settings(max_examples=25)
@given(decode=decodes)
def test_stabilization_is_the_definition_word_for_word(decode, tmp_path_factory):
    decode.answer = decode.final[decode.at : decode.at + 2]
    folder = tmp_path_factory.mktemp("prophet")
    name = f"question_0000_steps_{len(decode.predictions):03}.pt"
    told = read_decode(save_prophet(folder / name, decode), TASK, None)
    expected = naive_settled(
        decode.predictions, decode.commit_step, decode.final, decode.answer, decode.at
    )
    assert settling_steps(told["is_final"]) == expected


def test_blocks_may_come_step_by_step(tmp_path):
    stacked, apart = (tmp_path / name / "question_0000_steps_004.pt" for name in "ab")
    save_prophet(stacked, SETTLES_LATE)
    blocks = torch.load(stacked)["x0_history"]
    save_prophet(apart, SETTLES_LATE, x0_history=[list(block.split(1)) for block in blocks])
    assert read_decode(apart, TASK, None) == read_decode(stacked, TASK, None)
    commits = torch.load(stacked)["true_indices_history"]
    save_prophet(apart, SETTLES_LATE, true_indices_history=[c for block in commits for c in block])
    assert read_decode(apart, TASK, None) == read_decode(stacked, TASK, None)


@pytest.mark.parametrize("place", [2, None])  # Prophet says the last position of the prompt
def test_an_answer_that_is_not_in_the_text_never_settles(place, tmp_path):
    path = save_prophet(tmp_path / "question_0000_steps_004.pt", SETTLES_LATE, ans_posidx=place)
    assert read_decode(path, TASK, None)["is_final"][-1] is False


def test_the_published_files_are_read_which_lack_the_finished_ids(tmp_path):
    path = save_prophet(tmp_path / "question_0000_steps_004.pt", SETTLES_LATE)
    told = read_decode(path, TASK, None)
    saved = torch.load(path)
    del saved["gen_ids"]
    torch.save(saved | {"answer_pos_indices": [2]}, path)
    assert read_decode(path, TASK, None) == told


@pytest.mark.parametrize(("answer", "course"), [("B", (3, 1)), ("7", (None, None))])
def test_a_letter_may_stand_as_another_token_than_the_one_named(answer, course, tmp_path):
    """Prophet's MMLU files name the token of "B", and the text holds that of " B"."""
    path = tmp_path / "question_0000_steps_004.pt"
    save_prophet(path, SETTLES_LATE, pred_token_id=[33], pred_ans=answer)
    found = read_decode(path, TASK, None)
    assert settling_steps(found["is_final"]) == course


ASKS = dict.fromkeys(range(4), "asks for posix.system, which is no tensor")
ASKS |= dict.fromkeys((4, 5), "asks for more than tensors")


@pytest.mark.parametrize("protocol", ASKS)
def test_a_file_that_runs_code_is_refused_by_name(tmp_path, protocol):
    save_prophet(tmp_path / "hist" / "question_0000_steps_004.pt", SETTLES_LATE)
    evil = save_evil(tmp_path / "hist" / "question_0001_steps_004.pt", "touch harmed", protocol)
    said = refused("import", "prophet", "hist")
    assert evil.name in said
    assert ASKS[protocol] in said
    assert "nothing of it was run" in said
    assert not (tmp_path / "harmed").exists()
    assert not (tmp_path / "imported.parquet").exists()


PROTO = b"\x80\x02"
HUGE = b"\x8a\x0b" + bytes(10) + b"\x01"
"""2**80, as a pickle says it."""
ONE_LONG = b"K\x00K\x01\x85"
"""No offset, and one axis with one item."""
SIX_NUMBERS = bytes(6 * 8)
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQ"
)
NAMED = b"ccollections\nOrderedDict\n"


def calling(called, *arguments):
    """A file that asks for something by name."""
    program = pickled(Calls(called, *arguments), protocol=2)
    return program, f"asks for .*{called.__name__}, which is no tensor"


def tensor(size, stride, offset=b"K\x00"):
    """A file with one tensor of a storage of six numbers."""
    program = PROTO + REBUILD + b"(" + STORAGE + offset + size + stride + b"\x89" + NAMED + b")RtR."
    return pickled(program, SIX_NUMBERS)


def saved_as_before_1_6(value):
    content = io.BytesIO()
    torch.save(value, content, _use_new_zipfile_serialization=False)
    return content.getvalue()


def zipped(*names):
    """An archive whose members are all one pickle of nothing."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, b"N.")
    return content.getvalue()


def crafted_keys(count):
    """A dictionary whose keys all have one hash."""
    keys = (n * sys.hash_info.modulus for n in range(1, count))
    items = (b"\x8a\x0a" + key.to_bytes(10, "little", signed=True) + b"N" for key in keys)
    return pickled(PROTO + b"}(" + b"".join(items) + b"u.")


NEGATIVE = b"J\xff\xff\xff\xff"
LARGE = b"J\xff\xff\xff\x7f"
MORE = "asks for more than tensors"
OTHER = "not a file of Prophet's trajectories"
"""What is plain data, or a view of little, and holds no decode."""
HOSTILE = {
    "a command": calling(os.system, "touch harmed"),
    "an expression": calling(eval, "1"),
    "an attribute": calling(getattr, "a", "b"),
    "a module": calling(__import__, "os"),
    "torch inside torch": calling(torch.storage._load_from_bytes, "x"),
    "another tensor": calling(torch._utils._rebuild_parameter, 1, 2, 3),
    "any class": calling(copyreg._reconstructor),
    "an object": (pickled(DataError), MORE),
    "a partial function": (pickled(functools.partial(print)), MORE),
    "a number of NumPy": (pickled(np.float64(1.0)), MORE),
    "an array of NumPy": (pickled(np.arange(3)), MORE),
    "a bare pickle": (pickle.dumps(Calls(os.system, "touch harmed")), "not a file that torch.save"),
    "an old file": (saved_as_before_1_6([torch.arange(3)]), "not a file that torch.save writes"),
    "an old file with code": (
        saved_as_before_1_6([torch.arange(3), Calls(os.system, "touch harmed")]),
        "not a file that torch.save writes",
    ),
    "INST": (pickled(b"(S'touch harmed'\nios\nsystem\n."), "asks for os.system"),
    "INST of a known name": (pickled(b"(icollections\nOrderedDict\n."), MORE),
    "OBJ": (pickled(PROTO + b"(" + NAMED + b"o."), MORE),
    "NEWOBJ": (pickled(PROTO + NAMED + b")\x81."), OTHER),
    "NEWOBJ_EX": (pickled(b"\x80\x04" + NAMED + b")}\x92."), MORE),
    "EXT1": (pickled(PROTO + b"\x82\x01."), MORE),
    "BUILD": (pickled(PROTO + NAMED + b")R}X\x01\x00\x00\x00aK\x01sb."), OTHER),
    "a text outside": (pickled(b"Pabc\n."), MORE),
    "a number outside": (pickled(PROTO + b"K\x01Q."), "damaged"),
    "five letters outside": (pickled(PROTO + b"X\x05\x00\x00\x00abcdeQ."), MORE),
    "a large size": (tensor(LARGE * 2 + b"\x86", b"K\x00K\x00\x86"), OTHER),
    "a negative stride": (tensor(b"K\x02\x85", NEGATIVE + b"\x85"), "damaged"),
    "an offset beyond": (tensor(b"K\x02\x85", b"K\x01\x85", b"K\x05"), "damaged"),
    "keys that collide": (crafted_keys(100_000), "too many bytes"),
    "two members of a name": (
        zipped("a/data.pkl", "b/data.pkl").replace(b"b/data", b"a/data"),
        "members have the same name",
    ),
    "two pickles": (zipped("a/data.pkl", "b/data.pkl"), "other pickles"),
    "a pickle beside it": (zipped("a/data.pkl", "a/.data/evil.pkl"), "other pickles"),
    "a member above": (zipped("a/data.pkl", "../evil.py"), "outside its folder"),
    "a folder above": (zipped("../data.pkl", "../evil.py"), "outside its folder"),
    "a script": (zipped("a/data.pkl", "a/constants.pkl", "a/code/x.py"), "other pickles"),
    "countless tensors": (
        pickled(
            PROTO
            + REBUILD
            + (b"q\x00(" + STORAGE + ONE_LONG + b"K\x01\x85\x89" + NAMED + b")Rtq\x01R](")
            + (b"h\x00h\x01R" * 2**14 + b"e."),
            SIX_NUMBERS,
        ),
        OTHER,
    ),
    "countless members": (
        zipped("a/data.pkl", *(f"{n:0100}" for n in range(30_000))),
        "list of members has .* bytes",
    ),
    "half an archive": (pickled([1] * 1000)[:300], "not a file that torch.save writes"),
    "half a pickle": (pickled(pickle.dumps([1] * 1000)[:300]), "damaged"),
    "a call of a storage": (
        pickled(PROTO + b"ctorch\nLongStorage\n)R."),
        "damaged",
    ),
    "a hook with arguments": (pickled(PROTO + b"ccollections\nOrderedDict\n(K\x01tR."), "damaged"),
    "a state to set": (pickled(PROTO + b"}}b."), MORE),
    "an object outside": (pickled(PROTO + b"(X\x01\x00\x00\x00ae(Q."), "damaged"),
    "no end": (pickled(PROTO + b"}"), "damaged"),
    "nothing on the stack": (pickled(PROTO + b"u."), "damaged"),
    "a tensor without storage": (pickled(PROTO + REBUILD + b"(NK\x00))tR."), "damaged"),
    "names that are no texts": (pickled(b"\x80\x04]]\x93."), MORE),
    "a shape that is a list": (
        pickled(PROTO + REBUILD + b"(" + STORAGE + b"K\x00]]tR.", SIX_NUMBERS),
        "damaged",
    ),
    "a stride beyond all numbers": (
        pickled(
            PROTO + REBUILD + b"(" + STORAGE + b"K\x00K\x01\x85" + HUGE + b"\x85tR.", b"\0" * 48
        ),
        "damaged",
    ),
    "a pickle beyond all sizes": (pickled(PROTO + b"]0" * 2**21 + b"N."), "too many"),
    "a storage that is not there": (pickled(PROTO + STORAGE + b"."), "damaged"),
    "no zip": (pickle.dumps({}), "not a file that torch.save writes"),
    "nothing": (b"", "not a file that torch.save writes"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_files_that_are_not_tensors_are_refused(kind, tmp_path):
    content, words = HOSTILE[kind]
    path = tmp_path / "question_0000_steps_004.pt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{path.name}: .*{words}"):
        read_decode(path, TASK, None)
    assert list(tmp_path.iterdir()) == [path]


def test_lists_within_lists_without_end_are_read_and_freed(tmp_path):
    (tmp_path / "x.pt").write_bytes(pickled(PROTO + b"]" * 10**5 + b"a" * (10**5 - 1) + b"."))
    assert len(read_tensors(tmp_path / "x.pt")) == 1


def nested(depth):
    """A list of ten lists of ten lists …, which a pickle says in a few bytes per level."""
    value = [1]
    for _ in range(depth):
        value = [value] * 10
    return value


COMMITS = [torch.zeros(0, 2, dtype=torch.long)] * 3000
REPEATED = {
    "ids inside lists": ({"gen_ids": nested(6)}, "token ids"),
    "an answer inside lists": ({"pred_token_id": nested(6)}, "token ids"),
    "a text of lists": ({"pred_ans": nested(6)}, "expected a text"),
    "a target of lists": ({"gt_text": nested(6)}, "expected a text"),
    "a place inside lists": ({"ans_posidx": nested(6)}, "expected a number"),
    "blocks of nothing": ({"true_indices_history": torch.zeros(2**29, 0)}, "no list"),
    "predictions of nothing": ({"x0_history": torch.zeros(2**29, 0)}, "no list"),
    "ids of one number": ({"gen_ids": torch.zeros(1).long().expand(2**40)}, "larger"),
    "predictions of one number": (
        {"x0_history": [torch.zeros(1, 1).long().expand(2**20, 2**20)]},
        "larger",
    ),
    "predictions inside lists": ({"x0_history": nested(6)}, "expected a tensor"),
    "one block a thousand times": (
        {"x0_history": [torch.zeros(40_000, 7, dtype=torch.long)] * 1000},
        "more predictions",
    ),
    "steps without end": ({"x0_history": [[torch.zeros(1, 7)] * 3000] * 3000}, "more predictions"),
    "commits inside lists": ({"true_indices_history": [[nested(6)]]}, "expected a tensor"),
    "commits without end": ({"true_indices_history": [COMMITS] * 3000}, "more commits"),
    "a commit of everything": (
        {"true_indices_history": [[torch.zeros(10_000, 2, dtype=torch.long)]]},
        "larger than a decode has",
    ),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_what_a_file_repeats_is_refused_before_it_is_copied(kind, tmp_path):
    changes, words = REPEATED[kind]
    path = save_prophet(tmp_path / "question_0000_steps_004.pt", SETTLES_LATE, **changes)
    with pytest.raises(DataError, match=rf"{path.name}.*{words}"):
        read_decode(path, TASK, None)


NUMBERS = ("prompt_token_len", "ans_posidx", "gen_ids", "pred_token_id")


@pytest.mark.parametrize("value", [2**70, -(2**70), [7, 2**80], 1e400])
@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_that_no_array_holds_are_an_error_that_names_the_file(key, value, tmp_path):
    name = "question_0000_steps_004.pt"
    path = save_prophet(tmp_path / name, SETTLES_LATE, **{key: value})
    if key == "ans_posidx" and isinstance(value, int):  # a place outside the text
        assert not read_decode(path, TASK, None)["is_final"][-1]
        return
    with pytest.raises(DataError, match=name):
        read_decode(path, TASK, None)


@pytest.mark.parametrize(
    "name", [f"question_0000_steps_{10**12}.pt", f"question_{10**12}_steps_004.pt"]
)
def test_a_name_with_an_impossible_number_is_refused(name, tmp_path):
    save_prophet(tmp_path / "hist" / name, SETTLES_LATE)
    assert name in refused("import", "prophet", "hist")


def test_an_error_quotes_little_of_a_file(tmp_path):
    key = b"X\x40\x42\x0f\x00" + b"a" * 10**6
    (tmp_path / "x.pt").write_bytes(
        pickled(PROTO + STORAGE.replace(b"X\x01\x00\x00\x000", key) + b".")
    )
    with pytest.raises(DataError) as refused:
        read_tensors(tmp_path / "x.pt")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("name", ["evil.pt", "question.pt"])
def test_a_file_of_another_name_is_not_passed_over(name, tmp_path):
    save_prophet(tmp_path / "hist" / "question_0000_steps_004.pt", SETTLES_LATE)
    if name == "evil.pt":
        save_evil(tmp_path / "hist" / name, "touch harmed")
    else:
        save_prophet(tmp_path / "hist" / name, SETTLES_LATE)
    assert name in refused("import", "prophet", "hist")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hist"]


def test_half_characters_in_files_and_names_are_written_escaped(tmp_path):
    path = tmp_path / "hist" / "question_0003_steps_004.pt"
    save_prophet(path, SETTLES_LATE, pred_ans="7\ud800", gt_text="\ud800")
    folder = os.fsdecode(os.fsencode(path.parent) + b"/a\xff")
    os.mkdir(folder)
    path.rename(os.path.join(folder, path.name))
    done("import", "prophet", "hist")
    (row,) = pl.read_parquet("imported.parquet").to_dicts()
    assert (row["answer"], row["target"]) == (r"7\ud800", r"\ud800")
    assert row["file"] == rf"a\udcff/{path.name}"


def test_a_zip_that_unfolds_is_refused(tmp_path):
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"N" * 10**7 + b".")
    with pytest.raises(DataError, match="compressed"):
        read_tensors(path)


def test_tensors_come_as_they_were_saved(tmp_path):
    tensors = [torch.arange(12).view(3, 4).T, torch.tensor(5), torch.zeros(0, 2).long()]
    tensors += [torch.tensor([True]), torch.arange(20).int()[4::3], torch.rand(3).bfloat16()]
    plain = (1, 2.5, None, "text", -70_000, 2**40, True, {"a": [[], {}]})
    torch.save({"a": tensors, "b": plain}, tmp_path / "x.pt")
    saved = read_tensors(tmp_path / "x.pt")
    assert saved["b"] == plain
    assert all(map(torch.equal, saved["a"], tensors))


def test_a_tensor_of_a_gpu_is_read_like_any_other(tmp_path):
    on_gpu = STORAGE.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:0")
    program = PROTO + REBUILD + b"(" + on_gpu + b"K\x00K\x06\x85K\x01\x85\x89" + NAMED + b")RtR."
    (tmp_path / "x.pt").write_bytes(pickled(program, SIX_NUMBERS))
    assert read_tensors(tmp_path / "x.pt").tolist() == [0] * 6


@settings(max_examples=50)
@given(data=st.data())
def test_a_damaged_file_is_an_error_and_never_a_crash(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    path = save_prophet(folder / "question_0000_steps_004.pt", SETTLES_LATE)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    with suppress(DataError):
        read_tensors(path)


def test_an_import_that_fails_leaves_the_old_file_whole(imported, tmp_path, monkeypatch):
    before = (tmp_path / "imported.parquet").read_bytes()

    def fail(file, target):
        if hasattr(target, "write"):
            target.write(b"half")
        else:
            target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    assert c4("import", "prophet", "hist").exit_code != 0
    assert (tmp_path / "imported.parquet").read_bytes() == before


def test_klass_tells_when_the_committed_answer_settles(tmp_path):
    texts = [
        "The",
        "The answer",
        "The answer 12",
        "The answer 13",
        "The answer 12.",
        "The answer 12.",
    ]
    save_klass(tmp_path / "results", texts, [[10], [11, 12], [13], [14], [15], [16]], question=4)
    done("import", "klass", "results")
    (row,) = pl.read_parquet("imported.parquet").to_dicts()
    assert (row["task"], row["trajectory"], row["answer"], row["target"]) == (
        "gsm8k",
        4,
        "12",
        "12",
    )
    assert (row["stabilization"], row["first_appearance"]) == (5 / 8, 3 / 8)
    assert row["commit_step"] == [1, 2, 2, 3, 4, 5, 6]
    assert (row["steps"], row["budget"], row["correct"]) == (6, 8, True)


def test_answers_may_be_read_as_a_user_s_own_task_reads_them(tmp_path):
    (tmp_path / "my_words.py").write_text("""
from c4.tasks import Candidate, Example, Task, answers

def last_word(text, choices=()):
    return Candidate(text.split()[-1], 0, len(text)) if text else None

TASK = Task(name="words", read=lambda row: Example("?", "!"), rows=[{}],
            **answers("number") | {"extract": last_word, "plain": last_word})
""")
    save_klass(tmp_path / "results", ["The", "The answer", "The answer"], [[10], [11], [12]])
    done("import", "klass", "results", "--task", "my_words.py:TASK")
    (row,) = pl.read_parquet("imported.parquet").to_dicts()
    assert (row["task"], row["answer"]) == ("words", "answer")


def test_an_answer_that_stands_in_the_question_is_not_read_there(tmp_path):
    prompt = "<|im_start|>user\nIs it 12?<|im_end|>\n<|im_start|>assistant\n"
    texts = [f"{prompt}{written}" for written in ("", "It is", "It is 12", "It is 12<|im_end|>")]
    folder = tmp_path / "Dream" / "gsm8k" / "steps_4" / "stepwise"
    folder.mkdir(parents=True)
    steps = klass_steps(texts, [[30], [10], [12], [11]])
    (folder / "q0_s0.json").write_text(json.dumps(steps))
    done("import", "klass", "Dream")
    (row,) = pl.read_parquet("imported.parquet").to_dicts()
    assert (row["answer"], row["stabilization"], row["first_appearance"]) == ("12", 3 / 4, 3 / 4)
    assert row["commit_step"] == [2, 4, 3] + [0] * 17 + [1]


def test_a_prompt_that_klass_writes_over_is_no_position_of_the_text(tmp_path):
    path = save_klass(tmp_path / "steps_8", ["1", "12"], [[10], [11, 3]])  # 3 is in the prompt
    steps = json.loads(path.read_text())
    for step, masked in zip(steps, ([10, 11], [11]), strict=True):
        step["all_tokens"] = [{"position": place} for place in masked]
    path.write_text(json.dumps(steps))
    assert klass.read_decode(path, TASK, None)["commit_step"] == [1, 2]


def test_grades_of_code_are_found_by_the_questions_place_in_the_list(tmp_path):
    path = save_klass(tmp_path / "mbpp", ["def f(): pass"], [[0]], question=1)
    judged = [{"task_id": 11 + n, "samples": [{"sample_idx": 0, "passed": n == 1}]} for n in (0, 1)]
    (path.parent.parent / "all_results.json").write_text(json.dumps({"results": judged}))
    done("import", "klass", "mbpp", "--task", "mbpp")
    assert pl.read_parquet("imported.parquet")["correct"].to_list() == [True]


BAD_STEPS = {
    "no steps": "[]",
    "no list": "{}",
    "no JSON": "[",
    "no text": '[{"decoded_text": null, "decoded_tokens": []}]',
    "a text of lists": '[{"decoded_text": [["1"]], "decoded_tokens": []}]',
    "other keys": "[{}]",
    "deep": "[" * 100_000,
    "far apart": json.dumps(klass_steps(["a"], [[0, 10**9]])),
    "endless": json.dumps(klass_steps(["a"], [[float("inf")]])),
}


@pytest.mark.parametrize("kind", BAD_STEPS)
def test_other_json_is_refused_by_name(kind, tmp_path):
    path = save_klass(tmp_path / "results", ["1"], [[0]])
    path.write_text(BAD_STEPS[kind])
    assert path.name in refused("import", "klass", "results")


def test_klass_without_a_budget_asks_for_one(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "q0_s1.json").write_text(json.dumps(klass_steps(["12"], [[0]])))
    assert "--budget N" in refused("import", "klass", "x")
    done("import", "klass", "x", "--budget", "4")
    assert pl.read_parquet("imported.parquet")["model"].to_list() == ["klass s1"]


def test_a_folder_without_files_says_what_they_are_called(tmp_path):
    assert "question_0000_steps_256.pt" in refused("import", "prophet", tmp_path)


PUBLISHED = {
    "question_histories_mmlu_random_none_index_genlen_step128_blocklen128": "mmlu",
    "question_histories_low_conf_none_index_genlen_step256_blocklen32": "gsm8k",
}


def test_every_file_is_of_the_task_that_its_folder_names(tmp_path):
    for folder in PUBLISHED:
        save_prophet(tmp_path / "all" / folder / "question_0000_steps_004.pt", SETTLES_LATE)
    done("import", "prophet", "all")
    frame = pl.read_parquet("imported.parquet")
    assert dict(frame.select("model", "task").rows()) == {
        f"prophet/{folder}": task for folder, task in PUBLISHED.items()
    }


def test_imported_answers_are_reported_and_drawn_like_recorded_ones(imported, tmp_path):
    assert "no gate can be asked" in imported
    result = done("report", "stabilization", "--runs", "imported.parquet", "--json")
    (table,) = json.loads(result.stdout)
    assert table["name"] == "stabilization"
    assert {(row["s_p"], row["appeared"]) for row in table["rows"]} == {(0.75, 0.25)}
    done("figures", "stabilization", "--runs", "imported.parquet", "--format", "png")
    assert (tmp_path / "figures-out" / "stabilization.png").stat().st_size > 5_000
    refused("report", "stabilization", "--runs", "imported.parquet", "--task", "math")


COMMANDS = [
    *(("report", *names, "--runs") for names in [(), ("main",), ("stabilization", "paired")]),
    *(("runs", "--runs"), ("runs", "--check", "--runs"), ("export",), ("grade",)),
    ("replay", "--runs"),
    *(("view", "--no-browser"), ("push",)),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_that_need_runs_say_what_an_imported_file_is_for(command, tmp_path):
    IMPORTED.to_frame().write_parquet("imported.parquet")
    more = ["a/b"] if command == ("push",) else []
    said = refused(*command, "imported.parquet", *more)
    assert "c4 report stabilization --runs 'imported.parquet'" in said


def test_another_parquet_file_is_not_taken_for_an_imported_one(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet("other.parquet")
    said = refused("report", "stabilization", "--runs", "other.parquet")
    assert "not a file of `c4 import`" in said


def test_a_verdict_is_what_a_file_says_and_anything_else_is_refused_by_its_name():
    for said, verdict in ((True, True), (0.0, False), (None, None)):
        assert read_verdict("x.pt", said) is verdict
    for said in ("False", 0.5, [True], float("nan")):
        with pytest.raises(DataError, match=r"x\.pt: says .* where right or wrong should be"):
            read_verdict("x.pt", said)
