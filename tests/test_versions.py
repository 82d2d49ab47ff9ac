"""What pyproject.toml claims about versions is what `make oldest` and the lock files install."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
TOOLS = {"coverage", "mypy", "pytest-cov", "ruff"}
"""What `make oldest` does without: it neither lints nor measures."""
NOT_INSTALLED = {"ray"}
"""Extras that are too large to be installed for the tests."""


def requirements(lines):
    return {found.name: found.specifier for found in map(Requirement, lines)}


def pinned(name):
    """The exact version of every package in a requirements file."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    specifiers = requirements(line for line in lines if not line.startswith("#"))
    return {
        name: Version(str(specifier).removeprefix("==")) for name, specifier in specifiers.items()
    }


LIBRARIES = requirements(PROJECT["project"]["dependencies"])
EXTRAS = {
    name: specifier
    for lines in PROJECT["project"]["optional-dependencies"].values()
    for name, specifier in requirements(lines).items()
}
DEVELOPMENT = requirements(PROJECT["dependency-groups"]["dev"])
DECLARED = LIBRARIES | EXTRAS | DEVELOPMENT
LOCKED = pinned("requirements.lock") | pinned("requirements-dev.lock")


@pytest.mark.parametrize("name", sorted(DECLARED.keys() - TOOLS - NOT_INSTALLED - {"torch"}))
def test_the_oldest_version_tried_is_the_oldest_declared(name):
    lowest = Version(str(DECLARED[name]).removeprefix(">="))
    assert pinned("requirements-oldest.txt")[name] == lowest


@pytest.mark.parametrize("name", sorted(DECLARED.keys() - NOT_INSTALLED))
def test_the_locked_version_is_allowed(name):
    assert LOCKED[name] in DECLARED[name]


def test_the_changelog_has_a_section_for_this_version_or_says_what_is_unreleased():
    sections = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert sections[0] == "Unreleased" or sections[0].startswith(PROJECT["project"]["version"])
