import pytest

from c4.errors import ConfigError, unknown_name
from c4.errors.text import counted, spell_ranges


@pytest.mark.parametrize(
    ("known", "also", "message"),
    [
        (["gsm8k", "math"], "", "no task named 'gsm9k'; did you mean gsm8k?"),
        (["mmlu", "math"], "", "no task named 'gsm9k'; there are mmlu, math"),
        ([], "", "no task named 'gsm9k'; there are none"),
        (["gsm8k"], "or a file", "no task named 'gsm9k'; did you mean gsm8k? (or a file)"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_or_with_all(known, also, message):
    error = unknown_name("task", "gsm9k", known, also)
    assert isinstance(error, ConfigError)
    assert str(error) == message


def test_numbers_are_told_in_words_that_fit():
    assert [counted(n, "trajectory") for n in (1, 2)] == ["1 trajectory", "2 trajectories"]
    assert [counted(n, "run") for n in (0, 1)] == ["0 runs", "1 run"]
    assert spell_ranges([59, 0, 1, 3, 58]) == "0 to 1, 3, 58 to 59"
