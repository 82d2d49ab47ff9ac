"""c4 decodes as the programs that the methods' authors published."""

from collections import Counter

import pytest
from authors import fate, read_lines


def kinds():
    """The lines by method and settings, task and block."""
    found = {}
    for line in read_lines():
        settings = ",".join(f"{name}={value}" for name, value in line["settings"].items())
        key = f"{line['method']} {settings} {line.get('task', 'dream')} {line['block']}"
        found.setdefault(key, []).append(line)
    return found


KINDS = kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_the_authors_decodes_are_reproduced(kind):
    assert fate(KINDS[kind][0]) == "exact"


@pytest.mark.slow
def test_every_line_is_reproduced_and_four_with_the_authors_ties():
    fates = Counter(fate(line) for lines in KINDS.values() for line in lines)
    assert fates == {"exact": 1344, "ties": 4}


def test_a_tie_that_is_broken_otherwise_is_told_from_a_difference():
    assert fate(KINDS["cvee  gsm8k 9"][6]) == "ties"


def test_a_different_decode_is_noticed():
    line = next(read_lines())
    for change in ({"passes": line["passes"] + 1}, {"final_ids": [*line["final_ids"][:-1], 1]}):
        assert fate(line | change) == "differs"
