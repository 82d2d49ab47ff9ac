"""Push runs to the hub and pull them from it, as data sets.

A data set holds a card and runs under `runs/model=…/task=…/method=…`, as a folder of runs does.
Pulled files are all checked before they are copied into place, and no code in them is run.
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
"""Folder of a data set that holds its runs."""
CARD = "README.md"
DATASET = "dataset"
RUN = f"{ROOT}/model=*/task=*/method=*"
MANIFESTS = f"{RUN}/{MANIFEST}"
RUN_FILES = [MANIFESTS, f"{RUN}/{TOKENIZER}", *(f"{RUN}/{kind}/*.parquet" for kind in RECORDED)]
"""Patterns of the files that belong to runs; other files of a data set are not fetched."""
PASSING = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.TOO_MANY_REQUESTS)
"""Status codes of temporary errors: the hub is busy, or somebody else has pushed meanwhile."""


def hub_client() -> Any:
    """Make a client of `huggingface_hub`."""
    from huggingface_hub import HfApi

    return HfApi(library_name="c4-dlm")


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """Turn errors of the client, the network or the disk into a message with advice."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        yield
    except C4Error:
        raise
    except Exception as raised:
        error: BaseException = raised
        while error.__cause__ is not None and not isinstance(error, HfHubHTTPError):
            error = error.__cause__  # the client wraps errors of the hub
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

    Damaged runs are not pushed. Repeating a push sends only files that the hub lacks. Parts in the
    data set that were replaced locally are deleted there; see `_replaced`.
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
            parent_commit=info.sha,  # fails if somebody else pushes meanwhile
        )
    return Pushed(repo, list(runs), len(files), done.oid)


def _runs_to_push(folder: Location) -> dict[str, Location]:
    """Runs below a folder, by their folder in the data set. A damaged run is an error."""
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
    """Check every byte of a run's files and return the damage found."""
    return [finding.what for finding in check_run(run) if finding.state is State.PROBLEM]


def _place_of(manifest: Manifest) -> str:
    """The folder of a data set that a run belongs in."""
    model, task, label = (str(manifest.identity[name]) for name in ("model", "task", "label"))
    return run_folder(PurePosixPath(ROOT), model, task, label).as_posix()


def _names(info: Any) -> list[str]:
    """Names of a data set's files, for which the client gives None if there are none."""
    return [sibling.rfilename for sibling in info.siblings or ()]


def _holds_runs(names: Collection[str]) -> bool:
    return any(fnmatchcase(name, MANIFESTS) for name in names)


def _others(client: Any, repo: str, info: Any, ours: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Manifests that are already in the data set, by the folders of their runs.

    It is an error to overwrite a different run of the same name or one with a damaged manifest.
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
    """Download matching files of one commit; return their folder in the hub's cache."""
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

    The manifest is staged without the user's folder names.
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
    """Names of parts in the data set that overlap local parts but are not among them.

    Parts that overlap no local part hold other trajectories of the run, and stay.
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
    """Fetch the runs of a data set, check them, and copy them into a folder of runs.

    Files are downloaded to the hub's cache, checked there in full, and only then copied, so an
    interrupted download leaves the folder unchanged. If a run is already there, only the
    trajectories that it lacks are added.

    Args:
        revision: a branch, a tag or a commit.
        fresh: download everything again, ignoring the cache.
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
