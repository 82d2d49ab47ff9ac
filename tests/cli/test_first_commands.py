"""The first three commands of the README, as a newcomer types them in an empty folder."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from c4.tasks import TASKS
from tests.commands import done

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = (
    "c4 record --task math",
    "c4 calibrate --gamma 2",
    "c4 figures stabilization phase-diagram",
)


def test_the_first_three_commands_work_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TASKS, "math", replace(TASKS["math"], n=6))  # 100 take most of a minute
    recorded, calibrated, drawn = (done(*line.split()[1:]).stdout for line in COMMANDS)
    assert recorded.startswith("math on tiny (source=embedded): 6 trajectories, accuracy ")
    assert calibrated.startswith(
        "math: no example set aside for calibration is recorded; chosen on the first 2 of 6 "
        "(40 to 41), 4 held out\npool: math 2; 160 settings of cvee\nchosen: {'tau': "
    )
    assert calibrated.endswith(
        "frozen in calibration.json; tables and figures count what it was chosen on as pool for "
        "every method: 2 of math\n"
    )
    assert drawn.endswith("left out because calibration may have seen them: 2 of math\n")
    for name in ("stabilization", "phase-diagram"):
        assert (tmp_path / "figures-out" / f"{name}.png").stat().st_size > 10_000
        data = pl.read_csv(tmp_path / "figures-out" / f"{name}.csv")
        assert sorted(data["trajectory"].unique()) == list(range(42, 46))


def test_the_readme_begins_with_them():
    section = README.partition("\n## Three uses\n")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\$ (.*)$", section, re.MULTILINE)[:3]) == COMMANDS
