"""`c4 models`."""

import typer

app = typer.Typer(no_args_is_help=True, help="The embedded model and the names of others.")
