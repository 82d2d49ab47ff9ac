"""The grammar of labels, and what two runs must share to be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import make_manifest

from c4.errors import ConfigError
from c4.store.labels import (
    Change,
    Label,
    frozen_label,
    label_under,
    method_name,
    parse_settings,
    reading_changes,
    split_labels,
)
from c4.store.manifest import conditions, is_baseline
from c4.tasks import AnswerReading, Ending, ReadingStyle

CHANGED_H = Change(None, "H", "1")
CAREFUL = AnswerReading()
PLAIN = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)


def test_labels_in_one_text_are_told_apart():
    labels = ["prophet", "cvee,tau=0.8,cvee.p_min=3", "cvee (c.json)", "a.py:B,x=1", "c4,H=2"]
    assert split_labels(",".join(labels)) == labels
    assert split_labels("") == []


@pytest.mark.parametrize(
    ("label", "name", "plain"),
    [("c4", "c4", True), ("c4,H=2", "c4", False), ("wino+cvee,tau=0.5,H=1", "wino+cvee", False)],
)
def test_a_label_begins_with_its_method(label, name, plain):
    assert (method_name(label), Label.parse(label).is_plain) == (name, plain)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("c4", Label("c4")),
        ("c4,H=2", Label("c4", (Change(None, "H", "2"),))),
        (
            "c4,cctc.tau=0.8,ending=skip",
            Label("c4", (Change("cctc", "tau", "0.8"), Change(None, "ending", "skip"))),
        ),
        ("my rule,kept=0,2,H=1", Label("my rule", (Change(None, "kept", "0,2"), CHANGED_H))),
        ("c4,my_rules.py:Greedy.tau=1", Label("c4", (Change("my_rules.py:Greedy", "tau", "1"),))),
        ("mine,second try", Label("mine", (Change(None, "second try", None),))),
        ("a=b", Label("a=b")),
        ("", Label("")),
    ],
)
def test_a_label_has_a_method_and_changes(text, label):
    assert Label.parse(text) == label
    assert str(label) == text


@given(st.text(alphabet="c4,.=H2 ()", max_size=20))
def test_any_text_is_a_label_and_is_written_as_it_was(text):
    assert str(Label.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("tau=0.8", Change(None, "tau", "0.8")),
        ("tau=0.5:0.9:0.1", Change(None, "tau", "0.5:0.9:0.1")),
        ("blocks=0,2", Change(None, "blocks", "0,2")),
        ("cvee.tau=.8", Change("cvee", "tau", ".8")),
        ("c4.cvee.tau=1e-3", Change("c4.cvee", "tau", "1e-3")),
        ("my.gates:Calm.nats=0.1", Change("my.gates:Calm", "nats", "0.1")),
    ],
)
def test_a_setting_is_a_change_that_a_user_asks_for(text, setting):
    assert parse_settings([text]) == [setting]


@pytest.mark.parametrize("text", ["tau", "tau=", "=0.8", "cvee.=0.8", "cvee.tau", ""])
def test_a_setting_without_name_or_value_is_refused(text):
    with pytest.raises(ConfigError, match="write NAME=VALUE"):
        parse_settings([text])


def test_a_parameter_is_set_once():
    with pytest.raises(ConfigError, match=r"tau=0\.9: it is given twice, first as tau=0\.8"):
        parse_settings(["tau=0.8", "cvee.tau=0.7", "tau=0.9"])


def test_a_setting_from_a_file_is_of_its_gate():
    assert Label.parse(frozen_label("cvee", "calibration.json")).kind == "cvee"
    assert Label.parse("c4,H=2").kind == "c4"


def test_a_label_names_what_differs_from_the_usual_reading():
    assert reading_changes(CAREFUL, CAREFUL) == ()
    assert [*map(str, reading_changes(PLAIN, CAREFUL))] == ["reading=plain", "ending=skip"]
    assert [*map(str, reading_changes(CAREFUL, PLAIN))] == ["reading=careful", "ending=cut"]


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
