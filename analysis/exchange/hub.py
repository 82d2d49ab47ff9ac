"""Runs to and from the hub, as data sets.

A data set holds runs under `runs/model=…/task=…/method=…`, as a folder of runs does, and a card.
What is pulled is checked file by file before it is put in place, and nothing of it is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any

from c4.analysis.exchange.card import make_card
from c4.errors import C4Error, DataError, RunError
from c4.store import find_runs, open_run
from c4.store.check import Finding, State, check_run
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
from c4.store.parts import PART, Part, named_part, run_parts
from c4.store.storage import read_file

ROOT = "runs"
"""The folder of a data set that holds its runs."""
CARD = "README.md"
DATASET = "dataset"
KEPT = re.compile(
    rf"{ROOT}/(?P<run>model=[^/\\]+/task=[^/\\]+/method=[^/\\]+)/"
    rf"(?:{MANIFEST}|{TOKENIZER}|(?:{'|'.join(RECORDED)})/{PART.pattern})"
)
"""The files of a data set that are a run's; others are left where they are."""


OVERTAKEN = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
"""How the hub refuses a commit that does not follow the newest one."""


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
    except C4Error:
        raise
    except Exception as error:  # the client, the network and the disk fail in many ways
        cause = _cause(error, HfHubHTTPError)
        said = _first_line(cause)
        if isinstance(cause, OfflineModeIsEnabled):
            advice = "the hub is switched off; unset HF_HUB_OFFLINE"
        elif isinstance(cause, HFValidationError):
            advice = said
        elif isinstance(cause, HfHubHTTPError) and _status(cause) in OVERTAKEN:
            advice = f"{said}; somebody else has pushed meanwhile: give the same command again"
        elif isinstance(cause, HfHubHTTPError) and _is_ours(cause):
            advice = f"{said}; check the name, and log in with: hf auth login"
        else:
            advice = (
                f"{type(cause).__name__}: {said}; check the network and the disk, and give the "
                "same command again: what has arrived is kept"
            )
        raise DataError(f"{doing}: {advice}") from error


def _cause(error: BaseException, known: type[BaseException]) -> BaseException:
    """The refusal that the client wrapped in words of its own, as it does during an upload."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, known):
        found = found.__cause__
    return found or error


def _is_ours(error: Any) -> bool:
    """Whether the hub refused what was asked, rather than being out of order or too busy."""
    return _status(error) < 500 and _status(error) != HTTPStatus.TOO_MANY_REQUESTS


def _status(error: Any) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0))


def _first_line(error: BaseException) -> str:
    """What an error says first; where that is a heading, with the line below it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])


@dataclass(frozen=True)
class Pushed:
    """What a push brought to the hub."""

    repo: str
    runs: Sequence[str]
    files: int
    commit: str


def push_runs(folder: Location, repo: str, *, private: bool = False) -> Pushed:
    """Push a run, or all runs below a folder, as one commit with a card.

    A run that is damaged is not pushed. Repeating a push sends only what the hub lacks, and what
    files here have replaced is removed there.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    runs = _places(_sound_runs(folder))
    files = {name: path for place, run in runs.items() for name, path in _files(place, run)}
    client, doing = hub_client(), f"pushing to {repo}"
    with hub_errors(doing):
        client.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        remote = _Remote.ask(client, repo)
        if private:
            remote.require_private()
        replaced = [name for place, run in runs.items() for name in remote.replaced(place, run)]
        manifests = {place: read_manifest(run) for place, run in runs.items()}
        card = make_card(repo, remote.manifests(besides=runs) | manifests)
        changes = [
            *(CommitOperationAdd(name, _content(path)) for name, path in files.items()),
            *(CommitOperationDelete(name) for name in replaced),
            CommitOperationAdd(CARD, card.encode()),
        ]
        done = client.create_commit(
            repo,
            changes,
            commit_message=f"Runs recorded by c4: {len(runs)}",
            repo_type=DATASET,
            parent_commit=remote.commit,  # what somebody pushes meanwhile is not mixed with this
        )
    return Pushed(repo, list(runs), len(files), done.oid)


def _places(runs: Sequence[Location]) -> dict[str, Location]:
    """Runs by their folders in a data set."""
    places: dict[str, Location] = {}
    for run in runs:
        place = _place_of(read_manifest(run))
        other = places.setdefault(place, run)
        if other != run:
            raise RunError(
                f"{run} and {other} would be one folder of the data set; join them first with: "
                f"c4 runs --merge '{run}' --runs '{other}'"
            )
        if not KEPT.fullmatch(f"{place}/{MANIFEST}"):
            raise RunError(f"{run}: its model, task or method has a name that no folder can have")
    return places


def _place_of(manifest: Manifest) -> str:
    """The folder of a data set that a run belongs in."""
    model, task, label = (str(manifest.identity[name]) for name in ("model", "task", "label"))
    return run_folder(PurePosixPath(ROOT), model, task, label).as_posix()


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


def _files(place: str, run: Location) -> Iterator[tuple[str, Location]]:
    """The files of a run that are pushed, by their names in the data set."""
    parts = (part.path for part in run_parts(run, RECORDED))
    for path in (run / MANIFEST, run / TOKENIZER, *parts):
        yield "/".join((place, *path.relative_to(run).parts)), path


def _content(path: Location) -> str | bytes:
    """A file as the client takes it: by its path, or if it is far away, its bytes.

    A manifest goes without the user's own folders.
    """
    if path.name == MANIFEST and read_manifest(path.parent).asked:
        return manifest_file(read_manifest(path.parent).without_asked())
    return str(path) if isinstance(path, Path) else read_file(path)


@dataclass(frozen=True)
class _Remote:
    """The files that a data set has before a push."""

    client: Any
    repo: str
    commit: str
    names: Sequence[str]
    is_public: bool

    @classmethod
    def ask(cls, client: Any, repo: str) -> "_Remote":
        info = client.repo_info(repo, repo_type=DATASET)
        names = [name for name in _names(info) if KEPT.fullmatch(name)]
        is_public = getattr(info, "private", None) is False
        return cls(client, repo, str(info.sha), names, is_public)

    def require_private(self) -> None:
        """Refuse to show everybody what the user wants to keep private."""
        if self.is_public:
            raise DataError(
                f"{self.repo} is public already, and --private makes only new data sets private; "
                "change it on the hub, or give the command without --private"
            )

    def fetch(self, name: str) -> Path:
        path = self.client.hf_hub_download(self.repo, name, repo_type=DATASET, revision=self.commit)
        return Path(path)

    def manifests(self, besides: Mapping[str, Location]) -> dict[str, Manifest]:
        """The manifests of its other runs, for the card to name them."""
        found = {}
        for name in self.names:
            place = name.removesuffix(f"/{MANIFEST}")
            if place == name or place in besides:
                continue
            try:
                found[place] = read_manifest(self.fetch(name).parent)
            except RunError:
                continue  # the card says nothing of what cannot be read
        return found

    def replaced(self, place: str, run: Location) -> list[str]:
        """Files of a run that hold trajectories which other files hold here.

        Parts that lie apart from all parts here are another half of the run, and stay.
        """
        named = f"{place}/{MANIFEST}"
        if named not in self.names:
            return []
        opened = open_run(run)
        self._require_same_run(named, opened.manifest)
        own = dict(_files(place, run))
        kinds = tuple(f"{place}/{kind}/" for kind in RECORDED)
        others = [name for name in self.names if name.startswith(kinds) and name not in own]
        here = opened.parts
        found = [name for name in others if _overlaps(named_part(PurePosixPath(name)), here)]
        for name in found:
            self._require_known(name, opened.manifest, set(opened.indices))
        return found

    def _require_same_run(self, name: str, ours: Manifest) -> None:
        try:
            theirs = read_manifest(self.fetch(name).parent)
        except RunError as error:
            raise DataError(
                f"{self.repo} has a run in {name} that cannot be compared with yours; delete its "
                f"folder there, or push to another data set ({error})"
            ) from error
        keys = sorted(theirs.identity.keys() | ours.identity.keys())
        differ = name_differences(theirs.identity, ours.identity, keys)
        if differ:
            raise DataError(
                f"{self.repo} has another run in {name.removesuffix(f'/{MANIFEST}')}; delete that "
                "folder there, or push to another data set. They differ in:\n" + "\n".join(differ)
            )

    def _require_known(self, name: str, manifest: Manifest, known: set[int]) -> None:
        """Refuse to remove a file with trajectories that the run here lacks."""
        kind, part = PurePosixPath(name).parent.name, named_part(PurePosixPath(name))
        few = part.last - part.first <= len(known)
        if kind not in ("rows", "pending") or (few and known.issuperset(part.trajectories)):
            return
        try:
            held = set(named_part(self.fetch(name)).load(manifest.digest).trajectories)
        except RunError:
            return  # it is damaged, and everybody's pull fails at it
        if not held <= known:
            raise DataError(
                f"{self.repo} has trajectories of this run that are not here, among them "
                f"{min(held - known)}; bring them here first with: c4 pull {self.repo} --out RUNS"
            )


def _names(info: Any) -> list[str]:
    """The files of a data set, as the client describes it: it may have no list of none."""
    return [sibling.rfilename for sibling in info.siblings or ()]


def _overlaps(part: Part, others: Sequence[Part]) -> bool:
    return any(part.first <= other.last and other.first <= part.last for other in others)


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
    names = _names(info)
    files = sorted(name for name in names if KEPT.fullmatch(name) and ".." not in name.split("/"))
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
    folders = {_run_folder(name, path): _run_place(name) for name, path in fetched.items()}
    for folder, place in sorted(folders.items()):
        _require_pulled_sound(plan.repo, folder)
        _require_in_place(plan.repo, folder, place)
    merges = [merge for folder in sorted(folders) for merge in plan_merge(folder, out)]
    return [merge.run() for merge in merges]


def _run_folder(name: str, path: Path) -> Path:
    """The folder of the run in the cache that a file belongs to."""
    depth = len(name.split("/")) - len(f"{ROOT}/model/task/method".split("/"))
    return path.parents[depth - 1]


def _run_place(name: str) -> str:
    """The folder of the run in the data set that a file belongs to."""
    return "/".join(name.split("/")[:4])


def _require_in_place(repo: str, folder: Path, place: str) -> None:
    """Refuse a run that would be put elsewhere than the data set shows it."""
    own = _place_of(read_manifest(folder))
    if own != place:
        raise DataError(
            f"{repo}: the run in {place} says that it belongs in {own}; nothing was put in place"
        )


def _require_pulled_sound(repo: str, folder: Path) -> None:
    problems: list[Finding] = [f for f in check_run(folder) if f.state is State.PROBLEM]
    if problems:
        listed = "\n".join(problem.what for problem in problems)
        raise DataError(
            f"{repo}: what was pulled is damaged, and nothing was put in place; if it is the copy "
            f"that is damaged, fetch it anew with --fresh\n{listed}"
        )
