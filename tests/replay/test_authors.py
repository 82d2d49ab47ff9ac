"""c4 decodes as the authors' programs did; `benchmarks/bench_authors.py` tries every line."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_authors.py"
EVERY = 6
"""Lines of one kind from which one is decoded here; the script decodes all."""


def load_script():
    spec = importlib.util.spec_from_file_location("bench_authors", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


authors = load_script()


def kinds():
    """The lines by method and settings, task and block."""
    found = {}
    for line in authors.read_lines(authors.AUTHORS):
        settings = ",".join(f"{name}={value}" for name, value in line["settings"].items())
        key = f"{line['method']} {settings} {line.get('task', 'dream')} {line['block']}"
        found.setdefault(key, []).append(line)
    return found


KINDS = kinds()
TIED = "cvee  gsm8k 9"
"""The kind of which a line that is tried here stops elsewhere: c4 breaks a tie differently."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_authors_decodes_are_reproduced(kind):
    (tally,) = authors.compare(iter(KINDS[kind][::EVERY])).values()
    ties = 1 if kind == TIED else 0
    assert (tally.exact, tally.ties) == (tally.lines - ties, ties)


def test_a_different_decode_is_noticed():
    line = next(authors.read_lines(authors.AUTHORS))
    for change in ({"passes": line["passes"] + 1}, {"final_ids": [*line["final_ids"][:-1], 1]}):
        (tally,) = authors.compare(iter([line | change])).values()
        assert tally.differ == 1
