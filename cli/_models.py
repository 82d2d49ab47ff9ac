"""`c4 models`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="The models that have a name here.")


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the names that --model takes besides hub ids and folders."""
    from c4.models import ALIASES, EMBEDDED

    models = {EMBEDDED: "ships with c4"} | {name: f"hub: {hub}" for name, hub in ALIASES.items()}
    if as_json:
        typer.echo(json.dumps(models))
        return
    table = Table("--model", "what it is")
    for name, what in models.items():
        table.add_row(name, what)
    Console().print(table)
