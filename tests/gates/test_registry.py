"""Gates that installed packages offer, good and bad ones."""

import sys

import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import ConfigError
from c4.gates.cvee import CVEE
from c4.gates.registry import make_gate
from c4.plugins import offered

CALM = """
class Calm:
    def fires(self, s):
        return s.step >= 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with entry points where Python finds it."""

    def package(name, module, source, **points):
        monkeypatch.delitem(sys.modules, module, raising=False)  # another test's
        (tmp_path / f"{module}.py").write_text(source)
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[c4.gates]", *lines, ""]))

    monkeypatch.syspath_prepend(tmp_path)
    offered.cache_clear()
    yield package
    offered.cache_clear()


def test_a_package_s_gate_goes_by_its_short_name(install):
    install("calm-gates", "calm_gates", CALM, calm="calm_gates:Calm")
    assert type(make_gate("calm")).__name__ == "Calm"
    with pytest.raises(ConfigError, match="did you mean calm"):
        make_gate("clam")


@pytest.mark.parametrize(
    ("source", "value", "message"),
    [
        ("import no_such_library", "broken_gates:Calm", "No module named 'no_such_library'"),
        ("raise RuntimeError('no GPU')", "broken_gates:Calm", "RuntimeError: no GPU"),
        ("class Calm(:", "broken_gates:Calm", "SyntaxError"),
        (CALM, "broken_gates:Clam", "has no attribute 'Clam'"),
    ],
)
def test_a_broken_package_is_named_and_stops_no_other_gate(install, source, value, message):
    install("broken-gates", "broken_gates", source, broken=value)
    install("calm-gates", "calm_gates", CALM, calm="calm_gates:Calm")
    assert make_gate("cvee") == CVEE()
    assert type(make_gate("calm")).__name__ == "Calm"
    with pytest.raises(ConfigError) as refused:
        make_gate("broken")
    assert "the package broken-gates offers as" in str(refused.value)
    assert message in str(refused.value)


def test_a_broken_package_is_one_line_on_the_command_line(install):
    install("broken-gates", "broken_gates", "1 / 0", broken="broken_gates:Calm")
    result = CliRunner().invoke(app, ["verify", "--task", "mmlu", "--gate", "broken"])
    assert result.exit_code == 2
    assert "the package broken-gates offers as broken_gates:Calm" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_package_cannot_take_the_place_of_c4_s_own_gate_unnoticed(install, caplog):
    install("calm-gates", "calm_gates", CALM, cvee="calm_gates:Calm")
    assert make_gate("cvee") == CVEE()
    assert "the package calm-gates offers a gate named cvee, which is c4's own" in caplog.text
    assert "--gate calm_gates:Calm" in caplog.text
    caplog.clear()
    make_gate("cvee")
    assert not caplog.text  # once is enough
