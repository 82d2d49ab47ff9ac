"""What plug-ins are made from: no two are taken for one, and no edit goes unnoticed."""

import importlib
import sys

import pytest

from c4.errors import ConfigError
from c4.gates import make_gate
from c4.gates.own_signals import find_signal, own_signals
from c4.gates.registry import find_gate
from c4.lm_eval._filters import FilterExtractor, Regex
from c4.plugins import definition
from c4.tasks import TASKS

GATE = "{before}class Calm:\n    def fires(self, s):\n        return s.run >= LEVEL\n"
FACTORY = """
from dataclasses import dataclass

def make(level):
    def flux(s, cells):
        return s.run * 0 + level
    return flux

low, high = make(0.1), make(0.9)
pair = [lambda s, cells: s.run, lambda s, cells: s.run]

@dataclass(frozen=True)
class Level:
    level: float
    def __call__(self, s, cells):
        return s.run * 0 + self.level

class Loose:
    def __call__(self, s, cells):
        return s.run

levels = [Level(0.1), Level(0.9), Loose(), Loose()]
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A module whose callables share their names."""
    (tmp_path / "factories.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("factories")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hash_of(name):
    """The hash of a gate as a new process finds it."""
    for loaded in [key for key in sys.modules if key.startswith(("c4_plugin_", "my_", "own_"))]:
        del sys.modules[loaded]
    importlib.invalidate_caches()
    return find_gate(name).source_sha256


def test_no_two_callables_of_one_name_are_taken_for_one(made):
    several = [made.low, made.high, *made.pair, *made.levels]
    assert len({definition(one) for one in several}) == len(several)
    with pytest.raises(ConfigError, match="gates would call both flux and flux flux"):
        own_signals([], [made.low, made.high])
    with pytest.raises(ConfigError, match="rename one of them"):
        own_signals([], made.levels[:2])


def test_a_callable_that_can_be_told_apart_is_the_same_again(made):
    assert definition(made.make) == definition(made.make)
    assert definition(made.levels[0]) == definition(made.Level(0.1))
    for one in (made.low, made.pair[0], made.Loose()):  # what they hold is not known
        assert definition(one) != definition(one)


@pytest.mark.parametrize("name", TASKS)
def test_how_c4_s_own_tasks_are_read_can_be_kept(name):
    task = TASKS[name]
    for reader in (task.extract, task.plain, task.read):
        assert definition(reader) == definition(reader)


@pytest.mark.parametrize(
    ("helper", "before"),
    [
        ("my_help.py", "from my_help import LEVEL\n"),
        ("my_help.py", "import my_help\nLEVEL = my_help.LEVEL\n"),
        ("own_helps/levels.py", "from own_helps.levels import LEVEL\n"),
    ],
)
@pytest.mark.parametrize("name", ["my_gates.py:Calm", "my_gates:Calm"])
def test_an_edit_of_a_module_beside_it_is_an_edit(folder, monkeypatch, name, helper, before):
    monkeypatch.syspath_prepend(folder)
    (folder / helper).parent.mkdir(exist_ok=True)
    (folder / "my_gates.py").write_text(GATE.format(before=before))
    (folder / helper).write_text("LEVEL = 3\n")
    first = hash_of(name)
    assert hash_of(name) == first
    (folder / helper).write_text("LEVEL = 30\n")
    assert hash_of(name) != first


def test_a_helper_s_helper_counts_too_and_a_stranger_does_not(folder):
    (folder / "my_gates.py").write_text(GATE.format(before="from my_help import LEVEL\n"))
    (folder / "my_help.py").write_text("from my_deep import LEVEL\n")
    (folder / "my_deep.py").write_text("def later():\n    import my_help\n\nLEVEL = 3\n")
    (folder / "my_other.py").write_text("LEVEL = 5\n")
    first = hash_of("my_gates.py:Calm")
    (folder / "my_other.py").write_text("LEVEL = 6\n")
    assert hash_of("my_gates.py:Calm") == first
    (folder / "my_deep.py").write_text("def later():\n    import my_help\n\nLEVEL = 4\n")
    assert hash_of("my_gates.py:Calm") != first


def test_modules_of_a_package_count_however_they_are_imported(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    inside = folder / "own_gates"
    inside.mkdir()
    (inside / "__init__.py").write_text("")
    for line in ("from .levels import LEVEL\n", "from own_gates.levels import LEVEL\n"):
        (inside / "kinds.py").write_text(GATE.format(before=line))
        (inside / "levels.py").write_text("LEVEL = 3\n")
        first = hash_of("own_gates.kinds:Calm")
        (inside / "levels.py").write_text("LEVEL = 30\n")
        assert hash_of("own_gates.kinds:Calm") != first


def test_what_is_installed_beside_a_plug_in_is_not_its_own(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    (site / "my_gates.py").write_text(GATE.format(before="from my_help import LEVEL\n"))
    (site / "my_help.py").write_text("LEVEL = 3\n")
    first = hash_of("my_gates:Calm")
    (site / "my_help.py").write_text("LEVEL = 30\n")
    assert hash_of("my_gates:Calm") == first


def test_signals_of_files_keep_their_name_and_hash(folder):
    (folder / "my_signals.py").write_text("def flux(s, cells):\n    return s.run\n")
    found = find_signal("my_signals.py:flux")
    assert found.name == "flux"
    assert found.definition == find_signal(found.compute).definition


@pytest.mark.parametrize("parameter", ["name", "reading", "ending", "source_sha256"])
def test_parameters_that_would_hide_an_identity_are_refused(folder, parameter):
    (folder / "my_gates.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Calm:\n"
        f"    {parameter}: float = 3\n    def fires(self, s):\n        return s.run >= 3\n"
    )
    with pytest.raises(ConfigError, match=f"a parameter named {parameter}, which means something"):
        make_gate("my_gates.py:Calm")


def test_a_filter_of_the_harness_is_known_by_what_it_says():
    first, same, other = (
        FilterExtractor("t", "f", "0.4.13", (step,), ("\n",), 1, (Regex(step, 0, "[invalid]"),))
        for step in ("a+", "a+", "b+")
    )
    assert definition(first) == definition(same) != definition(other)
