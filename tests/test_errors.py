import pytest

from c4.errors import ConfigError, unknown_name


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
