"""How many examples may be decoded together, and how many an earlier session did."""

from typing import TYPE_CHECKING

from c4.decode.forward import Cache
from c4.errors import ConfigError, RunError
from c4.store.labels import BASELINE
from c4.store.manifest import conditions, read_manifest
from c4.store.storage import list_folders

if TYPE_CHECKING:
    from c4.record.plan import Plan


def recorded_batch(plan: "Plan") -> int | None:
    """The batch of the run if it exists, else of a run that it may be compared with, if any.

    The baseline's comes first: with another batch, a method could not be compared with it.
    """
    own, wanted = plan.folder, conditions(plan.identity)
    baseline = own.with_name(f"method={BASELINE}")
    folders = dict.fromkeys([own, baseline, *list_folders(own.parent)])
    for folder in folders:
        try:
            recorded = read_manifest(folder).identity
        except RunError:
            continue
        alike = all(recorded.get(key) == value for key, value in wanted.items())
        if (folder == own and not plan.config.fresh) or (folder != own and alike):
            return int(recorded["batch"])
    return None


def check_can_batch(plan: "Plan") -> None:
    """Refuse what can only be decoded one example at a time."""
    if plan.method.forward.cache is not Cache.OFF:
        raise ConfigError(
            f"{plan.method.label} keeps keys and values (forward.cache={plan.method.forward.cache}"
            "), which a batch cannot: its sequences are at different blocks; give --batch 1"
        )
    if not plan.checkpoint.native:
        raise ConfigError(
            f"{plan.checkpoint.name} is a masked language model of type "
            f"{plan.checkpoint.model_type}, which has positions and attention of its own kind "
            "that padding would change; LLaDA and Dream can be decoded in batches, this with "
            "--batch 1"
        )
