"""`python -m c4.lm_eval …` runs `lm_eval …` with the model `c4` registered."""

import sys
from importlib import import_module

from c4.errors import C4Error
from c4.lm_eval import C4LM_HOME, needs_harness


def main() -> None:
    """Register the model and run the harness's own command."""
    try:
        with needs_harness():
            import_module(C4LM_HOME)
        sys.exit(import_module("lm_eval.__main__").cli_evaluate())
    except (C4Error, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != "lm_eval":
            raise
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
