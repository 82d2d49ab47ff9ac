"""`c4.check` and `c4 plugins check`: c4's own objects pass, and broken ones are explained."""

import re
from dataclasses import dataclass, field, make_dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import c4
from c4._check import _made_decodes
from c4.cli.app import app
from c4.decode import Choice, Rule, RuleState, most_confident
from c4.decode.rules import RULES
from c4.errors import ConfigError
from c4.gates import GATES
from c4.gates.cvee import CVEE
from c4.gates.signals import SIGNAL_NAMES
from c4.tasks import TASKS, Candidate, Example, SearchMode, Task, answers
from c4.tasks.graders import REGISTRY as GRADERS
from c4.tasks.reading.extractors import REGISTRY as EXTRACTORS
from c4.tasks.reading.extractors import Finder

OWN = {
    **{"gate": GATES, "rule": RULES, "task": TASKS, "signal": SIGNAL_NAMES},
    **{"extractor": EXTRACTORS.own, "grader": GRADERS.own},
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in OWN for name in OWN[kind]])
def test_c4_s_own_pass_the_check_that_users_get(kind, name):
    assert c4.check(name, kind) == kind


def test_cvee_exits_every_made_decode():
    for made in _made_decodes():
        exits = CVEE().fires(made.signals())
        assert exits.any()
        assert not exits.all()


def gate(fires, **more):
    return type("Mine", (), {"fires": fires, **more})


def soon(values):
    """The values of the next step."""
    return np.concatenate([values[..., 1:], values[..., -1:]], -1)


AHEAD = {
    "mean": lambda self, s: s.entropy < s.entropy.mean(),
    "mean of the steps": lambda self, s: s.entropy < s.entropy.mean(-1, keepdims=True),
    "median": lambda self, s: s.entropy < np.median(s.entropy),
    "next entropy": lambda self, s: soon(s.entropy) < 0.1,
    "next confidence": lambda self, s: soon(s.confidence) > 0.9,
    "best step": lambda self, s: s.confidence == s.confidence.max(-1, keepdims=True),
    "last candidate": lambda self, s: s.candidate == s.candidate[..., -1:],
    "longest run": lambda self, s: s.run * 2 > s.run.max(-1, keepdims=True),
    "last change": lambda self, s: s.changes == s.changes[..., -1:],
    "after its first exit": lambda self, s: (s.step < 3) | (soon(s.confidence) > 0.9),
}


@pytest.mark.parametrize("fires", AHEAD.values(), ids=AHEAD)
def test_a_gate_that_looks_ahead_is_caught(fires):
    with pytest.raises(ConfigError, match="it looks at later steps"):
        c4.check(gate(fires))


def with_parameter(name, default):
    fields = [(name, object, field(default_factory=lambda: default))]
    made = make_dataclass("Mine", fields, frozen=True)
    made.fires = lambda self, s: s.run > 3
    return made


ASKED = []


def remembers(self, s):
    ASKED.append(1)
    return np.full(s.step.shape, len(ASKED) % 4 == 0)


def writes(self, s):
    s.confidence[...] = 1.0
    return s.confidence > 0.5


BROKEN_GATES = {
    "cannot make the gate 'Mine'": gate(len, __init__=lambda self, tau: None),
    "fires must answer each step, an array of (16,)": gate(lambda self, s: True),
    "must return booleans, not int": gate(lambda self, s: s.run),
    "it looks at later steps": gate(lambda self, s: s.candidate == s.candidate[..., -1:]),
    "decides a stack of trajectories otherwise": gate(lambda self, s: np.cumsum(s.run, 0) > 12),
    "did you mean confidence? To use a signal of your own, list it: signals = (confidense,)": gate(
        lambda self, s: s.confidense > 0.5
    ),
    "the gate Mine fails: ZeroDivisionError": gate(lambda self, s: 1 / 0),
    "is read-only": gate(lambda self, s, c: c.token.fill(0) or s.run > 3, wants_cells=True),
    "fails: ValueError: assignment destination is read-only": gate(writes),
    "it answers differently": gate(remembers),
    "a parameter level that a manifest cannot keep": with_parameter("level", {1, 2}),
    "a parameter named reading, which means something else": with_parameter("reading", 1),
}


def rule(choose, **more):
    """A rule whose states choose so."""
    state = type("State", (RuleState,), {"choose": choose})
    made = type("Mine", (Rule,), {"start": lambda self: state(), **more})
    return dataclass(frozen=True)(made)


def best(state, step, reading, masked):
    return Choice(most_confident(state.block.open_positions(masked), reading, 1), 0)


def swap(state, step, reading, masked):
    """Take back what the last step committed, for ever."""
    done = np.setdiff1d(np.arange(state.block.start, state.block.stop), np.flatnonzero(masked))
    return Choice(best(state, step, reading, masked).positions, 0, done)


def refuses(error):
    def check(self, shape, *, shift):
        raise error

    return rule(best, check=check)


def one_block(self, shape, *, shift):
    if shape.length != shape.block_length:
        raise ConfigError("one block only")


def several_a_step(self, shape, *, shift):
    if shape.budget == shape.length:
        raise ConfigError("several a step only")


class Plain(Rule):
    def choose(self, places, reading):
        return Choice(most_confident(places, reading, 1), 0)


class Undecorated(Plain):
    tau: float = 0.5


class Counting(RuleState):
    seen = 0

    def choose(self, step, reading, masked):
        self.seen += 1
        return Choice(self.block.open_positions(masked)[: 1 + self.seen % 3], 0)


COUNTING = Counting()
BROKEN_RULES = {
    "it commits nothing": rule(lambda *given: Choice(np.array([], dtype=np.int64), 0)),
    "outside the block": rule(lambda *given: Choice(np.array([99]), 0)),
    "no c4.decode.Choice": rule(lambda *given: None),
    "passes and is not done": rule(swap),
    "it refuses every shape that it was tried at: 8/8/4 (no)": refuses(ConfigError("no")),
    "the rule Mine fails: ValueError: no": refuses(ValueError("no")),
    "its class is no dataclass": Undecorated,
    "a second decode differs": rule(best, start=lambda self: COUNTING),
}
ROWS = [{"q": "1+1?", "a": "2"}, {"q": "2+2?", "a": "4"}]


def task(**fields):
    kind = answers("number")
    given = {"name": "mine", "rows": ROWS, "read": lambda row: Example(row["q"], row["a"])}
    return Task(**{**kind, **given, **fields})


BROKEN_TASKS = {
    "the prompt of example 0 is empty": {"read": lambda row: Example("", row["a"])},
    "no field 'nothing'": {"read": lambda row: Example(row["nothing"], "1")},
    "3 is not a text": {"read": lambda row: Example(row["q"], 3)},
    "the extractor of mine fails": {"extract": lambda text, choices=(): text[0]},
    "and no Candidate": {"extract": lambda text, choices=(): "x"},
    "no text at a place within": {"extract": lambda text, choices=(): Candidate("7", 0, 99)},
    "the gold answer of example 0": {"extract": lambda text, choices=(): None},
    "the rows of mine cannot be read: ZeroDivisionError": {"rows": lambda: 1 / 0},
    "mine has 0 usable examples": {"rows": []},
    "read returns None for each of": {"read": lambda row: None},
    "read must return an Example or None, not 'text'": {"read": lambda row: "text"},
    "its target None is not a text": {"read": lambda row: Example(row["q"], None)},
    "its choice 1 is not a text": {"read": lambda row: Example(row["q"], "1", choices=(1,))},
    "no field 'Q'; did you mean q?": {"read": lambda row: Example(row["Q"], "1")},
    "row 0: it is 3, and no fields with names": {"rows": [3]},
    "mine has no rows and is not on the hub": {"rows": None},
}


def last_word(text, choices=()):
    words = text.split()
    start = text.rindex(words[-1]) if words else 0
    return Candidate(words[-1], start, start + len(words[-1])) if words else None


def asked_before(text, choices=()):
    ASKED.append(1)
    return Candidate(str(len(ASKED)), 0, 0)


BROKEN_EXTRACTORS = {
    "it must be a function": 7,
    "ValueError": lambda text, choices: text.index("A"),
    "and no Candidate": lambda text, choices: text,
    "which is no text at a place within": lambda text, choices: Candidate("x", 0, 99),
    "differently when it is asked again": asked_before,
    "takes 1 positional argument": lambda text: None,
    "its normal form of '12' is 12.0 and no text": Finder(find=last_word, normal=float),
}
BROKEN_GRADERS = {
    "fails: ValueError": lambda e, answer, text: float(answer) > 0,
    "returns 'right'; return True or False": lambda e, answer, text: "right",
}


def flux(s, cells):
    """The share of positions whose prediction is another than at the step before."""
    changed = cells.token[1:] != cells.token[:-1]
    return np.concatenate([[1.0], changed.mean(axis=1)])


def spoils(s, cells):
    cells.gap[:] = 0
    return s.run


def progress(s, cells):
    return s.run


def named(function):
    if function is not progress:
        function.__name__ = "mine"
    return function


BROKEN_SIGNALS = {
    "changes when later steps are known": lambda s, cells: s.run / s.run.max(),
    "so a decode and its recording would disagree": lambda s, c: s.entropy - s.entropy.mean(),
    "it must have one number for each of 16 steps": lambda s, cells: cells.gap,
    "is read-only": spoils,
    "it answers differently": lambda s, cells: s.run * np.random.default_rng().random(),
    "fails: AttributeError": lambda s, cells: cells.logits,
    "would hide c4's own progress": progress,
}
BROKEN = [
    *(("gate", made, said) for said, made in BROKEN_GATES.items()),
    *(("rule", made, said) for said, made in BROKEN_RULES.items()),
    *(("task", task(**fields), said) for said, fields in BROKEN_TASKS.items()),
    *(("extractor", made, said) for said, made in BROKEN_EXTRACTORS.items()),
    *(("grader", made, said) for said, made in BROKEN_GRADERS.items()),
    *(("signal", named(made), said) for said, made in BROKEN_SIGNALS.items()),
]


@pytest.mark.parametrize(("kind", "thing", "said"), BROKEN)
def test_a_broken_object_is_told_what_is_broken(kind, thing, said):
    with pytest.raises(ConfigError, match=rf"fails the check of an? {kind}: ") as refused:
        c4.check(thing, kind)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "thing"),
    [
        ("gate", gate(lambda self, s: s.run >= 3)),
        ("gate", gate(lambda self, s, c: c.confidence.min(axis=1) > 0.3, wants_cells=True)),
        ("gate", gate(lambda self, s: s.candidate == s.candidate[..., -1:], needs_future=True)),
        ("rule", rule(best)),
        ("rule", rule(best, check=one_block)),
        ("rule", rule(best, check=several_a_step)),
        ("rule", Plain),
        ("rule", Plain()),
        ("task", task()),
        ("extractor", last_word),
        ("extractor", Finder(find=last_word, normal=str.casefold, search="first5")),
        ("grader", lambda example, answer, text: answer == example.target),
        ("signal", flux),
        ("signal", "entropy"),
    ],
)
def test_the_kind_of_a_sound_object_is_told_from_the_object(kind, thing):
    assert c4.check(thing) == kind


def test_an_extractor_may_want_its_answers_written_in_its_own_way():
    def marked(text, choices=()):
        found = re.search(r"<<(.+?)>>", text)
        return found and Candidate(found[1], *found.span(1))

    made = task(extract=marked, normal=str, rows=iter([{"q": "1 + 1?", "a": "2"}]))
    with pytest.raises(ConfigError, match=r"c4\.check\(task, written='<<\{\}>>'\)"):
        c4.check(made)
    c4.check(made, written="so <<{}>>")


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


def test_the_command_checks_files(tmp_path):
    file = tmp_path / "my_gates.py"
    file.write_text(
        "class Calm:\n    def fires(self, s):\n        return s.run >= 3\n"
        "def soon(s, cells):\n    return s.run / s.run.max()\n"
    )
    done = CliRunner().invoke(app, ["plugins", "check", f"{file}:Calm", "cvee"])
    assert done.exit_code == 0, done.output
    assert f"{file}:Calm passes the check: gate" in done.stdout.replace("\n", "")
    done = CliRunner().invoke(app, ["plugins", "check", f"{file}:soon"])
    assert done.exit_code == 2
    assert "fails the check of a signal" in " ".join(done.stderr.split())
    with pytest.raises(ConfigError, match=r"no plug-in named 'cve'; did you mean cvee\?"):
        c4.check("cve")
    with pytest.raises(ConfigError, match="no kind of plug-in 'gat'"):
        c4.check("cvee", "gat")
