"""`python -m c4.cli`."""

from c4.cli._app import main

main()
