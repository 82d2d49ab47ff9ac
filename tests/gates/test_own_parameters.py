"""Parameters of users' own gates: their types, their bounds, and what is tried of them."""

import pytest

from c4.errors import ConfigError
from c4.gates.registry import checked_gate, make_gate, set_parameters
from c4.replay.grids import make_grid, undirected

TYPED = """
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Literal, Optional
from c4.gates import parameter
if TYPE_CHECKING:
    from nowhere import Unknown

class Mode(StrEnum):
    HARD = "hard"
    SOFT = "soft"

@dataclass(frozen=True)
class Typed:
    window: int = parameter(2, low=1, high=6)
    strict: bool = False
    mode: Mode = Mode.SOFT
    which: Literal["first", "last"] = "first"
    after: Optional[float] = None
    until: float | None = 1.0
    word: str = "run"
    made: int = field(default=1, init=False)

    def fires(self, s):
        return s.run >= self.window

@dataclass(frozen=True)
class Hinted(Typed):
    strict: bool = False
    other: "None | Unknown" = None

@dataclass(frozen=True)
class Plain:
    tau: float = 0.5
    steps: int = 3
    told: float = field(default=0.5, metadata={"low": 0.0, "high": 1.0})

    def fires(self, s):
        return s.run >= self.steps

@dataclass(frozen=True)
class Needs:
    tau: float

    def fires(self, s):
        return s.confidence >= self.tau

class Bare:
    def fires(self, s):
        return s.step > 3
"""


@pytest.fixture(params=["", "from __future__ import annotations\n"], ids=["now", "postponed"])
def file(request, tmp_path):
    """Gates whose annotations are evaluated at once, or kept as texts."""
    path = tmp_path / "my_gates.py"
    path.write_text(request.param + TYPED)
    return path


def test_a_text_becomes_what_the_annotation_names(file):
    texts = {"window": "3", "strict": "off", "mode": "hard", "which": "last", "word": "7"}
    gate = make_gate(f"{file}:Typed", **texts, after="0.5", until="none")
    assert set_parameters(gate) == {
        **{"window": 3, "strict": False, "mode": "hard", "which": "last", "word": "7"},
        **{"after": 0.5, "until": None},
    }
    assert (type(gate.window), type(gate.mode).__name__) == (int, "Mode")
    assert make_gate(f"{file}:Hinted", strict="off").strict is False  # one hint has no meaning


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("window", "2.5", "takes window as a whole number, not '2.5'"),
        ("window", "7", "takes window a whole number from 1 to 6, not 7"),
        ("window", "few", "takes window as a whole number, not 'few'"),
        ("strict", "perhaps", "takes strict on or off, not 'perhaps'"),
        ("mode", "hrd", "takes mode of hard, soft, not 'hrd'"),
        ("which", "none", "takes which of first, last, not 'none'"),
        ("after", "late", "takes after as a number, not 'late'"),
        ("made", "2", "no parameter of .* named 'made'"),
    ],
)
def test_what_a_parameter_cannot_be_is_refused(file, name, text, message):
    with pytest.raises(ConfigError, match=message):
        make_gate(f"{file}:Typed", **{name: text})


def test_a_grid_tries_what_is_declared_and_nothing_beyond_it(file):
    assert make_grid(f"{file}:Typed", {}).values == {"window": [1, 2, 3, 4, 5, 6]}
    assert list(make_grid(f"{file}:Plain", {}).values) == ["told"]
    with pytest.raises(ConfigError, match="takes window a whole number from 1 to 6, not 0"):
        make_grid(f"{file}:Typed", {"window": "0:3:1"})


def test_numbers_that_declare_nothing_are_stricter_the_higher_they_are(file):
    grid = make_grid(f"{file}:Plain", {"steps": "1:3:1", "told": "0.5"})
    assert grid.from_strict_to_loose() == [2, 1, 0]
    assert undirected(grid) == ["steps"]
    assert not undirected(make_grid(f"{file}:Typed", {}))


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("Bare", "nothing to calibrate: parameters are the fields of a dataclass"),
        ("Needs", "the parameter tau of .* has no default; give it one, as in tau: float = 0.5"),
    ],
)
def test_a_gate_without_values_to_try_is_told_what_to_write(file, gate, message):
    with pytest.raises(ConfigError, match=message):
        make_grid(f"{file}:{gate}", {})


MORE = """
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal
from c4.gates import parameter

class Size(IntEnum):
    SMALL = 1
    LARGE = 3

@dataclass(frozen=True)
class More:
    k: Literal[1, 3] = 1
    size: Size = Size.SMALL
    top: float | None = parameter(None, low=0.0, high=1.0)

    def fires(self, s):
        return s.run >= self.k
"""


def test_numbers_of_enumerations_and_none_can_be_tried(tmp_path):
    (tmp_path / "more.py").write_text(MORE)
    name = f"{tmp_path}/more.py:More"
    assert set_parameters(make_gate(name, k="3", size="3", top="none")) == {
        "k": 3, "size": 3, "top": None,
    }  # fmt: skip
    grid = make_grid(name, {"k": "1,3", "size": "1,3", "top": "none,0.5"})
    made = [set_parameters(grid.make(setting)) for setting in grid.settings()]
    assert {one["top"] for one in made} == {None, 0.5}
    with pytest.raises(ConfigError, match="takes top from 0 to 1"):
        make_gate(name, top="2")


def test_a_gate_at_hand_is_held_to_its_bounds(file):
    kind = type(make_gate(f"{file}:Typed"))
    with pytest.raises(ConfigError, match="takes window a whole number from 1 to 6, not 99"):
        checked_gate("it", kind(window=99))
