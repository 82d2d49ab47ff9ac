"""Runs to and from the hub, as data sets.

A data set holds runs under `runs/model=…/task=…/method=…`, as a folder of runs does, and a card.
What is pulled is checked file by file before it is put in place, and nothing of it is run.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from c4.analysis.exchange.card import make_card
from c4.errors import C4Error, DataError, RunError
from c4.store import find_runs
from c4.store.check import State, check_run
from c4.store.locations import Location
from c4.store.manifest import (
    MANIFEST,
    RECORDED,
    TOKENIZER,
    Manifest,
    manifest_file,
    name_differences,
    read_manifest,
    run_folder,
)
from c4.store.merge import Merged, plan_merge
from c4.store.parts import PART, named_part, run_parts
from c4.store.storage import read_file

ROOT = "runs"
"""The folder of a data set that holds its runs."""
CARD = "README.md"
DATASET = "dataset"
RUN = f"{ROOT}/model=*/task=*/method=*"
MANIFESTS = f"{RUN}/{MANIFEST}"
RUN_FILES = [MANIFESTS, f"{RUN}/{TOKENIZER}", *(f"{RUN}/{kind}/*.parquet" for kind in RECORDED)]
"""The files of a data set that are a run's; others are not fetched."""
PASSING = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.TOO_MANY_REQUESTS)
"""How the hub refuses because it is busy, or because somebody else has pushed meanwhile."""


def hub_client() -> Any:
    """The hub's own client."""
    from huggingface_hub import HfApi

    return HfApi(library_name="c4-dlm")


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """Turn whatever the client, the network or the disk raises into a message with advice."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        yield
    except C4Error:
        raise
    except Exception as raised:
        error: BaseException = raised
        while error.__cause__ is not None and not isinstance(error, HfHubHTTPError):
            error = error.__cause__  # the client wraps what the hub says
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        said = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
        status = getattr(getattr(error, "response", None), "status_code", 500)
        if isinstance(error, HFValidationError) or (status < 500 and status not in PASSING):
            advice = f"{said}; check the name, and log in with: hf auth login"
        else:
            advice = (
                f"{type(error).__name__}: {said}; check the network and the disk, and give the "
                "same command again: what has arrived is kept"
            )
        raise DataError(f"{doing}: {advice}") from raised


@dataclass(frozen=True)
class Pushed:
    """Result of a push."""

    repo: str
    runs: Sequence[str]
    files: int
    commit: str


def push_runs(folder: Location, repo: str, *, private: bool = False) -> Pushed:
    """Push a run, or all runs below a folder, with a card.

    A run that is damaged is not pushed. Repeating a push sends only what the hub lacks. Parts that
    overlap those here and are not among them were replaced here, and are removed there.
    """
    runs = _runs_to_push(folder)
    client, manifests = hub_client(), {place: read_manifest(run) for place, run in runs.items()}
    with hub_errors(f"pushing to {repo}"), TemporaryDirectory() as staging:
        client.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        info = client.repo_info(repo, repo_type=DATASET)
        if private and info.private is False:
            raise DataError(
                f"{repo} is public already, and --private makes only new data sets private; "
                "change it on the hub, or give the command without --private"
            )
        names = _names(info)
        others = _others(client, repo, info, manifests)
        files = [path for place, run in runs.items() for path in _stage(run, Path(staging, place))]
        Path(staging, CARD).write_text(make_card(repo, others | manifests), encoding="utf-8")
        done = client.upload_folder(
            repo_id=repo,
            folder_path=staging,
            repo_type=DATASET,
            commit_message=f"Runs recorded by c4: {len(runs)}",
            delete_patterns=[escape(name) for name in _replaced(names, runs)] or None,
            parent_commit=info.sha,  # what somebody pushes meanwhile is not mixed with this
        )
    return Pushed(repo, list(runs), len(files), done.oid)


def _runs_to_push(folder: Location) -> dict[str, Location]:
    """Runs below a folder, by where they go in the data set. A damaged run is an error."""
    runs: dict[str, Location] = {}
    for run in find_runs(folder):
        if problems := _problems(run):
            raise RunError("\n".join(problems))
        place = _place_of(read_manifest(run))
        other = runs.setdefault(place, run)
        if other != run:
            raise RunError(
                f"{run} and {other} would be one folder of the data set; join them first with: "
                f"c4 runs --merge '{run}' --runs '{other}'"
            )
    if not runs:
        raise RunError(f"{folder}: no runs to push; make one with: c4 record --task math")
    return runs


def _problems(run: Location) -> list[str]:
    """Damage found in a run; every file is read to the last byte."""
    return [finding.what for finding in check_run(run) if finding.state is State.PROBLEM]


def _place_of(manifest: Manifest) -> str:
    """The folder of a data set that a run belongs in."""
    model, task, label = (str(manifest.identity[name]) for name in ("model", "task", "label"))
    return run_folder(PurePosixPath(ROOT), model, task, label).as_posix()


def _names(info: Any) -> list[str]:
    """Names of a data set's files; the client gives None if there are none."""
    return [sibling.rfilename for sibling in info.siblings or ()]


def _holds_runs(names: Collection[str]) -> bool:
    return any(fnmatchcase(name, MANIFESTS) for name in names)


def _others(client: Any, repo: str, info: Any, ours: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Manifests that are in the data set already, by the folders of their runs.

    Pushing over another run of the same name, or over one whose manifest is damaged, is an error.
    """
    found: dict[str, Manifest] = {}
    if not _holds_runs(_names(info)):
        return found
    root = _fetch(client, repo, info.sha, [MANIFESTS])
    for run in find_runs(root):
        place = run.relative_to(root).as_posix()
        try:
            theirs = read_manifest(run)
        except RunError:
            if place in ours:
                raise DataError(
                    f"{repo} has a run in {place} that cannot be compared with yours; delete its "
                    "folder there, or push to another data set"
                ) from None
            continue
        found[place] = theirs
        if place in ours:
            keys = sorted(theirs.identity.keys() | ours[place].identity.keys())
            if differ := name_differences(theirs.identity, ours[place].identity, keys):
                raise DataError(
                    f"{repo} has another run in {place}; delete that folder there, or push to "
                    "another data set. They differ in:\n" + "\n".join(differ)
                )
    return found


def _fetch(
    client: Any, repo: str, commit: str, patterns: Sequence[str], *, fresh: bool = False
) -> Path:
    """The folder in the hub's cache that holds some files of a data set, all of one commit."""
    return Path(
        client.snapshot_download(
            repo,
            repo_type=DATASET,
            revision=commit,
            allow_patterns=patterns,
            force_download=fresh,
        )
    )


def _stage(run: Location, target: Path) -> list[Path]:
    """Lay out a run's files for upload: links, or copies if they are in object storage.

    A manifest goes without the user's own folders.
    """
    staged = []
    for path in (run / TOKENIZER, *(part.path for part in run_parts(run, RECORDED))):
        place = target.joinpath(*path.relative_to(run).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(path, Path):
            place.symlink_to(path.absolute())
        else:
            place.write_bytes(read_file(path))
        staged.append(place)
    manifest = read_manifest(run)
    content = manifest_file(manifest.without_asked()) if manifest.asked else None
    (target / MANIFEST).write_bytes(content or read_file(run / MANIFEST))
    return [*staged, target / MANIFEST]


def _replaced(names: Collection[str], runs: Mapping[str, Location]) -> list[str]:
    """Parts in the data set that overlap parts here but are not among them.

    Parts that lie apart from all parts here are another half of the run, and stay.
    """
    replaced = []
    for place, run in runs.items():
        here = run_parts(run, RECORDED)
        own = {f"{place}/{'/'.join(part.path.relative_to(run).parts)}" for part in here}
        kinds = tuple(f"{place}/{kind}/" for kind in RECORDED)
        for name in names:
            path = PurePosixPath(name)
            if name in own or not name.startswith(kinds) or not PART.fullmatch(path.name):
                continue
            there = named_part(path)
            if any(there.first <= part.last and part.first <= there.last for part in here):
                replaced.append(name)
    return replaced


def pull_runs(
    repo: str, out: Location, *, revision: str | None = None, fresh: bool = False
) -> list[Merged]:
    """Fetch the runs of a data set, check them, and bring them into a folder of runs.

    They arrive in the hub's cache, are read there to the last byte, and only then copied, so an
    interrupted pull leaves the folder as it was. Where a run is there already, the trajectories
    that it lacks are added.

    Args:
        revision: a branch, a tag or a commit.
        fresh: fetch everything anew.
    """
    client = hub_client()
    with hub_errors(f"pulling {repo}"):
        info = client.repo_info(repo, repo_type=DATASET, revision=revision)
        if not _holds_runs(_names(info)):
            raise DataError(f"{repo}: this data set holds no runs of c4")
        root = _fetch(client, repo, info.sha, RUN_FILES, fresh=fresh)
    runs = find_runs(root)
    for run in runs:
        if problems := _problems(run):
            listed = "\n".join(problems)
            raise DataError(
                f"{repo}: what was pulled is damaged, and nothing was put in place; if it is the "
                f"copy that is damaged, fetch it anew with --fresh\n{listed}"
            )
        place, own = run.relative_to(root).as_posix(), _place_of(read_manifest(run))
        if own != place:
            raise DataError(
                f"{repo}: the run in {place} says that it belongs in {own}; "
                "nothing was put in place"
            )
    merges = [merge for run in sorted(runs) for merge in plan_merge(run, out)]
    return [merge.run() for merge in merges]
