"""The grammar of labels, and what two runs must share to be compared."""

import pytest
from made import make_manifest

from c4.store.labels import (
    conditions,
    is_baseline,
    is_plain,
    label_under,
    method_name,
    reading_words,
)
from c4.tasks import AnswerReading, Ending, ReadingStyle

CAREFUL = AnswerReading()
PLAIN = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)


@pytest.mark.parametrize(
    ("label", "name", "plain"),
    [("c4", "c4", True), ("c4,H=2", "c4", False), ("wino+cvee,tau=0.5,H=1", "wino+cvee", False)],
)
def test_a_label_begins_with_its_method(label, name, plain):
    assert (method_name(label), is_plain(label)) == (name, plain)


def test_a_label_names_what_differs_from_the_usual_reading():
    assert reading_words(CAREFUL, CAREFUL) == []
    assert reading_words(PLAIN, CAREFUL) == ["reading=plain", "ending=skip"]
    assert reading_words(CAREFUL, PLAIN) == ["reading=careful", "ending=cut"]


def gated(label, reading, method="c4"):
    gate = {"name": "cvee", "reading": reading.of_signals}
    return make_manifest(method=method, label=label, gate=gate).identity


@pytest.mark.parametrize(
    ("identity", "careful", "plain"),
    [
        (gated("c4,H=2", CAREFUL), "c4,H=2", "c4,H=2,reading=careful,ending=cut"),
        (
            gated("c4,H=2,reading=plain,ending=skip", PLAIN),
            "c4,H=2,reading=plain,ending=skip",
            "c4,H=2",
        ),
        (gated("mine", PLAIN), "mine", "mine"),  # a user's own label stays
        (make_manifest().identity, "baseline", "baseline"),  # no gate, nothing to read
    ],
)
def test_among_results_of_one_reading_only_another_is_said(identity, careful, plain):
    assert (label_under(identity, CAREFUL), label_under(identity, PLAIN)) == (careful, plain)


def test_a_baseline_is_the_schedule_with_whole_passes_and_no_gate():
    assert is_baseline(make_manifest().identity)
    assert is_baseline(make_manifest(cells=False, label="whole").identity)
    assert not is_baseline(gated("baseline", CAREFUL, method="baseline"))
    for change in ({"rule": {"name": "threshold"}}, {"forward": {"cache": "prefix"}}):
        assert not is_baseline(make_manifest(**change).identity)


def test_conditions_are_all_of_an_identity_but_the_method_and_what_is_kept():
    base = make_manifest().identity
    assert conditions(base) == conditions(gated("c4", CAREFUL) | {"cells": False})
    for name in ("task", "model", "seed", "shape", "batch", "source", "end_ids"):
        assert conditions(base) != conditions(base | {name: "another"})
