"""Workers, nodes and coordinators killed at random instants, on every engine.

    python benchmarks/kill_engines.py [--engine local] [--kills 20] [--n 30] [--out FOLDER]

For `local`, `ray` (two nodes in one cluster on this machine) and `slurm` (submitit's local
executor): a recording by three workers is disturbed until as many kills have struck as were asked
for. Each is a SIGKILL to a worker that holds a claim, to the coordinator, or, with Ray, the removal
of a node with everything on it. Whenever the coordinator has ended, it is started again until the
run is complete. Then one more recording is resumed by 1, 3 and 2 workers, each on another engine.
Every recording must end with the bytes of one that a single undisturbed worker made (a clock that
counts replaces the real one), must not decode again what was safe, and must leave neither claims
nor signs of life. Prints counts, and ends with 1 if any of them should be zero and is not.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from counted_job import CountedJob, decoded_again

from c4.errors import C4Error
from c4.record.engines import EngineChoice, Request, Supervisor, Worker, open_engine
from c4.record.plan import RunConfig
from c4.store.claims import Claims, Watch, read_aside
from c4.store.runs import open_run
from c4.store.writer import RunWriter

WORKERS = 3
LEASE = 5.0
PATIENCE = 900.0
"""Seconds after which a run that does not end counts as stuck."""
FAULTS = ("incomplete", "other bytes", "decoded again", "left over", "stuck")


def make_job(out: Path, n: int) -> CountedJob:
    config = RunConfig(task="mmlu", n=n, skip=0, out=out, device="cpu")
    return CountedJob([Request(config)], str(out) + ".log")


def coordinate(spec: dict[str, Any]) -> None:
    """What the process does that starts an engine: it can be killed like any other."""
    job = make_job(Path(spec["out"]), spec["n"])
    (folder,) = job.folders
    if folder.exists():
        with RunWriter(folder) as writer:
            writer.claims.retry_aside()
    slurm = {"cluster": "local", "folder": spec["out"] + ".slurm"}
    choice = EngineChoice(
        spec["engine"],
        spec["workers"],
        "cpu",
        ray_address=spec.get("address"),
        slurm=slurm if spec["engine"] == "slurm" else {},
    )
    with suppress(C4Error):  # too many deaths in a row; whoever watches starts it again
        Supervisor(open_engine(choice), job.for_workers(), lambda: 0).run()


def start_coordinator(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--coordinate", json.dumps(spec)]
    environment = os.environ | {
        "C4_LEASE": str(LEASE),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    with open(spec["out"] + ".err", "ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


class Nodes:
    """Two nodes of a Ray cluster in this process's care."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        os.environ |= {"C4_LEASE": str(LEASE), "PYTHONPATH": str(Path(__file__).parent)}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=2) for _ in range(2)]

    def kill_one(self, rng: random.Random) -> None:
        node = self.nodes.pop(rng.randrange(len(self.nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=2))


def busy_workers(folder: Path) -> list[int]:
    """The processes that hold a claim now."""
    signs = Watch(folder, LEASE).signs()
    owners = set()
    for owner in folder.glob("claims/*/owner"):
        with suppress(OSError):
            owners.add(owner.read_text(encoding="utf-8"))
    marks = [sign.process.split(":")[-2] for name, sign in signs.items() if name in owners]
    return [int(mark) for mark in marks]


def disturb(engine: str, out: Path, n: int, kills: int, rng: random.Random) -> Counter[str]:
    """A recording under fire."""
    found: Counter[str] = Counter()
    spec: dict[str, Any] = {"engine": engine, "out": str(out), "n": n, "workers": WORKERS}
    nodes = Nodes() if engine == "ray" else None
    if nodes:
        spec["address"] = nodes.cluster.address
    (folder,) = make_job(out, n).folders
    coordinator, began = start_coordinator(spec), time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if coordinator.poll() is not None:
            if complete(folder, n):
                break
            coordinator = start_coordinator(spec)
        time.sleep(rng.uniform(0.2, 1.5))
        if found["kills"] < kills:
            found += strike(folder, coordinator, nodes, found["kills"], rng)
    else:
        found["stuck"] += 1
        coordinator.kill()
    if nodes:
        nodes.cluster.shutdown()
    return found + look_after(folder, n, str(out) + ".log")


def strike(
    folder: Path,
    coordinator: subprocess.Popen[bytes],
    nodes: Nodes | None,
    struck: int,
    rng: random.Random,
) -> Counter[str]:
    """Kill something, if there is anything worth it: a coordinator or a node every fifth time."""
    victims = busy_workers(folder)
    if not victims or coordinator.poll() is not None:
        return Counter()
    others = ["coordinator", "node"] if nodes else ["coordinator"]
    what = others[struck // 5 % len(others)] if struck % 5 == 4 else "worker"
    if what == "node" and nodes:
        nodes.kill_one(rng)
    elif what == "coordinator":
        coordinator.kill()
        coordinator.wait()
    else:
        with suppress(ProcessLookupError):
            os.kill(rng.choice(victims), signal.SIGKILL)
    return Counter({"kills": 1, what: 1})


def complete(folder: Path, n: int) -> bool:
    with suppress(C4Error, FileNotFoundError):
        return len(open_run(folder)) == n and not list(folder.glob("pending/*"))
    return False


def look_after(folder: Path, n: int, log: str) -> Counter[str]:
    """What is wrong with a run that ought to be complete."""
    found: Counter[str] = Counter()
    found["incomplete"] += not complete(folder, n)
    found["decoded again"] += decoded_again(log)
    found["set aside"] += len(read_aside(folder))
    deadline = time.monotonic() + 3 * LEASE
    while (left := leftovers(folder)) and time.monotonic() < deadline:
        time.sleep(0.5)  # workers whose coordinator was killed may be about to leave
        with Claims(folder, lease=LEASE) as claims:
            claims.finished = True
    found["left over"] += len(left)
    if left:
        print(f"  left over: {left}", file=sys.stderr)
    return found


def leftovers(folder: Path) -> list[str]:
    names = ("claims", "workers", "aside")
    return [str(p) for name in names for p in folder.glob(f"{name}/*")] + [
        str(path) for path in folder.rglob("*.tmp")
    ]


def parts(folder: Path) -> dict[str, bytes]:
    """Every file but the manifest, which says when and with how many threads the run was begun."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def resume_elsewhere(engines: list[str], out: Path, n: int) -> Counter[str]:
    """A recording stopped twice, and resumed with another number of workers on another engine."""
    (folder,) = make_job(out, n).folders
    for engine, workers, until in zip(engines, (1, 3, 2), (n // 3, 2 * n // 3, n), strict=True):
        spec = {"engine": engine, "out": str(out), "n": n, "workers": workers}
        coordinator, began = start_coordinator(spec), time.monotonic()
        while coordinator.poll() is None and time.monotonic() - began < PATIENCE:
            time.sleep(0.3)
            with suppress(C4Error, FileNotFoundError):
                if until < n and len(open_run(folder)) >= until:
                    coordinator.send_signal(signal.SIGINT)
                    break
        coordinator.wait()
    return look_after(folder, n, str(out) + ".log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["local", "ray", "slurm"], help="Only this one.")
    parser.add_argument("--kills", type=int, default=20, help="Kills of every engine.")
    parser.add_argument("--n", type=int, default=30, help="Trajectories of a recording.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="Only the change of engines.")
    parser.add_argument("--coordinate", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.coordinate:
        coordinate(json.loads(options.coordinate))
        return
    rng, total = random.Random(options.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        serial = make_job(root / "serial", options.n)
        serial.for_workers().work(Worker("serial", device="cpu"))
        expected = parts(serial.folders[0])
        engines = [options.engine] if options.engine else ["local", "ray", "slurm"]
        for engine in [] if options.resume else engines:
            out = root / engine
            found = disturb(engine, out, options.n, options.kills, rng)
            found["other bytes"] += parts(make_job(out, options.n).folders[0]) != expected
            report(f"{engine}, folder", found)
            total += found
        if options.resume or not options.engine:
            order = ["local", "slurm", "ray"]
            out = root / "resumed"
            found = resume_elsewhere(order, out, options.n)
            found["other bytes"] += parts(make_job(out, options.n).folders[0]) != expected
            report("1 → 3 → 2 workers: " + ", ".join(order), found)
            total += found
    report("all", total)
    sys.exit(any(total[fault] for fault in FAULTS))


def report(name: str, found: Counter[str]) -> None:
    struck = ", ".join(f"{found[what]} {what}s" for what in ("worker", "coordinator", "node"))
    wrong = ", ".join(f"{found[fault]} {fault}" for fault in FAULTS)
    print(f"{name}: {found['kills']} kills ({struck}); {wrong}", flush=True)


if __name__ == "__main__":
    main()
