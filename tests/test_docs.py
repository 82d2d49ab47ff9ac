"""Documents are test inputs."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from c4.cli._app import app
from c4.record import BENCH, CELLS, LIVE, METHODS, TRAJECTORIES, Origin

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
METHODS_PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_explained_and_in_the_readme(name):
    assert COMMANDS[name].help
    assert f"c4 {name}" in README


@pytest.mark.parametrize("column", [*CELLS.names, *TRAJECTORIES.names, *LIVE.names, *BENCH.names])
def test_every_column_is_documented(column):
    assert f"`{column}`" in FORMAT


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_documented(method):
    assert f"`{method}`" in METHODS_PAGE


@pytest.mark.parametrize("origin", Origin)
def test_every_origin_is_documented(origin):
    assert f"| {origin.value} | `{origin.name}` |" in METHODS_PAGE


@pytest.mark.parametrize("line", re.findall(r"^\$ (c4 .*?)\s*(?:#.*)?$", README, re.MULTILINE))
def test_every_command_line_in_the_readme_parses(line):
    command, *args = line.split()[1:]
    group = COMMANDS[command]
    with group.make_context(command, args, resilient_parsing=False):
        pass


def test_relative_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
