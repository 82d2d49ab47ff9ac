"""A commit rule of a user's own that makes mistakes is stopped, and named."""

import sys

import numpy as np
import pytest

from c4.decode import Choice, Rule, RuleState, decode
from c4.decode.guard import GuardedRule
from c4.errors import ConfigError
from c4.store.origins import Origin
from c4.tasks import Shape
from tests.conftest import Scripted

SHAPE = Shape(length=4, budget=4, block_length=2)


def decode_under(choose):
    """Decode four positions under a rule that chooses so."""

    class State(RuleState):
        def choose(self, step, reading, masked):
            return choose(step, masked)

    class Mine(Rule):
        def start(self):
            return State()

    model = Scripted(np.tile([1, 2, 3, 4], (99, 1)), np.full((99, 4), 0.5))
    return decode(model, np.array([7]), SHAPE, rule=GuardedRule(Mine()))


def commit(*positions, revoked=()):
    places = np.array(positions, dtype=np.int64)
    return Choice(places, Origin.ACCEPTED, np.array(revoked, dtype=np.int64))


def test_a_sound_rule_decodes_as_if_nobody_watched():
    decoded = decode_under(lambda step, masked: commit(int(np.flatnonzero(masked)[0])))
    assert (decoded.ids.tolist(), decoded.steps) == ([1, 2, 3, 4], 4)


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda step, masked: commit(), "it commits nothing, so the decode would never end"),
        (lambda step, masked: commit(3), "positions names 3, outside the block of 0 to 1"),
        (lambda step, masked: commit(-1), "positions names -1, outside the block"),
        (lambda step, masked: commit(0), "positions names 0, which is committed already"),
        (lambda step, masked: commit(0, 0), "positions names a position twice"),
        (lambda step, masked: commit(0, revoked=[1]), "revoked names 1, which is still masked"),
        (
            lambda step, masked: Choice(np.array([0.5]), 0),
            "not a one-dimensional array",
        ),
        (lambda step, masked: [0], "it returns [0] and no c4.decode.Choice"),
        (lambda step, masked: Choice(np.array([0]), "mine"), "'mine' is no c4.store.Origin"),
        (lambda step, masked: Choice(np.array([0]), 9), "its origin 9 is no c4.store.Origin"),
        (lambda step, masked: commit(1 - step % 2, revoked=[step % 2][: step > 1]), "40 passes"),
        (lambda step, masked: sys.exit("no"), "the rule Mine fails: SystemExit: no (test_guard"),
        (lambda step, masked: 1 / 0, "the rule Mine fails: ZeroDivisionError: division by zero"),
    ],
)
def test_a_rule_s_mistake_names_the_rule(choose, message):
    with pytest.raises(ConfigError, match="the rule Mine fails") as refused:
        decode_under(choose)
    assert message in str(refused.value)


def test_a_rule_that_starts_nothing_is_told_what_to_return():
    class Empty(Rule):
        def start(self):
            return None

    with pytest.raises(ConfigError, match=r"derived from c4\.decode\.RuleState"):
        GuardedRule(Empty()).start()


class Whole(Rule):
    """A sound rule, parts of which are broken below."""

    def start(self):
        return Held()


class Held(RuleState):
    def choose(self, step, reading, masked):
        return commit(int(np.flatnonzero(masked)[0]))


def test_a_rule_s_refusal_of_a_shape_is_one_error():
    class Narrow(Whole):
        def check(self, shape, *, shift):
            raise ValueError("one block only")

    with pytest.raises(ConfigError, match="the rule Narrow fails: ValueError: one block only"):
        GuardedRule(Narrow()).check(SHAPE, shift=False)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"read": lambda self, *seen: None}, "its read returns None and no reading"),
        (
            {"choose": lambda self, step, reading, masked: reading.token.fill(0)},
            "ValueError: assignment destination is read-only",
        ),
    ],
)
def test_a_rule_cannot_change_what_the_model_predicted(broken, message):
    class Bad(Whole):
        def start(self):
            return type("BadState", (Held,), broken)()

    model = Scripted(np.tile([1, 2, 3, 4], (9, 1)), np.full((9, 4), 0.5))
    with pytest.raises(ConfigError, match=f"the rule Bad fails: {message}"):
        decode(model, np.array([7]), SHAPE, rule=GuardedRule(Bad()))
