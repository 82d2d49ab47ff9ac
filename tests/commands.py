"""Commands as a user types them, called within this process."""

from click.testing import Result
from typer.testing import CliRunner

from c4.cli._app import app


def c4(*words: object) -> Result:
    """What a command returns and prints."""
    return CliRunner().invoke(app, [str(word) for word in words])
