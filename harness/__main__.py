"""`python -m c4.lm_eval …` is `lm_eval …` with the model `c4` known to it."""

import sys
from importlib import import_module


def main() -> None:
    """Register the model, and hand over to the harness's own command."""
    import_module("c4.lm_eval._model")
    sys.exit(import_module("lm_eval.__main__").cli_evaluate())


if __name__ == "__main__":
    main()
