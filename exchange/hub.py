"""Runs to and from the hub, as data sets.

A data set holds runs under `runs/model=…/task=…/method=…`, as a folder of runs does, and a card.
What is pulled is checked file by file before it is put in place, and nothing of it is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4.errors import C4Error, DataError, RunError
from c4.exchange.card import make_card
from c4.store import find_runs
from c4.store.check import Finding, State, check_run
from c4.store.locations import Location
from c4.store.manifest import MANIFEST, RECORDED, TOKENIZER, read_manifest
from c4.store.merge import Merged, plan_merge
from c4.store.parts import PART, run_parts

ROOT = "runs"
"""The folder of a data set that holds its runs."""
CARD = "README.md"
DATASET = "dataset"
KEPT = re.compile(
    rf"{ROOT}/(?P<run>model=[^/\\]+/task=[^/\\]+/method=[^/\\]+)/"
    rf"(?:{MANIFEST}|{TOKENIZER}|(?:{'|'.join(RECORDED)})/{PART.pattern})"
)
"""The files of a data set that are a run's; others are left where they are."""


def hub_client() -> Any:
    """The hub's own client."""
    from huggingface_hub import HfApi

    return HfApi(library_name="c4-dlm")


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """What the hub or the network refuses, in words."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled:
        raise DataError(f"{doing}: the hub is switched off; unset HF_HUB_OFFLINE") from None
    except HFValidationError as error:
        raise DataError(f"{doing}: {_first_line(error)}") from error
    except HfHubHTTPError as error:
        raise DataError(
            f"{doing}: {_first_line(error)}; check the name, and log in with: hf auth login"
        ) from error
    except C4Error:
        raise
    except Exception as error:  # the client, the network and the disk fail in many ways
        raise DataError(
            f"{doing}: {type(error).__name__}: {_first_line(error)}; check the network and the "
            "disk, and give the same command again: what has arrived is kept"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@dataclass(frozen=True)
class Pushed:
    """What a push brought to the hub."""

    repo: str
    runs: Sequence[str]
    files: int
    commit: str


def push_runs(folder: Location, repo: str, *, private: bool = False) -> Pushed:
    """Push a run, or all runs below a folder, as one commit with a card.

    A run that is damaged is not pushed. Repeating a push sends only what the hub lacks.
    """
    from huggingface_hub import CommitOperationAdd

    runs = {f"{ROOT}/{'/'.join(run.parts[-3:])}": run for run in _sound_runs(folder)}
    files = {
        f"{place}/{path.relative_to(run).as_posix()}": path
        for place, run in runs.items()
        for path in _own_files(run)
    }
    strange = [name for name in files if not KEPT.fullmatch(name)]
    if strange:
        raise RunError(f"{files[strange[0]]}: not in a folder model=…/task=…/method=…")
    client, doing = hub_client(), f"pushing to {repo}"
    with hub_errors(doing):
        client.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        manifests = {place: _manifest(run / MANIFEST) for place, run in runs.items()}
        card = make_card(repo, _others(client, repo, runs) | manifests)
        changes = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
        changes.append(CommitOperationAdd(CARD, card.encode()))
        done = client.create_commit(
            repo, changes, commit_message=f"Runs recorded by c4: {len(runs)}", repo_type=DATASET
        )
    return Pushed(repo, list(runs), len(files), done.oid)


def _sound_runs(folder: Location) -> list[Location]:
    found = find_runs(folder)
    if not found:
        raise RunError(f"{folder}: no runs to push; make one with: c4 record --task math")
    for run in found:
        _require_sound(run)
    return found


def _require_sound(run: Location) -> None:
    problems = [finding.what for finding in check_run(run) if finding.state is State.PROBLEM]
    if problems:
        raise RunError("\n".join(problems))


def _own_files(run: Location) -> list[Location]:
    return [run / MANIFEST, run / TOKENIZER, *(part.path for part in run_parts(run, RECORDED))]


def _manifest(path: Location) -> dict[str, Any]:
    manifest = read_manifest(path.parent)
    return {"identity": manifest.identity, "environment": manifest.environment}


def _others(client: Any, repo: str, pushed: Mapping[str, Location]) -> dict[str, Any]:
    """The manifests of the runs that the data set has already, for the card to name them."""
    found = {}
    for name in client.list_repo_files(repo, repo_type=DATASET):
        place = name.removesuffix(f"/{MANIFEST}")
        if KEPT.fullmatch(name) and name.endswith(MANIFEST) and place not in pushed:
            path = Path(client.hf_hub_download(repo, name, repo_type=DATASET))
            try:
                found[place] = _manifest(path)
            except RunError:
                continue  # the card says nothing of what cannot be read
    return found


@dataclass(frozen=True)
class PullPlan:
    """The files of a data set that are going to be fetched, all of one commit."""

    client: Any
    repo: str
    commit: str
    files: Sequence[str]
    ignored: int
    """Files of the data set that are no run's, and are not fetched."""

    def fetch(self, *, fresh: bool = False) -> Iterator[tuple[str, Path]]:
        """Fetch file after file; what is in the hub's cache is not fetched again."""
        with hub_errors(f"pulling {self.repo}"):
            for name in self.files:
                path = self.client.hf_hub_download(
                    self.repo,
                    name,
                    repo_type=DATASET,
                    revision=self.commit,
                    force_download=fresh,
                )
                yield name, Path(path)


def plan_pull(repo: str, revision: str | None = None) -> PullPlan:
    """Ask the hub which runs a data set has.

    Args:
        revision: a branch, a tag or a commit. It is resolved once, so that a pull that was
            interrupted goes on with the same files.
    """
    client = hub_client()
    with hub_errors(f"pulling {repo}"):
        info = client.repo_info(repo, repo_type=DATASET, revision=revision)
    names = [sibling.rfilename for sibling in info.siblings]
    files = sorted(name for name in names if KEPT.fullmatch(name) and ".." not in name)
    if not any(name.endswith(f"/{MANIFEST}") for name in files):
        raise DataError(f"{repo}: this data set holds no runs of c4")
    return PullPlan(client, repo, str(info.sha), files, len(names) - len(files))


def pull_runs(
    plan: PullPlan,
    out: Location,
    *,
    fresh: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> list[Merged]:
    """Fetch the runs of a data set, check them, and bring them into a folder of runs.

    They arrive in the hub's cache, are read there to the last byte, and only then copied, so an
    interrupted pull leaves the folder as it was. Where a run is there already, the trajectories
    that it lacks are added.

    Args:
        fresh: fetch everything anew.
        note: told the name of every file that has arrived.
    """
    fetched: dict[str, Path] = {}
    for name, path in plan.fetch(fresh=fresh):
        fetched[name] = path
        note(name)
    folders = sorted({_run_folder(name, path) for name, path in fetched.items()})
    for folder in folders:
        _require_pulled_sound(plan.repo, folder)
    merges = [merge for folder in folders for merge in plan_merge(folder, out)]
    return [merge.run() for merge in merges]


def _run_folder(name: str, path: Path) -> Path:
    """The folder of the run in the cache that a file belongs to."""
    depth = len(name.split("/")) - len(f"{ROOT}/model/task/method".split("/"))
    return path.parents[depth - 1]


def _require_pulled_sound(repo: str, folder: Path) -> None:
    problems: list[Finding] = [f for f in check_run(folder) if f.state is State.PROBLEM]
    if problems:
        listed = "\n".join(problem.what for problem in problems)
        raise DataError(
            f"{repo}: what was pulled is damaged, and nothing was put in place; if it is the copy "
            f"that is damaged, fetch it anew with --fresh\n{listed}"
        )
