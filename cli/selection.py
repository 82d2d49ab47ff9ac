"""Runs and gates that a user chose by options, and the error where there are none."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from c4.errors import RunError

if TYPE_CHECKING:
    from c4.gates.calibrations import FrozenSetting
    from c4.gates.gate import Gate
    from c4.replay.selection import GateChoice
    from c4.store.runs import Run
    from c4.tasks import AnswerReading, Task


def find_chosen_recordings(
    root: PurePath,
    tasks: Sequence[str] | None,
    model: str | None,
    reading: "AnswerReading",
) -> "list[Run]":
    """The recordings of some tasks below a folder, opened under one reading."""
    from c4.store.runs import find_recorded_tasks, find_recordings

    if root.suffix == ".parquet":
        from c4.analysis.exchange.imports import refuse_imported

        refuse_imported(root)
    named = find_recorded_tasks(tasks or (), root)  # refuses a misspelled name
    typed = {task.name: name for name, task in named.items()}
    found = find_recordings(root, reading, list(named.values()))
    runs = [run for run in found if model is None or run.model == model]
    missing = typed.keys() - {run.task_name for run in runs}
    if missing or not runs:
        task = typed[min(missing)] if missing else "math"
        what = f"no recording of {task}" if missing else "no recordings"
        raise RunError(
            f"{what} below {root}: c4 record --task {task} --out {root}; or name the folder of a "
            f"single run that was made with c4 run --cells --task {task} --method NAME"
        )
    return runs


def choose_gates(
    names: Sequence[str],
    settings: Sequence[str] | None,
    task: "Task",
    frozen: "FrozenSetting | None" = None,
) -> "dict[str, Gate]":
    """Gates by name, with the paper's settings for the task, the user's, or frozen ones."""
    from c4.record.methods import refuse_sampler
    from c4.replay.selection import GateChoice

    for name in names:
        refuse_sampler(name, task.name)
    return GateChoice(names, settings or (), [frozen] if frozen else ()).gates(task.family)


def compared_gates(
    names: Sequence[str], settings: Sequence[str] | None, configs: Sequence[PurePath] | None
) -> "GateChoice":
    """Gates shown side by side: each as it is, with the user's settings, and frozen ones."""
    from c4.gates.calibrations import load_calibration
    from c4.gates.registry import GATES
    from c4.record.methods import refuse_sampler
    from c4.replay.selection import GateChoice

    for name in names:
        refuse_sampler(name)
    frozen = [load_calibration(path) for path in configs or ()]
    known = [setting.gate for setting in frozen if setting.gate in GATES]
    return GateChoice(tuple(dict.fromkeys([*names, *known])), settings or (), frozen, beside=True)


def require_one_reading(configs: Sequence[PurePath] | None) -> PurePath | None:
    """The first of some calibrations; all must have been made under the same reading."""
    from c4.gates.calibrations import load_calibration

    if not configs:
        return None
    first, *others = configs
    for other in others:
        load_calibration(other).check_reading(load_calibration(first).reading)
    return first


def require_folder(place: PurePath) -> None:
    """Refuse a folder that does not exist, where "nothing found" would sound like good news."""
    from c4.store.runs import refuse_file
    from c4.store.storage import folder_exists

    refuse_file(place)
    if not folder_exists(place):
        raise RunError(f"{place}: no such folder")


def nothing_found(place: PurePath, wanted: str) -> RunError:
    """The error where a folder holds nothing that is wanted, or does not exist.

    Args:
        wanted: what to say of a folder that exists, such as `nothing below runs to draw from`.
    """
    from c4.store.storage import file_exists, folder_exists

    start = "start with: c4 record --task math"
    if folder_exists(place) or file_exists(place):
        return RunError(f"{wanted}; {start}")
    if place.suffix == ".parquet":  # the suffix of the file that `c4 import` writes
        return RunError(f"{place}: no such file")
    return RunError(f"{place}: no such folder; {start}")
