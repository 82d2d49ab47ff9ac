"""The scripts that kill, flip and fail, at a small part of what they do on their own."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("kill_matrix.py", ["--every", "97", "--random", "3", "--job", "record"]),
        ("flip_bytes.py", ["--every", "499"]),
        ("store_faults.py", ["--every", "307", "--job", "record"]),
    ],
)
def test_nothing_is_lost_silent_or_falsely_sound(script, args):
    command = [sys.executable, str(BENCHMARKS / script), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") > 1
