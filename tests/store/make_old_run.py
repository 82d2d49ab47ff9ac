"""Make the runs that later versions must go on reading.

    python tests/store/make_old_run.py tests/data/runs/v3

Three examples of the embedded model, recorded and decoded by C⁴, and what is read off them. For a
new format, or while the present one is not released: a released run is never made again.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from test_old_runs import said

EXAMPLES = ["--task", "mmlu", "--n", "3"]


def main(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    for command in (["record"], ["run", "--method", "c4"]):
        subprocess.run(["c4", *command, *EXAMPLES, "--out", str(out)], check=True)
    for folder in (*out.rglob("pending"), *out.rglob("signals")):
        shutil.rmtree(folder)
    said_now = shutil.copytree(out, out.with_name("scratch"))
    (out / "said.json").write_text(json.dumps(said(said_now), indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(said_now)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
