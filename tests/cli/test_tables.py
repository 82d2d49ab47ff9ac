"""What the terminal shows is what was meant."""

import pytest

from c4.cli.output import show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "a[/b]"])
def test_brackets_in_a_name_are_letters_like_any_other(name, capsys):
    table = new_table("method")
    table.add_row(name)
    show(table)
    assert name in capsys.readouterr().out
    with status(f"loading {name}") as say:
        say(name)
    with progress(name, total=1) as advance:
        advance(name)
