"""The optional grader `math-verify`: compare two formulas with a computer algebra system.

It evaluates what a model wrote, so it runs in the sandbox, as model-written code does. The sandbox
sees the grader's packages and nothing else.
"""

from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from c4.errors import ConfigError
from c4.tasks.sandbox.run import Limits, Outcome, run_program

PACKAGES = ("math_verify", "latex2sympy2_extended", "sympy", "mpmath", "antlr4")
NEEDS_ITS_VERSION = "antlr4-python3-runtime"
"""The distribution whose version the parser looks up before it starts."""
LONGEST = 4000
"""Number of characters, from the end of an answer, that the grader gets."""
LIMITS = Limits(cpu_seconds=30, wall_seconds=60, memory_bytes=1024 * 2**20)
PROGRAM = """
from math_verify import parse, verify

def agree(gold, text):
    expected, found = (parse(s, parsing_timeout=None) for s in (gold, text))
    return bool(verify(expected, found, timeout_seconds=None))
"""


def compare_formulas(gold: str, text: str, *, unsafe: bool = False) -> Outcome:
    """Run math-verify: a pass if it finds an answer in the text that equals the gold one."""
    tests = f"assert agree({f'${gold}$'!r}, {text[-LONGEST:]!r}) is True"
    return run_program("", PROGRAM, tests, limits=LIMITS, unsafe=unsafe, libraries=libraries())


@cache
def libraries() -> dict[str, Path]:
    """Folders of the packages that math-verify needs; raise with advice if one is missing."""
    try:
        version = metadata.distribution(NEEDS_ITS_VERSION)
    except metadata.PackageNotFoundError:
        raise _missing(NEEDS_ITS_VERSION) from None
    found = {}
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise _missing(name)
        found[name] = Path(next(iter(spec.submodule_search_locations)))
    notes = next((file for file in version.files or () if file.name == "METADATA"), None)
    if notes is not None:
        folder = Path(str(version.locate_file(notes))).parent
        found[folder.name] = folder
    return found


def _missing(package: str) -> ConfigError:
    return ConfigError(
        f"the grader math-verify needs {package}, which is not installed: "
        "pip install 'c4-dlm[math]'"
    )
