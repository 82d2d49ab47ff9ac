"""Commands as a user types them, called within this process."""

from typer.testing import CliRunner, Result

from c4.cli.app import app


def c4(*words: object) -> Result:
    """What a command returns and prints."""
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: object) -> Result:
    """The same of a command that succeeds."""
    result = c4(*words)
    assert result.exit_code == 0, result.output
    return result


def refused(*words: object) -> str:
    """What a command says, in one line, that ends with exit code 2."""
    result = c4(*words)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())
