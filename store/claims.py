"""Claims: which worker is making which trajectory, so that any number of workers share a run.

A claim is a name that can be made only once, see `make_once`. Its holder gives one sign of life for
all its claims. A worker that sees no new sign for the length of a lease, by its own monotonic
clock, takes the claim over by making the next generation of its name. The clocks of two machines
are never compared. On the holder's machine, other workers notice at once that its process is gone.

Claims do not protect data: a trajectory is whole or absent, and of two copies the first sealed
counts. They avoid duplicate work, so a claim that is lost too early costs only time.

    claims/000040.1/owner   id of the worker that took trajectory 40 first
    claims/000040.2/owner   id of the worker that took it over after the first had died
    workers/5e1d00c2.json   a worker's sign of life; see `Sign`
    aside/000041.json       why trajectory 41 is not tried again
"""

import json
import logging
import os
import re
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, get_type_hints

from c4.errors import ConfigError, RunError
from c4.errors.system import is_running, process_mark
from c4.store.locations import Location
from c4.store.storage import (
    list_files,
    list_folders,
    make_once,
    note_file,
    owner_of,
    put_file,
    read_file,
    remove_empty_folder,
    remove_files,
    remove_leftovers,
    remove_made,
)

log = logging.getLogger(__name__)

LEASE = 60.0
"""Seconds without a sign of life after which a worker's claims are free."""
LEASE_VARIABLE = "C4_LEASE"
"""Environment variable that overrides `LEASE`; must be equal for all workers of a run."""
RENEWALS = 4
"""Number of signs of life that a worker gives per lease."""
DEATHS = 3
"""Number of workers that may die while making a trajectory before it is set aside."""
SEAL = "seal"
"""The claim of a worker that seals pending trajectories into parts or recovers from a kill."""
GRADES = "grades"
"""The claim of a worker that adds grades, because these are numbered."""
CLAIMS, WORKERS, ASIDE = WORK_FOLDERS = ("claims", "workers", "aside")
"""Folders about the workers of a run; none of them holds recorded data."""
SEALED = "sealed.json"
"""Note beside the claims that names the parts sealed last; see `store/writer.py`."""
CLAIM = re.compile(r"([a-z0-9-]+)\.([1-9][0-9]{0,5})")
FEW = 16
"""A worker that leaves tidies up only if at most this many signs of life are left."""
LONGEST_PAUSE = 1.0
"""Maximum number of seconds between two polls of the claims of other workers."""


def lease_seconds() -> float:
    """Return the lease from the environment, or the default."""
    text = os.environ.get(LEASE_VARIABLE, "")
    try:
        seconds = float(text) if text else LEASE
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86400:
        raise ConfigError(f"{LEASE_VARIABLE}={text}: give a number of seconds from 0.1 to 86400")
    return seconds


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A worker's sign of life. `beat`, `ended` and `process` decide; the rest is informative."""

    worker: str = field(default_factory=lambda: secrets.token_hex(6))
    beat: int = 0
    """Counter that grows with every sign."""
    ended: str | None = None
    """Why the worker ended, if known; its claims are then free at once."""
    process: str = field(default_factory=process_mark)
    engine: str = ""
    """The engine that started the worker; empty for a command typed by a user."""
    place: str = ""
    """Machine and device."""
    wanted: int = 0
    """Number of trajectories that the worker wants the run to have."""
    done: int = 0
    """Number of trajectories that the worker has stored."""
    seconds: float = 0.0
    """Seconds since the worker began, by its own clock."""
    problem: str = ""
    """An error, or what the worker waits for."""

    @classmethod
    def from_json(cls, data: bytes) -> "Sign":
        raw = json.loads(data)
        if not isinstance(raw, dict) or not {"worker", "beat", "process"} <= raw.keys():
            raise ValueError("it is no sign of life")
        kinds = get_type_hints(cls)
        known = {name: raw[name] for name in kinds if name in raw}
        for name, value in known.items():
            if not isinstance(value, kinds[name]):
                raise ValueError(f"its {name} cannot be {value!r}")
        return cls(**known)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True)
class Claim:
    """A name that a worker has taken."""

    name: str
    generation: int
    """1 for the first holder; each further one took it over from a dead worker."""
    folder: Location


@dataclass
class Watch:
    """Judges which workers are alive by the signs that it has observed itself."""

    folder: Location
    lease: float
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By worker: its last beat, and when this watch first saw that beat."""
    _first: dict[str, int] = field(default_factory=dict)
    """By worker: the first beat that this watch saw."""

    def signs(self) -> dict[str, Sign]:
        """Return the last sign of life of every worker."""
        names = [p.stem for p in list_files(self.folder / WORKERS) if p.suffix == ".json"]
        found = {name: self.sign_of(name) for name in names}
        return {name: sign for name, sign in found.items() if sign is not None}

    def sign_of(self, worker: str) -> Sign | None:
        """Return the last sign of life of a worker; None if missing or unreadable."""
        try:
            return Sign.from_json(read_file(sign_file(self.folder, worker)))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def is_dead(self, worker: str, sign: Sign | None) -> bool:
        """Whether a worker has ended, or has not moved for a lease since this watch first looked.

        Args:
            sign: the worker's last sign of life, if any.
        """
        if sign is not None and (sign.ended is not None or is_running(sign.process) is False):
            return True
        beat, now = (-1 if sign is None else sign.beat), self.clock()
        self._first.setdefault(worker, beat)
        known, since = self._seen.get(worker, (None, now))
        if known != beat:
            self._seen[worker] = (beat, now)
            return False
        return now - since > self.lease

    def has_moved(self, sign: Sign) -> bool:
        """Whether a worker is surely alive: it runs here, or this watch saw its beat change."""
        if is_running(sign.process):
            return True
        return self._first.get(sign.worker, sign.beat) != sign.beat


def sign_file(folder: Location, worker: str) -> Location:
    return folder / WORKERS / f"{worker}.json"


def mark_dead(folder: Location, worker: str, reason: str) -> None:
    """Record that a worker has ended, so that its claims are free at once."""
    sign = Watch(folder, LEASE).sign_of(worker)
    if sign is not None and sign.ended is None:
        note_file(sign_file(folder, worker), replace(sign, ended=reason).to_json())


def read_aside(folder: Location) -> dict[int, str]:
    """Return the trajectories that are not tried again, with the reason for each."""
    found = {}
    for path in list_files(folder / ASIDE):
        with suppress(FileNotFoundError, ValueError, LookupError, TypeError):
            found[int(path.stem)] = str(json.loads(read_file(path))["reason"])
    return found


class Claims:
    """The claims of one worker on one run, and its knowledge of other workers' claims.

    Use as a context manager: it gives signs of life throughout, and releases at the end all claims
    that are still held.
    """

    def __init__(
        self,
        folder: Location,
        sign: Sign | None = None,
        *,
        lease: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.sign = sign or Sign()
        self.watch = Watch(folder, lease_seconds() if lease is None else lease, clock)
        self.aside: set[str] = set()
        """Names that this worker set aside because too many workers died of them."""
        self.finished = False
        """Whether the run has all that this worker wants; if so, deaths need not be counted."""
        self.shared = False
        """Whether other workers are known to write the run."""
        self._taken: dict[str, Claim] | None = None
        """Names that were taken when the claims were last listed; None before that."""
        self._first: str | None = None
        """The first name that this worker tries; None before it is chosen."""
        self._held: dict[str, Claim] = {}
        self._failed: dict[str, str] = {}
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._pulse = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> "Claims":
        self.report()
        self._pulse.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._pulse.join()
        for name in self._held.keys() - self._failed.keys():
            self.release(name)
        if self._failed:
            self.report(ended="; ".join(dict.fromkeys(self._failed.values())))
        else:
            remove_files([sign_file(self.folder, self.sign.worker)])
        self.tidy()

    @property
    def pause(self) -> float:
        """Seconds between two polls of the claims of other workers."""
        return min(LONGEST_PAUSE, self.watch.lease / (2 * RENEWALS))

    def take(self, names: Collection[str]) -> Claim | None:
        """Take one of several names, in order of preference; None if none is available.

        Names whose last holder died come last. The claims of others are listed only when a name
        turns out to be taken, so that a worker that is alone makes no further requests.
        """
        if self._taken is None:
            self._taken = self.current()
        for _ in range(2):  # again with a fresh list, because others release claims meanwhile
            for name in self._in_order(names):
                if name in self._taken:
                    continue
                if claim := self._make(name, 1):
                    return claim
                self._taken = self.current()
            self._taken = self.current()
        return self._take_over(names, self._taken)

    def _in_order(self, names: Collection[str]) -> Iterator[str]:
        """Yield the names in order, each worker of a shared run starting at a different name."""
        if self._first is None and len(names) > 1:
            place = zlib.crc32(self.sign.worker.encode()) % len(names)
            self._first = next(islice(names, place, None)) if self.shared else ""
        first = self._first or ""
        yield from [name for name in names if name >= first]
        yield from [name for name in names if name < first]

    def _make(self, name: str, generation: int) -> Claim | None:
        claim = Claim(name, generation, self.folder / CLAIMS / f"{name}.{generation}")
        if not make_once(claim.folder, self.sign.worker.encode()):
            return None
        self._held[name] = claim
        return claim

    def _take_over(self, names: Collection[str], current: Mapping[str, Claim]) -> Claim | None:
        """Take a name whose holder is dead.

        The dead worker's claim stays until the name is released, so that workers that list the
        claims meanwhile find the name taken.
        """
        taken = (current[name] for name in current.keys() - self._held.keys() if name in names)
        for claim in sorted(taken, key=lambda claim: (claim.generation, claim.name)):
            if not self.is_lost(claim):
                continue
            if claim.generation >= DEATHS and claim.name.isdecimal():
                self._set_aside(claim)
            elif made := self._make(claim.name, claim.generation + 1):
                return made
        return None

    def release(self, name: str) -> None:
        """Release a name and remove the claims on it that dead workers left."""
        claim = self._held.pop(name, None)
        if claim is not None:
            self._remove(claim)

    def _remove(self, claim: Claim) -> None:
        for generation in range(claim.generation, 0, -1):
            remove_made(claim.folder.with_name(f"{claim.name}.{generation}"))

    def generation(self, name: str) -> int:
        """Return how many workers have held a name, this one included; all others died."""
        return self._held[name].generation

    @property
    def failed(self) -> bool:
        """Whether this worker failed at a name that it holds."""
        return bool(self._failed)

    def fail(self, name: str, reason: str) -> None:
        """Never release a name, so that this worker counts as having died of it."""
        self._failed[name] = reason

    @contextmanager
    def hold(self, name: str) -> Iterator[Claim]:
        """Wait until a name is available, and hold it in the context."""
        pause = self.pause / 32
        while (claim := self.take([name])) is None:
            time.sleep(pause)
            pause = min(2 * pause, self.pause)
        try:
            yield claim
        finally:
            self.release(name)

    def still_holds(self, claim: Claim) -> bool:
        """Whether this worker still holds a claim, so no other has taken it over."""
        newest = self.current().get(claim.name)
        return newest == claim and self._holder(claim) == self.sign.worker

    def report(self, **news: Any) -> None:
        """Give a sign of life with changed fields."""
        with self._lock:
            seconds = round(time.monotonic() - self._began, 1)
            self.sign = replace(self.sign, beat=self.sign.beat + 1, seconds=seconds, **news)
            note_file(sign_file(self.folder, self.sign.worker), self.sign.to_json())

    def note(self, **news: Any) -> None:
        """Change fields of the next sign of life."""
        with self._lock:
            self.sign = replace(self.sign, **news)

    def others(self) -> list[Sign]:
        """Return the signs of all other workers that are not known to be dead."""
        signs = self.watch.signs()
        signs.pop(self.sign.worker, None)
        return [sign for worker, sign in signs.items() if not self.watch.is_dead(worker, sign)]

    def require_alone(self) -> None:
        """Refuse to continue beside a living worker; watch one that may be dead for a lease."""
        while others := self.others():
            moving = next((sign for sign in others if self.watch.has_moved(sign)), None)
            if moving is not None:
                raise RunError(
                    f"{self.folder}: worker {moving.worker} is writing here"
                    + (f" ({moving.place})" if moving.place else "")
                    + "; wait for it, stop it, or use --out"
                )
            time.sleep(self.pause)

    def current(self) -> dict[str, Claim]:
        """Return every name that is taken, with the newest generation of its claim."""
        newest: dict[str, Claim] = {}
        for folder in list_folders(self.folder / CLAIMS):
            match = CLAIM.fullmatch(folder.name)
            if match is None:
                continue
            claim = Claim(match[1], int(match[2]), folder)
            if match[1] not in newest or claim.generation > newest[match[1]].generation:
                newest[match[1]] = claim
        return newest

    def is_lost(self, claim: Claim) -> bool:
        """Whether a claim's holder is dead; a holder has a lease's time to sign a new claim."""
        holder = self._holder(claim)
        if holder == self.sign.worker:
            return False
        sign = self.watch.sign_of(holder) if holder else None
        return self.watch.is_dead(holder or claim.folder.name, sign)

    def _holder(self, claim: Claim) -> str:
        """Return the id of the worker that holds a claim; empty if it has not signed yet."""
        return (owner_of(claim.folder) or b"").decode("utf-8", "replace")

    def _set_aside(self, claim: Claim) -> None:
        """Set aside a trajectory that too many workers died of."""
        if claim.name in self.aside:
            return
        self.aside.add(claim.name)
        last = self.watch.sign_of(self._holder(claim))
        why = (last and last.ended) or "no sign of life"
        reason = f"{claim.generation} workers died of it; the last: {why}"
        told = {"trajectory": int(claim.name), "reason": reason}
        put_file(self.folder / ASIDE / f"{claim.name}.json", json.dumps(told).encode())
        log.warning("trajectory %s is set aside: %s", int(claim.name), reason)

    def retry_aside(self) -> None:
        """Clear the trajectories that were set aside, so that they are tried again."""
        for claim in self.current().values():
            if claim.generation >= DEATHS and self.is_lost(claim):
                self._remove(claim)
        remove_files(list_files(self.folder / ASIDE))
        remove_leftovers(self.folder / ASIDE, lambda name: True)
        remove_empty_folder(self.folder / ASIDE)
        self.aside.clear()

    def tidy(self) -> None:
        """Remove the files of dead workers, and the folders if no worker is alive.

        While the run is not finished, claims on trajectories stay, because they count deaths.
        """
        if len(list_files(self.folder / WORKERS)) > FEW:
            return
        # List claims before signs: a worker gives a sign of life before it makes a claim.
        claims = self.current().values()
        signs = self.watch.signs()
        dead = {worker for worker, sign in signs.items() if self.watch.is_dead(worker, sign)}
        alone = signs.keys() <= dead
        for claim in claims:
            of_dead = self._holder(claim) in dead or alone
            if of_dead and (self.finished or not claim.name.isdecimal()):
                self._remove(claim)
        holders = {self._holder(claim) for claim in self.current().values()}
        remove_files(sign_file(self.folder, worker) for worker in dead - holders)
        if alone:
            self._leave()

    def _leave(self) -> None:
        """Remove the note of sealed parts, and the folders of claims and workers if empty."""
        remove_files([self.folder / CLAIMS / SEALED])
        for name in (CLAIMS, WORKERS):
            remove_leftovers(self.folder / name, lambda name: True)
            remove_empty_folder(self.folder / name)

    def _renew(self) -> None:
        """Give signs of life until told to stop, and continue after a failed one."""
        while not self._stop.wait(self.watch.lease / RENEWALS):
            try:
                self.report()
            except (OSError, RunError) as error:
                log.warning("no sign of life could be given: %s", error)
