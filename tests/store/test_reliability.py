"""The scripts that kill, flip and fail, over all jobs."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("script", ["kill_matrix.py", "flip_bytes.py", "store_faults.py"])
def test_nothing_is_lost_silent_or_falsely_sound(script):
    command = [sys.executable, str(BENCHMARKS / script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") > 1
