"""Gate selection: turn a user's names, settings and calibrations into gates."""

from collections.abc import Sequence
from dataclasses import dataclass

from c4.errors import ConfigError, did_you_mean
from c4.gates.calibration_files import FrozenSetting
from c4.gates.gate import Gate
from c4.gates.registry import GATES, REGISTRY, gate_fields, make_gate
from c4.plugins import aliases
from c4.store.labels import Change, Label, parse_settings
from c4.tasks import Family

NO_PARAMETERS = "no parameters, which would be the fields of a dataclass"


@dataclass(frozen=True)
class GateChoice:
    """Exit gates that a user named, with the user's settings and calibrated ones."""

    names: Sequence[str]
    """Names as typed; see `c4.plugins`."""
    settings: Sequence[str] = ()
    """Values of `--set`: `tau=0.8` for every gate that has a tau, `cvee.tau=0.8` for one."""
    frozen: Sequence[FrozenSetting] = ()
    """Calibrated settings, each added as a further gate. A calibration of a user's own gate is
    used only if the gate is named, so that name does not also add the uncalibrated gate."""
    beside: bool = False
    """Whether to include the unchanged gate as well if a gate's settings were changed."""

    @property
    def labels(self) -> list[str]:
        """Names of the gates in results: `cvee`, or `cvee,tau=0.8` with a setting changed."""
        return list(self.gates(Family.LETTERS))

    def gates(self, family: Family) -> dict[str, Gate]:
        """Make the gates, by label, with the paper's settings for a family."""
        typed = REGISTRY.by_canonical_name(self.names)
        changes = gate_settings(self.names, self.settings)
        vouched = {setting.gate for setting in self.frozen} - GATES.keys()
        chosen = {}
        for label, name in typed.items():
            if self.beside or not (changes[name] or label in vouched):
                chosen[label] = make_gate(name, family)
            if changes[name]:
                changed = tuple(Change(None, key, value) for key, value in changes[name].items())
                chosen[str(Label(label, changed))] = make_gate(name, family, **changes[name])
        for setting in self.frozen:
            chosen[setting.label] = setting.make(family, self.names)
        return chosen


def require_gate(name: str, task: str = "TASK") -> None:
    """Raise an error for a sampler, which cannot be replayed, saying what to type instead."""
    if name not in GATES:
        from c4.record.methods import refuse_sampler  # slow: imports every commit rule

        refuse_sampler(name, task)


def gate_settings(names: Sequence[str], settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Parse `--set` into each gate's parameters, with values as the user wrote them."""
    known = {name: list(gate_fields(name)) for name in names}
    chosen: dict[str, dict[str, str]] = {name: {} for name in names}
    for setting in parse_settings(settings):
        owned = [name for name in names if setting.part is None or setting.part in aliases(name)]
        takers = [name for name in owned if setting.name in known[name]]
        if not takers:
            have = "; ".join(f"{name}: {', '.join(known[name]) or NO_PARAMETERS}" for name in names)
            near = did_you_mean(setting.name, [key for keys in known.values() for key in keys])
            raise ConfigError(
                f"--set {setting}: no chosen gate takes that{near and f'; {near}'} ({have})"
            )
        for taker in takers:
            chosen[taker][setting.name] = str(setting.value)
    return chosen
