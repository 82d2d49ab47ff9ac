"""A gate that an installed package offers under a name of c4's own."""

import pytest

from c4.gates.cvee import CVEE
from c4.gates.registry import make_gate
from c4.plugins import offered

CALM = """
class Calm:
    def fires(self, s):
        return s.step >= 3
"""


@pytest.fixture
def fresh_offers():
    """Installed packages are looked for anew, before the test and after it."""
    offered.cache_clear()
    yield
    offered.cache_clear()


@pytest.mark.usefixtures("fresh_offers")
def test_a_package_cannot_take_the_place_of_c4_s_own_gate_unnoticed(tmp_path, monkeypatch, caplog):
    (tmp_path / "calm_gates.py").write_text(CALM)
    facts = tmp_path / "calm_gates-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: calm-gates\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[c4.gates]\ncvee = calm_gates:Calm\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert make_gate("cvee") == CVEE()
    assert "the package calm-gates offers a gate named cvee, which is c4's own" in caplog.text
    assert "--gate calm_gates:Calm" in caplog.text
    caplog.clear()
    make_gate("cvee")
    assert not caplog.text  # once is enough
