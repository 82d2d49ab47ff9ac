"""Claims: which worker is making which trajectory, so that any number of workers share a run.

A claim is a name that can be made only once, see `make_once`. Its holder gives one sign of life for
all claims it holds. Whoever sees no new sign for the length of a lease, by a monotonic clock of its
own, takes the claim over by making the next generation of its name. The clocks of two machines are
never compared. On the machine of the holder, a process that is gone is known at once.

Claims protect no data: a trajectory is whole or absent, and of two copies the first sealed counts.
They keep work from being done twice, so a claim that is lost too early costs time and nothing else.

    claims/000040.1/owner   the worker that took trajectory 40 first, by its id
    claims/000040.2/owner   the one that took it over after the first had died
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
"""Environment variable that sets another number of seconds, alike for all workers of a run."""
RENEWALS = 4
"""Signs of life that a worker gives within a lease."""
DEATHS = 3
"""Workers that may die of a trajectory before it is set aside."""
SEAL = "seal"
"""The claim of whoever turns pending trajectories into parts, or recovers from a kill."""
GRADES = "grades"
"""The claim of whoever adds grades, which are numbered."""
CLAIMS, WORKERS, ASIDE = WORK_FOLDERS = ("claims", "workers", "aside")
"""Folders that hold who works on a run; none of them holds what was recorded."""
SEALED = "sealed.json"
"""Beside the claims: what was sealed last; see `store/writer.py`."""
CLAIM = re.compile(r"([a-z0-9-]+)\.([1-9][0-9]{0,5})")
FEW = 16
"""Signs of life that whoever leaves looks through; of more, the last ones do."""
LONGEST_PAUSE = 1.0
"""Seconds at most between two looks at what somebody else holds."""


def lease_seconds() -> float:
    """The lease that the environment sets, or the usual one."""
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
    """A worker's sign of life. `beat`, `ended` and `process` decide; the rest is for people."""

    worker: str = field(default_factory=lambda: secrets.token_hex(6))
    beat: int = 0
    """Grows with every sign."""
    ended: str | None = None
    """Why the worker is no more, where somebody knows; its claims are then free at once."""
    process: str = field(default_factory=process_mark)
    engine: str = ""
    """What started it; empty for a command that was given by hand."""
    place: str = ""
    """Machine and device."""
    wanted: int = 0
    """Trajectories that it wants the run to have."""
    done: int = 0
    """Trajectories that it has made safe."""
    seconds: float = 0.0
    """Seconds since it began, by its own clock."""
    problem: str = ""
    """What went wrong, or what it waits for."""

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
    """A name that somebody has taken."""

    name: str
    generation: int
    """1 for the first holder; each further one took it over from a dead worker."""
    folder: Location


@dataclass
class Watch:
    """Judges who is alive by what it has seen itself."""

    folder: Location
    lease: float
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By worker: its last beat, and when that was first seen."""
    _first: dict[str, int] = field(default_factory=dict)
    """By worker: the beat that was seen first."""

    def signs(self) -> dict[str, Sign]:
        """The last sign of life of every worker."""
        names = [p.stem for p in list_files(self.folder / WORKERS) if p.suffix == ".json"]
        found = {name: self.sign_of(name) for name in names}
        return {name: sign for name, sign in found.items() if sign is not None}

    def sign_of(self, worker: str) -> Sign | None:
        """The last sign of life of a worker; None where there is none, or nobody's."""
        try:
            return Sign.from_json(read_file(sign_file(self.folder, worker)))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def is_dead(self, worker: str, sign: Sign | None) -> bool:
        """Whether a worker has ended, or has not moved for a lease since this watch first looked.

        Args:
            sign: its last sign of life; None where there is none.
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
        """Whether a worker is known to be alive: it runs here, or has moved before this watch."""
        if is_running(sign.process):
            return True
        return self._first.get(sign.worker, sign.beat) != sign.beat


def sign_file(folder: Location, worker: str) -> Location:
    return folder / WORKERS / f"{worker}.json"


def mark_dead(folder: Location, worker: str, reason: str) -> None:
    """Write down that a worker is no more, so that its claims are free at once."""
    sign = Watch(folder, LEASE).sign_of(worker)
    if sign is not None and sign.ended is None:
        note_file(sign_file(folder, worker), replace(sign, ended=reason).to_json())


def read_aside(folder: Location) -> dict[int, str]:
    """The trajectories that are not tried again, and why."""
    found = {}
    for path in list_files(folder / ASIDE):
        with suppress(FileNotFoundError, ValueError, LookupError, TypeError):
            found[int(path.stem)] = str(json.loads(read_file(path))["reason"])
    return found


class Claims:
    """The claims of one worker on one run, and what it knows of everybody else's.

    Use as a context manager: signs of life are given from beginning to end, and whatever is still
    held at the end is given back.
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
        """Names that this worker found to have cost too many workers."""
        self.finished = False
        """Whether the run has all that this worker wants; then nobody's death matters any more."""
        self.shared = False
        """Whether others work on the run, as far as is known."""
        self._taken: dict[str, Claim] | None = None
        """Names that were taken when the claims were listed last; None before that."""
        self._first: str | None = None
        """The name with which this worker began; None before that."""
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
        """Seconds between two looks at what somebody else holds."""
        return min(LONGEST_PAUSE, self.watch.lease / (2 * RENEWALS))

    def take(self, names: Collection[str]) -> Claim | None:
        """Take one of several names, which are in order of preference; None if none can be had.

        Names that cost a worker its life come last. The claims of others are listed only when a
        name turns out to be taken, so that a worker that is alone makes no other request.
        """
        if self._taken is None:
            self._taken = self.current()
        for _ in range(2):  # again with a fresh list, because claims are released too
            for name in self._in_order(names):
                if name in self._taken:
                    continue
                if claim := self._make(name, 1):
                    return claim
                self._taken = self.current()
            self._taken = self.current()
        return self._take_over(names, self._taken)

    def _in_order(self, names: Collection[str]) -> Iterator[str]:
        """The names in order; of workers that share a run, each begins at another name."""
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

        The claim of the dead stays until the name is released, so that whoever lists the claims
        meanwhile finds the name taken.
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
        """Give a name back, with all that dead workers left of it."""
        claim = self._held.pop(name, None)
        if claim is not None:
            self._remove(claim)

    def _remove(self, claim: Claim) -> None:
        for generation in range(claim.generation, 0, -1):
            remove_made(claim.folder.with_name(f"{claim.name}.{generation}"))

    def generation(self, name: str) -> int:
        """How many workers have held a name that this one holds; all others died."""
        return self._held[name].generation

    @property
    def failed(self) -> bool:
        """Whether this worker failed at something that it holds."""
        return bool(self._failed)

    def fail(self, name: str, reason: str) -> None:
        """Keep a name to the end and beyond, as a worker does that dies of it."""
        self._failed[name] = reason

    @contextmanager
    def hold(self, name: str) -> Iterator[Claim]:
        """Wait until a name can be had, and keep it for a while."""
        pause = self.pause / 32
        while (claim := self.take([name])) is None:
            time.sleep(pause)
            pause = min(2 * pause, self.pause)
        try:
            yield claim
        finally:
            self.release(name)

    def still_holds(self, claim: Claim) -> bool:
        """Whether nobody has taken a claim over."""
        newest = self.current().get(claim.name)
        return newest == claim and self._holder(claim) == self.sign.worker

    def report(self, **news: Any) -> None:
        """Give a sign of life, with what has changed since the last."""
        with self._lock:
            seconds = round(time.monotonic() - self._began, 1)
            self.sign = replace(self.sign, beat=self.sign.beat + 1, seconds=seconds, **news)
            note_file(sign_file(self.folder, self.sign.worker), self.sign.to_json())

    def note(self, **news: Any) -> None:
        """What the next sign of life will say."""
        with self._lock:
            self.sign = replace(self.sign, **news)

    def others(self) -> list[Sign]:
        """The signs of all other workers that are not known to be dead."""
        signs = self.watch.signs()
        signs.pop(self.sign.worker, None)
        return [sign for worker, sign in signs.items() if not self.watch.is_dead(worker, sign)]

    def require_alone(self) -> None:
        """Refuse to go on beside a living worker. One that may be dead is watched for a lease."""
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
        """Every name that is taken, with the newest generation of its claim."""
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
        """Whether a claim's holder is dead. One that has not signed it yet gets a lease for it."""
        holder = self._holder(claim)
        if holder == self.sign.worker:
            return False
        sign = self.watch.sign_of(holder) if holder else None
        return self.watch.is_dead(holder or claim.folder.name, sign)

    def _holder(self, claim: Claim) -> str:
        """The worker that holds a claim; empty where it has not signed it yet."""
        return (owner_of(claim.folder) or b"").decode("utf-8", "replace")

    def _set_aside(self, claim: Claim) -> None:
        """Stop trying a trajectory that workers keep dying of."""
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
        """Forget what was set aside, so that it is tried again."""
        for claim in self.current().values():
            if claim.generation >= DEATHS and self.is_lost(claim):
                self._remove(claim)
        remove_files(list_files(self.folder / ASIDE))
        remove_leftovers(self.folder / ASIDE, lambda name: True)
        remove_empty_folder(self.folder / ASIDE)
        self.aside.clear()

    def tidy(self) -> None:
        """Remove what dead workers left, and the folders if nobody is left who might use them.

        While the run is not finished, the claims on trajectories stay: they count the dead.
        """
        if len(list_files(self.folder / WORKERS)) > FEW:
            return
        # Claims first: whoever made one of these had given a sign of life before.
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
        """Remove the folders of the last worker, as far as nothing is left in them."""
        remove_files([self.folder / CLAIMS / SEALED])
        for name in (CLAIMS, WORKERS):
            remove_leftovers(self.folder / name, lambda name: True)
            remove_empty_folder(self.folder / name)

    def _renew(self) -> None:
        """Give signs of life until told to stop. One that fails is tried again."""
        while not self._stop.wait(self.watch.lease / RENEWALS):
            try:
                self.report()
            except (OSError, RunError) as error:
                log.warning("no sign of life could be given: %s", error)
