"""Entry point of `python -m c4.cli`."""

from c4.cli import main

main()
