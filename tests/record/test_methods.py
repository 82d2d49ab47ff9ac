"""Methods by name: the paper's settings, the user's, and a calibration's."""

import json
import math

import pytest

from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.errors import ConfigError, NotReplayable
from c4.gates.registry import GATES
from c4.record.methods import METHODS, refuse_sampler
from c4.record.settings import MethodChoice, resolve_methods
from c4.tasks import TASKS
from tests.store.made import write_calibration


def resolve(method, *settings, task="gsm8k", shift=False, **options):
    choice = MethodChoice([method], settings, **options)
    return resolve_methods(choice, TASKS[task], shift=shift)[0]


@pytest.mark.parametrize(
    ("task", "shift", "tau", "epsilon"),
    [
        ("mmlu", False, 0.7, 0.015),
        ("truthfulqa", False, 0.7, 0.015),
        ("gsm8k", False, 0.6, 0.015),
        ("math", True, 0.6, 0.015),
        ("humaneval", False, 0.9, 0.01),
        ("mbpp", False, 0.7, 0.01),
        ("humaneval", True, 0.8, 0.001),
        ("mbpp", True, 0.9, 0.001),
    ],
)
def test_klass_has_the_paper_s_settings(task, shift, tau, epsilon):
    assert resolve("klass", task=task, shift=shift).rule == KLASS(tau=tau, epsilon=epsilon)


@pytest.mark.parametrize(
    ("task", "tau"),
    [("mmlu", 0.5), ("gsm8k", 0.6), ("math", 0.7), ("humaneval", 0.7), ("mbpp", 0.8)],
)
def test_wino_has_the_paper_s_settings(task, tau):
    for method in ("wino", "wino+cvee"):
        assert resolve(method, task=task).rule == WINO(tau=tau, tau_back=0.9)


TABLE_3 = {  # by family; KLASS and WINO have tests of their own
    "letters": ((7.5, 5.0, 2.5), "cosine", 0),
    "long_reasoning": ((8.0, 5.0, 3.5), "linear", 4),
    "code": ((7.5, 5.0, 4.5), "cosine", 4),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_the_paper_s_settings_under_every_method(task):
    (high, mid, low), curve, patience = TABLE_3[TASKS[task].family]
    methods = resolve_methods(MethodChoice(list(METHODS)), TASKS[task])
    gates = {method.label: method.gate_settings for method in methods}
    rules = {method.label: method.rule for method in methods}
    assert list(rules) == list(METHODS)
    assert gates["prophet"] == {"high": high, "mid": mid, "low": low}
    sched = {"high": high, "low": low, "curve": curve, "patience": patience}
    assert sched.items() <= gates["sched"].items()
    assert gates["confidence"] == {"tau": 0.7}
    assert gates["stability"] == {"gamma": 2.0, "p_min": 3}
    assert gates["fixed-patience"] == {"tau": 0.7, "p_min": 3}
    for name in ("cvee", "cctc-core", "cctc", "c4", "wino+cvee"):
        assert gates[name] == {"tau": 0.7, "gamma": 2.0, "p_min": 3}
    # The ladder: each rung adds one thing.
    assert rules["cctc-core"] == CCTC(confirm=False, blocks="not-last")
    assert rules["cctc"] == CCTC(blocks="not-last")
    assert rules["c4"] == CCTC(tau=0.8, H=1, confirm=True, blocks="all")
    assert rules["fast-dllm"] == Threshold(tau=0.9)
    assert rules["slowfast"] == SlowFast(explore=6, tau_span=0.3, tau=0.9, spread=1.0)
    for name in ("baseline", "prophet", "sched", "confidence", "stability", "fixed-patience"):
        assert rules[name] == Schedule()


def is_sampler(name):
    try:
        refuse_sampler(name)
    except NotReplayable as refused:
        return f"c4 run --method {name} --task TASK;" in str(refused)
    return False


def test_every_gate_of_the_table_exists_and_every_sampler_is_refused_on_replay():
    assert {method.gate for method in METHODS.values()} - {None} <= GATES.keys()
    assert set(filter(is_sampler, METHODS)) == {
        "cctc-core",
        "cctc",
        "c4",
        "fast-dllm",
        "klass",
        "slowfast",
        "wino",
        "wino+cvee",
    }


@pytest.mark.parametrize(
    ("method", "settings", "label"),
    [
        ("c4", ["H=2"], "c4,H=2"),
        ("c4", ["c4.H=inf"], "c4,H=inf"),
        ("c4", ["cctc.tau=0.9"], "c4,cctc.tau=0.9"),
        ("c4", ["cvee.tau=0.5", "c4.cctc.tau=0.6"], "c4,cctc.tau=0.6,cvee.tau=0.5"),
        ("c4", ["confirm=off", "blocks=0,2"], "c4,confirm=false,blocks=0,2"),
        ("c4", ["H=1", "cvee.tau=0.7"], "c4"),
        ("sched", ["curve=linear", "patience=2"], "sched,patience=2"),
        ("wino+cvee", ["p_min=8", "gamma=4"], "wino+cvee,gamma=4,p_min=8"),
        ("fast-dllm", ["tau=0.8"], "fast-dllm,tau=0.8"),
        ("slowfast", ["explore=3"], "slowfast,explore=3"),
    ],
)
def test_a_label_says_what_is_not_the_paper_s(method, settings, label):
    assert resolve(method, *settings).label == label


def test_settings_reach_the_part_they_name():
    c4 = resolve("c4", "cctc.tau=0.9", "cvee.tau=0.5", "H=inf", "stall_valve=off")
    assert c4.rule == CCTC(tau=0.9, H=math.inf, stall_valve=False)
    assert c4.gate_settings["tau"] == 0.5
    assert c4.identity["rule"]["H"] == "inf"
    assert json.loads(json.dumps(c4.identity)) == c4.identity


def test_a_part_s_setting_reaches_every_method_that_has_it_and_a_method_s_only_one():
    choice = MethodChoice(["cctc", "c4", "baseline"], ["cctc.tau=0.9", "c4.H=2"])
    cctc, c4, baseline = resolve_methods(choice, TASKS["math"])
    assert (cctc.rule.tau, cctc.rule.H) == (0.9, 1)
    assert (c4.rule.tau, c4.rule.H) == (0.9, 2)
    assert baseline.label == "baseline"


@pytest.mark.parametrize(
    ("method", "setting", "message"),
    [
        ("c4", "tau=0.5", "c4 has a tau in each of cctc and cvee; write cctc.tau=0.5 or cvee.tau"),
        ("c4", "c4.tau=0.5", "write cctc.tau=0.5 or cvee.tau=0.5"),
        ("c4", "holes=2", "no chosen method takes that; there is cctc.tau, cctc.H"),
        ("c4", "wino.tau=0.5", "no chosen method takes that"),
        ("baseline", "tau=1", "no chosen method takes that; there is forward.cache"),
        ("c4", "H", "write NAME=VALUE"),
        ("c4", "H=", "write NAME=VALUE"),
        ("c4", "H=many", "cctc takes H as a number, not 'many'"),
        ("c4", "H=-1", "CCTC takes H at least 0"),
        ("c4", "confirm=maybe", "cctc takes confirm on or off, not 'maybe'"),
        ("c4", "cvee.tau=2", "CVEE takes tau from 0 to 1"),
        ("klass", "history=2.9", "KLASS takes history a whole number of at least 1, not 2.9"),
        ("klass", "history=inf", "takes history a whole number of at least 1, not inf"),
        ("slowfast", "explore=1.5", "SlowFast takes explore a whole number of at least 1"),
        ("c4", "cache=some", "forward takes cache of off, prefix, dual"),
        ("sched", "curve=round", "sched takes curve of linear, cosine, exponential"),
        ("c4", "h=2", "did you mean H?"),
        ("c4", "cvee.tua=1", "did you mean tau?"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_in_words(method, setting, message):
    with pytest.raises(ConfigError) as caught:
        resolve(method, setting)
    assert message in str(caught.value)


def test_a_calibration_sets_its_gate_and_the_user_has_the_last_word(tmp_path):
    path = write_calibration(tmp_path / "cvee.json", "cvee", tau=0.6, gamma=1.0)
    c4 = resolve("c4", "gamma=3", calibration=path)
    assert c4.gate_settings == {"tau": 0.6, "gamma": 3.0, "p_min": 3}
    assert c4.rule == CCTC()
    assert c4.label == "c4,cvee.tau=0.6,gamma=3"
    with pytest.raises(ConfigError, match="is about cvee, and no chosen method has it"):
        resolve("prophet", calibration=path)


def test_a_label_of_one_s_own_is_for_one_method():
    assert resolve("c4", "H=2", label="loose").label == "loose"
    with pytest.raises(ConfigError, match="names one method; 2 chosen"):
        resolve_methods(MethodChoice(["c4", "cvee"], label="x"), TASKS["math"])


@pytest.mark.parametrize(
    ("method", "settings", "label"),
    [
        ("c4", [], "baseline"),
        ("cvee", [], "c4"),
        ("c4", ["H=2"], "c4"),
        ("c4", ["H=2"], "c4,H=3"),
        ("baseline", [], "c4"),
    ],
)
def test_a_label_cannot_pass_for_what_it_is_not(method, settings, label):
    with pytest.raises(ConfigError, match=f"--label {label} would pass for the method"):
        resolve(method, *settings, label=label)


@pytest.mark.parametrize("label", ["", " ", ".", ".."])
def test_a_label_that_names_nothing_is_refused(label):
    with pytest.raises(ConfigError, match="is no name"):
        resolve_methods(MethodChoice(["c4"], label=label), TASKS["math"])


def test_a_label_may_say_what_is_the_case():
    assert resolve("c4", label="c4").label == "c4"
    assert resolve("c4", "H=2", label="c4,H=2").label == "c4,H=2"


def test_the_baseline_is_what_it_does_and_not_what_it_is_called():
    assert [name for name in METHODS if resolve(name).is_baseline] == ["baseline"]
    assert resolve("baseline", label="full decode").is_baseline


OWN = """
from dataclasses import dataclass
from c4.decode import Choice, Rule, RuleState, most_confident
from c4.gates import parameter

@dataclass(frozen=True)
class One(Rule):
    tau: float = parameter(0.5, high=1.0)
    def start(self):
        return OneState()

class OneState(RuleState):
    def choose(self, step, reading, masked):
        return Choice(most_confident(self.block.open_positions(masked), reading, 1), 0)

@dataclass(frozen=True)
class Calm:
    tau: float = parameter(0.5, high=1.0)
    def fires(self, s):
        return s.confidence >= self.tau
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The folder of a file with a rule and a gate."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "name", "rule", "gate"),
    [
        ("klass+cvee", "klass+cvee", "klass", "cvee"),
        ("fast-dllm+cvee", "fast-dllm+cvee", "threshold", "cvee"),
        ("threshold+cvee", "fast-dllm+cvee", "threshold", "cvee"),
        ("threshold", "fast-dllm", "threshold", None),
        ("baseline+prophet", "prophet", "schedule", "prophet"),
        ("cctc+cvee", "c4", "cctc", "cvee"),
        ("progress", "progress", "schedule", "progress"),
        ("own.py:One", "own.py:One", "own.py:One", None),
        ("./own.py:One", "own.py:One", "own.py:One", None),
        ("own.py:Calm", "own.py:Calm", "schedule", "own.py:Calm"),
        ("wino+own.py:Calm", "wino+own.py:Calm", "wino", "own.py:Calm"),
        ("./own.py:One+own.py:Calm", "own.py:One+own.py:Calm", "own.py:One", "own.py:Calm"),
    ],
)
def test_a_method_is_any_pair_of_a_rule_and_a_gate(own, typed, name, rule, gate):
    method = resolve(typed)
    assert (method.name, method.label) == (name, name)
    assert (method.identity["rule"]["name"], method.gate_name) == (rule, gate)
    assert ("source_sha256" in method.identity["rule"]) == (":" in rule)
    assert gate is None or ("source_sha256" in method.identity["gate"]) == (":" in gate)


def test_a_plus_in_a_path_is_no_pair(own):
    (own / "c++").mkdir()
    (own / "own.py").rename(own / "c++" / "own.py")
    assert resolve("c++/own.py:One+cvee").label == "own.py:One+cvee"
    assert resolve("c++/own.py:Calm").label == "own.py:Calm"


def test_parts_of_a_user_s_own_are_set_by_their_names(own):
    pair = "own.py:One+own.py:Calm"
    for part in ("One", "own.py:One", f"{pair}.One"):
        assert resolve(pair, f"{part}.tau=0.25").label == f"{pair},own.py:One.tau=0.25"
    with pytest.raises(ConfigError, match=r"own\.py:One\.tau=0\.25 or own\.py:Calm"):
        resolve(pair, "tau=0.25")


def test_an_edited_rule_is_another_run(own):
    before = resolve("own.py:One").identity
    (own / "own.py").write_text(OWN + "# edited\n")
    assert resolve("own.py:One").identity["rule"] != before["rule"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("klas+cvee", "no rule named 'klas'; did you mean klass?"),
        ("cvee+klass", "the rule comes first: klass+cvee"),
        ("c4+prophet", "c4 has the gate cvee already; name its rule instead: cctc+prophet"),
        ("c4+prophat", "no rule named 'c4'"),
        ("own.py:OneState", "own.py:OneState is not a commit rule: name a class derived from c4"),
        ("own.py:Calm+cvee", "own.py:Calm is not a commit rule"),
        ("wino+own.py:One", "own.py:One is no gate"),
        ("oracle", "can be replayed over a recording but not run"),
    ],
)
def test_what_is_no_pair_is_refused_in_words(own, typed, message):
    with pytest.raises(ConfigError) as refused:
        resolve(typed)
    assert message in str(refused.value)
