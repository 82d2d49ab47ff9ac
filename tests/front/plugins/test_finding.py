"""Finding objects by name: c4's own, those of packages, and those of a user's files."""

import sys

import pytest

from c4.errors import ConfigError, did_you_mean
from c4.plugins import Registry, canonical_name
from c4.record.methods import find_method
from c4.tasks import find_task

OWN = {"calm": 1, "wild": 2}
REGISTRY = Registry("toy", "--toy", OWN, example="my_toys:Ball")


@pytest.fixture
def file(tmp_path):
    """Writes a file of a user's own."""

    def write(text, name="my_toys.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_c4_s_own_have_no_source_to_tell_apart():
    found = REGISTRY.find("calm")
    assert (found.name, found.found, found.identity) == ("calm", 1, {})


def test_a_file_goes_by_its_name_wherever_it_stands(file, tmp_path, monkeypatch):
    path = file("BALL = 3")
    monkeypatch.chdir(tmp_path)
    absolute, relative = REGISTRY.find(f"{path}:BALL"), REGISTRY.find("./my_toys.py:BALL")
    assert absolute.found == relative.found == 3
    assert absolute.name == relative.name == "my_toys.py:BALL"
    assert absolute.identity == relative.identity
    assert set(absolute.identity) == {"source_sha256"}


def test_a_file_s_name_may_have_spaces_and_begin_with_a_digit(file):
    assert REGISTRY.find(f"{file('BALL = 3', 'my toys/01 toys-new.py')}:BALL").found == 3


def test_an_edited_file_is_loaded_anew_and_is_another(file):
    first = REGISTRY.find(f"{file('BALL = 3')}:BALL")
    second = REGISTRY.find(f"{file('BALL = 4')}:BALL")
    assert (first.found, second.found) == (3, 4)
    assert first.source_sha256 != second.source_sha256


def test_a_file_may_import_what_stands_beside_it(file):
    file("SIZE = 5", "size_of_toys.py")
    assert REGISTRY.find(f"{file('from size_of_toys import SIZE')}:SIZE").found == 5


def test_what_defines_an_object_belongs_to_its_source(file):
    path = file("from base_of_toys import Ball", "my_toys.py")
    file("class Ball: pass", "base_of_toys.py")
    found = REGISTRY.find(f"{path}:Ball")
    file("class Ball: size = 1", "base_of_toys.py")
    same = REGISTRY.find(f"{path}:Ball")  # what is loaded is still the class as it was
    assert same == found
    for name in [n for n in sys.modules if n == "base_of_toys" or n.startswith("c4_plugin_")]:
        del sys.modules[name]  # as in a new process
    assert REGISTRY.find(f"{path}:Ball").source_sha256 != found.source_sha256


def test_two_files_of_one_name_are_not_mistaken_for_each_other(file):
    one, other = file("BALL = 1", "a/toys.py"), file("BALL = 1", "b/toys.py")
    with pytest.raises(ConfigError, match=r"would both go by toys\.py:BALL; rename one"):
        REGISTRY.by_canonical_name([f"{one}:BALL", f"{other}:BALL"])
    assert list(REGISTRY.by_canonical_name(["calm", f"{one}:BALL"])) == ["calm", "toys.py:BALL"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clam", "no toy named 'clam'; did you mean calm?"),
        ("CALM", "did you mean calm?"),
        ("there_is_none.py:X", "there_is_none.py: cannot be read (there is no such file"),
        ("a,b.py:X", "write module:object"),
        ("a=b.py:X", "write module:object"),
        ("folder/file.txt:X", "write module:object"),
        ("my_toys.py:", "write module:object"),
        ("/dev/zero.py:X", "cannot be read"),
    ],
)
def test_what_cannot_be_found_is_said(name, message):
    with pytest.raises(ConfigError) as refused:
        REGISTRY.find(name)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (my_toys.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("class X(:", "SyntaxError"),
        ("import no_such", "No module named 'no_such'; install no_such, or repair the file"),
        ("from json import nothing", "cannot import name 'nothing'"),
        ("def X2(): ...\ndef X3(): ...", "did you mean X3 or X2?"),
        ("def ball(): ...\ndef cube(): ...", "no toy named 'X'; it defines ball, cube"),
        ("Y = 1", "my_toys.py has no toy named 'X'; it defines Y"),
    ],
)
def test_a_broken_file_says_what_is_broken(file, source, message):
    with pytest.raises(ConfigError) as refused:
        REGISTRY.find(f"{file(source)}:X")
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["my_toys", "my_toys.py"])
def test_a_file_without_its_object_is_answered_with_what_it_defines(file, monkeypatch, name):
    source = "import json\n_kept = 1\nclass Ball: ...\ndef roll(): ...\n1 / 0"
    monkeypatch.chdir(file(source).parent)
    lists = r"as in my_toys\.py:Ball \(my_toys\.py defines Ball, roll\)$"
    with pytest.raises(ConfigError, match=rf"no toy named '{name}'; .*{lists}"):
        REGISTRY.find(name)
    for find, noun in ((find_task, "task"), (find_method, "method")):
        with pytest.raises(ConfigError, match=rf"no {noun} named '{name}'; .*{lists}"):
            find(name)
    for pair, noun in ((f"wino+{name}", "gate"), (f"{name}+cvee", "rule")):
        with pytest.raises(ConfigError, match=rf"no {noun} named '{name}'; .*{lists}"):
            find_method(pair)


def test_names_are_short_and_mistypes_are_found():
    assert canonical_name("../x/my_toys.py:Ball") == "my_toys.py:Ball"
    assert canonical_name("my_toys:Ball") == "my_toys:Ball"
    assert did_you_mean("h", ["H", "tau"]) == "did you mean H?"
    assert did_you_mean("tua", ["H", "tau"]) == "did you mean tau?"
