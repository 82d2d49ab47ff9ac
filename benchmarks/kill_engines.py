"""Workers, nodes and coordinators killed at random instants, on every engine.

    python benchmarks/kill_engines.py [--engine local] [--storage folder] [--kills 20] [--n 24]

For `local`, `ray` (two nodes in one cluster on this machine) and `slurm` (submitit's local
executor), each on a folder and on an S3 server on loopback: a recording by three workers is
disturbed until as many kills have struck as were asked for. Each is a SIGKILL to a worker that
holds a claim, to the coordinator, or, with Ray, the removal of a node with everything on it.
Whenever the coordinator has ended, it is started again until the run is complete.
Then one more recording is resumed by 1, 3 and 2 workers, each on another engine.
Every recording must end with the bytes of one that a single undisturbed worker made (a clock that
counts replaces the real one), must not decode again what was safe, and must leave neither claims
nor signs of life. Prints counts, and ends with 1 if any of them should be zero and is not.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from counted_task import LOG_VARIABLE, TASK, decoded_again

from c4.errors import C4Error
from c4.store.claims import WORK_FOLDERS, Claims, Watch, read_aside
from c4.store.locations import Location, parse_location
from c4.store.manifest import DATA_FOLDERS, run_folder
from c4.store.runs import open_run
from c4.store.storage import list_files, list_folders, list_leftovers, owner_of, read_file

sys.path.append(str(Path(__file__).parents[1]))
from tests.s3_server import environment, make_bucket, serve_s3

MOST_RECORDINGS = 10
"""Of an engine that are disturbed, if some of them end before as many kills have struck."""
ENGINES = ("local", "ray", "slurm")
WORKERS = 3
LEASE = 5.0
PATIENCE = 900.0
"""Seconds after which a run that does not end counts as stuck."""
FAULTS = ("incomplete", "other bytes", "decoded again", "left over", "stuck")


COUNTED = str(Path(__file__).with_name("counted_task.py"))


def folder_of(spec: Mapping[str, Any]) -> Location:
    """The run that a recording makes."""
    return run_folder(parse_location(spec["out"]), "tiny", TASK.name, "baseline")


def settings(spec: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables of everything that takes part in a recording."""
    return {
        "C4_LEASE": str(LEASE),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        LOG_VARIABLE: spec["beside"] + ".log",
    }


def start_coordinator(spec: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """The command that a user types; it can be killed like any worker."""
    command = [sys.executable, "-m", "c4.cli", "record", "--task", f"{COUNTED}:TASK"]
    command += ["--n", str(spec["n"]), "--skip", "0", "--out", spec["out"], "--device", "cpu"]
    if spec["engine"] in ENGINES:
        command += ["--engine", spec["engine"], "--workers", str(spec["workers"])]
    if spec["engine"] == "slurm":
        command += ["--slurm", "cluster=local", "--slurm", f"folder={spec['beside']}.slurm"]
    if "address" in spec:
        command += ["--ray-address", spec["address"]]
    with open(spec["beside"] + ".err", "ab") as log:
        return subprocess.Popen(command, env=os.environ | settings(spec), stdout=log, stderr=log)


class Nodes:
    """Two nodes of a Ray cluster in this process's care."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        from ray.cluster_utils import Cluster

        os.environ |= settings(spec)
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=2) for _ in range(2)]

    def kill_one(self, rng: random.Random) -> None:
        node = self.nodes.pop(rng.randrange(len(self.nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=2))


def busy_workers(folder: Location) -> list[int]:
    """The processes that hold a claim now."""
    signs = Watch(folder, LEASE).signs()
    owners = {(owner_of(claim) or b"").decode() for claim in list_folders(folder / "claims")}
    marks = [sign.process.split(":")[-2] for name, sign in signs.items() if name in owners]
    return [int(mark) for mark in marks]


def disturb(spec: dict[str, Any], kills: int, rng: random.Random) -> Counter[str]:
    """A recording under fire."""
    found: Counter[str] = Counter()
    nodes = Nodes(spec) if spec["engine"] == "ray" else None
    if nodes:
        spec["address"] = nodes.cluster.address
    folder = folder_of(spec)
    coordinator, began = start_coordinator(spec), time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if coordinator.poll() is not None:
            if complete(folder, spec["n"]):
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
    return found + look_after(spec)


def strike(
    folder: Location,
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


def complete(folder: Location, n: int) -> bool:
    with suppress(C4Error, FileNotFoundError):
        return len(open_run(folder)) == n and not list_files(folder / "pending")
    return False


def look_after(spec: Mapping[str, Any]) -> Counter[str]:
    """What is wrong with a run that ought to be complete."""
    found: Counter[str] = Counter()
    folder = folder_of(spec)
    found["incomplete"] += not complete(folder, spec["n"])
    found["decoded again"] += decoded_again(settings(spec)[LOG_VARIABLE])
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


def leftovers(folder: Location) -> list[str]:
    """What workers leave that did not come to their end."""
    at_work = [folder / name for name in WORK_FOLDERS]
    found = [path for place in at_work for path in (*list_files(place), *list_folders(place))]
    found += [p for kind in (".", *DATA_FOLDERS) for p in list_leftovers(folder / kind)]
    return [str(path) for path in found]


def parts(spec: Mapping[str, Any]) -> dict[str, bytes]:
    """Every file but the manifest, which says when and with how many threads the run was begun."""
    folder = folder_of(spec)
    files = [path for kind in DATA_FOLDERS for path in list_files(folder / kind)]
    return {f"{path.parent.name}/{path.name}": read_file(path) for path in files}


def resume_elsewhere(engines: list[str], spec: dict[str, Any]) -> Counter[str]:
    """A recording stopped twice, and resumed with another number of workers on another engine."""
    folder, n = folder_of(spec), spec["n"]
    for engine, workers, until in zip(engines, (1, 3, 2), (n // 3, 2 * n // 3, n), strict=True):
        spec |= {"engine": engine, "workers": workers}
        coordinator, began = start_coordinator(spec), time.monotonic()
        while coordinator.poll() is None and time.monotonic() - began < PATIENCE:
            time.sleep(0.3)
            with suppress(C4Error, FileNotFoundError):
                if until < n and len(open_run(folder)) >= until:
                    coordinator.send_signal(signal.SIGINT)
                    break
        coordinator.wait()
    return look_after(spec)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, help="Only this one.")
    parser.add_argument("--storage", choices=["folder", "S3"], help="Only this one.")
    parser.add_argument("--kills", type=int, default=20, help="Kills of every engine.")
    parser.add_argument("--n", type=int, default=24, help="Trajectories of a recording.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="Only the change of engines.")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch, serve_s3() as endpoint:
        os.environ |= environment(endpoint)
        roots = {"folder": scratch, "S3": make_bucket(endpoint)}
        chosen = [options.storage] if options.storage else list(roots)
        serial = new_spec("serial", scratch, scratch, options.n)
        if start_coordinator(serial).wait():
            sys.exit(Path(serial["beside"] + ".err").read_text(encoding="utf-8"))
        for storage in chosen:
            total += matrix(storage, roots[storage], scratch, parts(serial), options)
    report("all", total)
    sys.exit(any(total[fault] for fault in FAULTS))


def new_spec(name: str, root: str, scratch: str, n: int, attempt: int = 0) -> dict[str, Any]:
    """What a coordinator is told; its logs are kept on this machine."""
    beside = f"{scratch}/{name}-{attempt}-{'folder' if root == scratch else 's3'}"
    out = f"{root}/{name}-{attempt}"
    return {"engine": name, "out": out, "beside": beside, "n": n, "workers": WORKERS}


def matrix(
    storage: str, root: str, scratch: str, expected: dict[str, bytes], options: argparse.Namespace
) -> Counter[str]:
    """Every engine on one storage, and one after another."""
    total: Counter[str] = Counter()
    engines = [options.engine] if options.engine else list(ENGINES)
    for engine in [] if options.resume else engines:
        found: Counter[str] = Counter()
        rng = random.Random(options.seed)
        for attempt in range(MOST_RECORDINGS):
            if found["kills"] >= options.kills:
                break
            spec = new_spec(engine, root, scratch, options.n, attempt)
            found += disturb(spec, options.kills - found["kills"], rng)
            found["other bytes"] += parts(spec) != expected
        report(f"{engine}, {storage}", found)
        total += found
    if options.resume or not options.engine:
        order = ["local", "slurm", "ray"]
        spec = new_spec("resumed", root, scratch, options.n)
        found = resume_elsewhere(order, spec)
        found["other bytes"] += parts(spec) != expected
        report(f"1 → 3 → 2 workers ({', '.join(order)}), {storage}", found)
        total += found
    return total


def report(name: str, found: Counter[str]) -> None:
    struck = ", ".join(f"{found[what]} {what}s" for what in ("worker", "coordinator", "node"))
    wrong = ", ".join(f"{found[fault]} {fault}" for fault in FAULTS)
    print(f"{name}: {found['kills']} kills ({struck}); {wrong}", flush=True)


if __name__ == "__main__":
    main()
