"""The checks for users' plug-ins: c4's own pass them, and what is broken is said."""

import re
from dataclasses import dataclass, field, make_dataclass

import numpy as np
import pytest

from c4.decode import Choice, MemorylessRule, Rule, RuleState, most_confident
from c4.errors import ConfigError
from c4.gates import GATES
from c4.record.methods import RULES
from c4.store.origins import Origin
from c4.tasks import TASKS, Candidate, Example, SearchMode, Task, answers
from c4.tasks.extractors import REGISTRY as EXTRACTORS
from c4.tasks.extractors import Finder
from c4.testing import (
    BrokenPlugin,
    check_extractor,
    check_gate,
    check_grader,
    check_rule,
    check_signal,
    check_task,
)


@pytest.mark.parametrize("name", GATES)
def test_every_gate_keeps_the_contract(name):
    check_gate(name)
    check_gate(GATES[name])


@pytest.mark.parametrize("name", RULES)
def test_every_rule_keeps_the_contract(name):
    check_rule(name)
    check_rule(RULES[name])


@pytest.mark.parametrize("name", TASKS)
def test_every_task_keeps_the_contract(name):
    check_task(name)


def gate(fires, **more):
    return type("Mine", (), {"fires": fires, **more})


def with_parameter(name, default):
    made = make_dataclass(
        "Mine", [(name, object, field(default_factory=lambda: default))], frozen=True
    )
    made.fires = lambda self, s: s.run > 3
    return made


BROKEN_GATES = {
    "has no function fires": type("Mine", (), {}),
    "it cannot be made without arguments": type("Mine", (), {"__init__": lambda self, tau: None}),
    "fires must answer each step, an array of (16,)": gate(lambda self, s: True),
    "must return booleans, not int": gate(lambda self, s: s.run),
    "it looks at later steps": gate(lambda self, s: s.candidate == s.candidate[..., -1:]),
    "decides a stack of trajectories otherwise": gate(lambda self, s: np.cumsum(s.run, 0) > 12),
    "there is no signal 'confidense'": gate(lambda self, s: s.confidense > 0.5),
    "the gate Mine fails: ZeroDivisionError": gate(lambda self, s: 1 / 0),
    "it changes the cells": gate(lambda self, s, c: c.token.fill(0) or s.run > 3, wants_cells=True),
    "a parameter level that a manifest cannot keep": with_parameter("level", {1, 2}),
    "a parameter named reading, which means something else": with_parameter("reading", 1),
}


@pytest.mark.parametrize("message", BROKEN_GATES)
def test_a_broken_gate_is_told_what_is_broken(message):
    with pytest.raises(BrokenPlugin, match="Mine breaks the contract of a gate") as refused:
        check_gate(BROKEN_GATES[message])
    assert message in str(refused.value)


def test_a_gate_that_remembers_or_writes_is_found_out():
    asked = []

    def remembers(self, s):
        asked.append(1)
        return np.full(s.step.shape, len(asked) % 4 == 0)

    def writes(self, s):
        s.confidence[...] = 1.0
        return s.confidence > 0.5

    with pytest.raises(BrokenPlugin, match="keep no state in it"):
        check_gate(gate(remembers))
    with pytest.raises(BrokenPlugin, match="it changes the signal confidence"):
        check_gate(gate(writes))


def test_gates_that_want_cells_or_the_future_are_checked_as_such():
    check_gate(gate(lambda self, s, cells: cells.confidence.min(axis=1) > 0.3, wants_cells=True))
    check_gate(gate(lambda self, s: s.candidate == s.candidate[..., -1:], needs_future=True))


def rule(choose):
    """A rule whose states choose so."""

    class State(RuleState):
        def choose(self, step, reading, masked):
            return choose(self, step, reading, masked)

    @dataclass(frozen=True)
    class Mine(Rule):
        def start(self):
            return State()

    return Mine


def best(state, reading, masked):
    return most_confident(state.block.open_positions(masked), reading, 1)


def swap(state, step, reading, masked):
    """Take back what the last step committed, for ever."""
    done = np.setdiff1d(np.arange(state.block.start, state.block.stop), np.flatnonzero(masked))
    return Choice(best(state, reading, masked), Origin.ACCEPTED, done)


def test_a_sound_rule_passes():
    check_rule(rule(lambda state, step, reading, masked: Choice(best(state, reading, masked), 0)))


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda *given: Choice(np.array([], dtype=np.int64), 0), "it commits nothing"),
        (lambda *given: Choice(np.array([99]), 0), "outside the block"),
        (lambda *given: None, "no c4.decode.Choice"),
        (swap, "passes and is not done"),
    ],
)
def test_a_broken_rule_is_told_what_is_broken(choose, message):
    with pytest.raises(BrokenPlugin, match="Mine breaks the contract of a rule") as refused:
        check_rule(rule(choose))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (ConfigError("no"), "it refuses every shape that it was tried at: 8/8/4, 12/6/4, 6/6/6"),
        (ValueError("no"), "its check fails: ValueError: no"),
    ],
)
def test_a_rule_that_takes_no_shape_is_told_so(refusal, message):
    def check(self, shape, *, shift):
        raise refusal

    made = rule(lambda state, step, reading, masked: Choice(best(state, reading, masked), 0))
    made.check = check
    with pytest.raises(BrokenPlugin, match=message):
        check_rule(made)


def test_only_a_rule_with_fields_has_to_be_a_dataclass():
    class Plain(MemorylessRule):
        def choose(self, places, reading):
            return Choice(most_confident(places, reading, 1), 0)

    class Undecorated(Plain):
        tau: float = 0.5

    check_rule(Plain)
    check_rule(Plain())
    with pytest.raises(BrokenPlugin, match="no dataclass of its own"):
        check_rule(Undecorated)


def test_a_rule_that_keeps_its_state_is_found_out():
    class State(RuleState):
        seen = 0

        def choose(self, step, reading, masked):
            self.seen += 1
            places = self.block.open_positions(masked)
            return Choice(places[: 1 + self.seen % 3], 0)

    @dataclass(frozen=True)
    class Mine(Rule):
        state = State()

        def start(self):
            return self.state

    with pytest.raises(BrokenPlugin, match="put to work again it decodes otherwise"):
        check_rule(Mine)


ROWS = [{"q": "1+1?", "a": "2"}, {"q": "2+2?", "a": "4"}]


def task(**fields):
    kind = answers("number")
    given = {"name": "mine", "rows": ROWS, "read": lambda row: Example(row["q"], row["a"])}
    return Task(**{**kind, **given, **fields})


def test_a_sound_task_passes():
    check_task(task())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"read": lambda row: Example("", row["a"])}, "the prompt of example 0 is empty"),
        ({"read": lambda row: Example(row["nothing"], "1")}, "no field 'nothing'"),
        ({"read": lambda row: Example(row["q"], 3)}, "3 is not a text"),
        ({"extract": lambda text, choices=(): text[0]}, "fails on ''"),
        ({"extract": lambda text, choices=(): "x"}, "must return a c4.tasks.Candidate or None"),
        ({"extract": lambda text, choices=(): Candidate("7", 0, 99)}, "no text at a place within"),
        ({"extract": lambda text, choices=(): None}, "the gold answer of example 0"),
        ({"rows": lambda: 1 / 0}, "the rows of mine cannot be read: ZeroDivisionError"),
        ({"rows": []}, "mine has 0 usable examples"),
        ({"read": lambda row: None}, "read returns None for each of"),
        ({"read": lambda row: "text"}, "read must return an Example or None, not 'text'"),
        ({"read": lambda row: Example(row["q"], None)}, "its target None is not a text"),
        ({"read": lambda row: Example(row["q"], "1", choices=(1,))}, "its choice 1 is not a text"),
        ({"read": lambda row: Example(row["Q"], "1")}, "no field 'Q'; did you mean q?"),
        ({"rows": [3]}, "row 0: it is 3, and no fields with names"),
        ({"rows": None}, "mine has no rows and is not on the hub"),
    ],
)
def test_a_broken_task_is_told_what_is_broken(fields, message):
    with pytest.raises(BrokenPlugin, match="mine breaks the contract of a task") as refused:
        check_task(task(**fields))
    assert message in str(refused.value)


def test_a_task_that_passes_for_c4_s_own_is_found_out():
    with pytest.raises(BrokenPlugin, match="the task gsm8k would pass for c4's own"):
        check_task(task(name="gsm8k"))


def test_an_extractor_may_want_its_answers_written_in_its_own_way():
    def marked(text, choices=()):
        found = re.search(r"<<(.+?)>>", text)
        return found and Candidate(found[1], *found.span(1))

    made = task(extract=marked, normal=str, rows=iter([{"q": "1 + 1?", "a": "2"}]))
    with pytest.raises(BrokenPlugin, match=r"check_task\(…, written='<<\{\}>>'\)"):
        check_task(made)
    check_task(made, written="so <<{}>>")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"family": "code2"}, "the task mine: family is one of letters, long_reasoning, code"),
        ({"search": "all"}, "the task mine: search is one of last, first5, code, not 'all'"),
        ({"shape": (8, 8, 4)}, "the task mine: shape is a c4.tasks.Shape, not"),
        ({"read": {}}, "the task mine: read is no function"),
    ],
)
def test_a_field_of_a_task_is_checked_when_it_is_made(fields, message):
    with pytest.raises(ConfigError, match=message):
        task(**fields)
    assert task(family="long_reasoning", search="last").search is SearchMode.LAST


@pytest.mark.parametrize("name", EXTRACTORS.own)
def test_every_extractor_keeps_the_contract(name):
    check_extractor(name)


def last_word(text, choices=()):
    words = text.split()
    start = text.rindex(words[-1]) if words else 0
    return Candidate(words[-1], start, start + len(words[-1])) if words else None


def asked_before(text, choices=()):
    asked_before.times = getattr(asked_before, "times", 0) + 1
    return Candidate(str(asked_before.times), 0, 0)


BROKEN_EXTRACTORS = {
    "it is no extractor: it must be a function": 7,
    "it fails on '': ValueError": lambda text, choices: text.index("A"),
    "it must return a c4.tasks.Candidate or None, not '12'": lambda text, choices: text,
    "which is no text at a place within it": lambda text, choices: Candidate("x", 0, 99),
    "differently when it is asked again": asked_before,
    "takes 1 positional argument": lambda text: None,
    "its normal form of '12' must be a text, not 12.0": Finder(find=last_word, normal=float),
}


@pytest.mark.parametrize("message", BROKEN_EXTRACTORS)
def test_a_broken_extractor_is_told_what_is_broken(message):
    with pytest.raises(BrokenPlugin, match="breaks the contract of an extractor") as refused:
        check_extractor(BROKEN_EXTRACTORS[message])
    assert message in str(refused.value)


def test_a_good_extractor_passes_as_a_function_and_as_more():
    check_extractor(last_word)
    check_extractor(Finder(find=last_word, normal=str.casefold, search="first5"))


BROKEN_GRADERS = {
    "it must be a function (example, answer, text)": ["12"],
    "it fails on the answer 'x' to '12': ValueError": lambda e, answer, text: float(answer) > 0,
    "it must return True or False, not 'right'": lambda e, answer, text: "right",
}


@pytest.mark.parametrize("message", BROKEN_GRADERS)
def test_a_broken_grader_is_told_what_is_broken(message):
    with pytest.raises(BrokenPlugin, match="breaks the contract of a grader") as refused:
        check_grader(BROKEN_GRADERS[message])
    assert message in str(refused.value)


def test_a_good_grader_passes():
    check_grader(lambda example, answer, text: answer == example.target)
    check_grader("exact")


def flux(s, cells):
    """The share of positions whose prediction is another than at the step before."""
    changed = cells.token[1:] != cells.token[:-1]
    return np.concatenate([[1.0], changed.mean(axis=1)])


def spoils(s, cells):
    cells.gap[:] = 0
    return s.run


def stiff(s, cells):
    return s.run * np.random.default_rng().random()


BROKEN_SIGNALS = {
    "changes when later steps are known": lambda s, cells: s.run / s.run.max(),
    "it must have one number for each of 16 steps": lambda s, cells: cells.gap,
    "it changes the cells": spoils,
    "keep no state in it": stiff,
    "fails: AttributeError": lambda s, cells: cells.logits,
}


@pytest.mark.parametrize("message", BROKEN_SIGNALS)
def test_a_broken_signal_is_told_what_is_broken(message):
    signal = BROKEN_SIGNALS[message]
    signal.__name__ = "mine"
    with pytest.raises(BrokenPlugin, match="mine breaks the contract of a signal") as refused:
        check_signal(signal)
    assert message in str(refused.value)


def test_a_good_signal_passes():
    check_signal(flux)
    check_signal("entropy")
    clash = type("clash", (), {"__call__": lambda self, s, cells: s.run})()
    clash.__name__ = "progress"
    with pytest.raises(BrokenPlugin, match="would hide c4's own progress"):
        check_signal(clash)
