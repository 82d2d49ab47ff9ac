"""The inside of the sandbox: a script that `run` starts, never imported by the package.

It enters the namespaces, forks the examiner (pid 1 there), which forks the candidate.
"""

import builtins
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from math import ceil
from typing import Any, BinaryIO, NoReturn

NOBODY = 65534
LIBRARIES = "/libraries"
"""Folder where packages that are not Python's own are mounted, read-only."""

# -- Isolation ---------------------------------------------------------------------------------

NEW_NAMESPACES = 0x7E020000  # mount, cgroup, uts, ipc, user, pid, net
UNSHARED = NEW_NAMESPACES & ~0x02000000  # all but cgroup
MS_NOSUID, MS_NODEV, MS_BIND_REC, MS_PRIVATE_REC = 2, 4, 0x5000, 0x44000
READ_ONLY, NO_SUID, NO_DEV, RECURSIVE = 1, 2, 4, 0x8000  # mount_setattr
SYS_MOUNT_SETATTR = 442
PDEATHSIG, DUMPABLE, SECCOMP, CAPBSET_DROP, NO_NEW_PRIVS = 1, 4, 22, 24, 38  # prctl

ARCHES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column below, audit id
SYSCALLS = {
    "clone": (56, 220), "pivot_root": (155, 41), "socket": (41, 198), "mount": (165, 40),
    "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "memfd_create": (319, 279),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "open_by_handle_at": (304, 265),
    "syslog": (103, 116), "execve": (59, 221), "execveat": (322, 281), "vfork": (58, None),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "timer_create": (222, 107), "fcntl": (72, 25),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "setpriority": (141, 140),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122), "ioprio_set": (251, 30),
}  # fmt: skip
"""Numbers of system calls, one column for each architecture in `ARCHES`."""
FIRST_UNKNOWN = 424  # from here on, numbers are the same everywhere and clone3, io_uring… begin

LOAD, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06  # the filter's instructions
KILL, ALLOW, REFUSE, UNKNOWN = 0x80000000, 0x7FFF0000, 0x50000 | 1, 0x50000 | 38  # its answers

Refusal = tuple[Any, ...]
"""A system call to refuse, and the conditions for it: (argument, instruction, value) each."""

OUT_OF_BOUNDS: list[Refusal] = [
    ("clone", (0, ANY_BIT, NEW_NAMESPACES)),
    *((name,) for name in (
        "pivot_root", "socket", "mount", "umount2", "unshare", "setns", "ptrace",
        "process_vm_readv", "process_vm_writev", "shmget", "msgget", "semget", "mq_open",
        "memfd_create", "add_key", "request_key", "keyctl", "bpf", "perf_event_open",
        "userfaultfd", "open_by_handle_at", "syslog",
    )),
]  # fmt: skip
"""System calls that are refused to every process in the sandbox."""


def only_the_machine(candidate: int) -> list[Refusal]:
    """System calls refused to the program, so that it cannot fake a failure of the machine.

    It cannot end its own process by SIGKILL, stop it, or make it or the examiner wait longer for a
    processor. If one of these is observed, the machine caused it.
    """
    by_signal: list[Refusal] = [
        ("timer_create",),  # may name any signal
        ("fcntl", (1, EQUAL, 10)),  # F_SETSIG
        ("clone", (0, ANY_BIT, 0xEE)),  # a signal at the child's end that is not SIGCHLD
        ("clone", (0, ANY_BIT, 0x4000)),  # CLONE_VFORK: the parent would look stuck
        ("vfork",),
        ("execve",),  # there is nothing to run, and a failed execve may end in a signal
        ("execveat",),
    ]
    for number in (signal.SIGKILL, signal.SIGSTOP):
        by_signal += [
            ("kill", (1, EQUAL, number), (0, *target))
            for target in ((EQUAL, 0), (EQUAL, candidate), (AT_LEAST, 2**31))  # groups, everyone
        ]
        by_signal += [
            ("tkill", (1, EQUAL, number)),
            ("tgkill", (2, EQUAL, number)),
            ("rt_sigqueueinfo", (1, EQUAL, number)),
            ("rt_tgsigqueueinfo", (2, EQUAL, number)),
        ]
    return [
        *by_signal,
        ("setrlimit", (0, EQUAL, resource.RLIMIT_CPU)),
        ("prlimit64", (1, EQUAL, resource.RLIMIT_CPU)),
        ("prlimit64", (0, AT_LEAST, 1)),  # of another process
        *((name,) for name in ("setpriority", "sched_setparam", "sched_setscheduler")),
        *((name,) for name in ("sched_setattr", "sched_setaffinity", "ioprio_set")),
    ]


def call(name: str, *args: Any) -> int:
    """Call a C function and return its result; raise OSError if it is -1."""
    result: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def die_with_parent(parent: int) -> None:
    call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def enter_namespaces() -> None:
    """Enter new namespaces, in which the next child becomes pid 1."""
    if os.uname().machine not in ARCHES:
        raise OSError(f"no system call filter for {os.uname().machine}")
    pid, (entered, tell) = os.getpid(), os.pipe()
    helper = os.fork()
    if not helper:  # only a process outside may map more than one user
        with suppress(OSError):
            os.close(tell)
            if os.read(entered, 1):
                map_users(pid)
                os._exit(0)
        os._exit(1)
    try:
        call("unshare", UNSHARED)
        os.write(tell, b"!")
    finally:
        os.close(tell)
        os.close(entered)
        status = os.waitpid(helper, 0)[1]
    if status:
        raise OSError("the users of a new namespace cannot be mapped")


def map_users(pid: int) -> None:
    """Map users inside: all for root, so that it can bind what it can read; else only nobody."""
    if os.geteuid():
        write(f"/proc/{pid}/setgroups", "deny")
        write(f"/proc/{pid}/uid_map", f"{NOBODY} {os.geteuid()} 1")
        write(f"/proc/{pid}/gid_map", f"{NOBODY} {os.getegid()} 1")
        return
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/self/{name}") as file:
            ranges = [line.split() for line in file]
        same = "\n".join(f"{first} {first} {count}" for first, _, count in ranges)
        write(f"/proc/{pid}/{name}", same)


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def build_root(scratch_bytes: int, libraries: dict[str, str]) -> None:
    """Build a root file system of libraries, four devices and a scratch folder, nothing else."""
    base = sys.base_prefix
    wanted = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"]
    wanted += ["/etc/ld.so.cache", f"{base}/lib", f"{base}/lib64", *sys.path]
    devices = [f"/dev/{name}" for name in ("null", "zero", "random", "urandom")]
    sources = {path: os.path.realpath(path) for path in wanted + devices if os.path.exists(path)}
    sources |= {f"{LIBRARIES}/{name}": os.path.realpath(libraries[name]) for name in libraries}

    call("mount", None, b"/", None, MS_PRIVATE_REC, None)
    call("mount", b"none", b"/tmp", b"tmpfs", MS_NOSUID | MS_NODEV, b"size=1m,mode=755")
    os.chdir("/tmp")
    os.mkdir("old")
    call("syscall", SYSCALLS["pivot_root"][ARCHES[os.uname().machine][0]], b".", b"old")
    os.chdir("/")
    for path, source in sorted(sources.items()):
        if os.path.isdir("/old" + source):
            os.makedirs(path, exist_ok=True)
        elif not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT))
        call("mount", b"/old" + os.fsencode(source), os.fsencode(path), None, MS_BIND_REC, None)
        set_mount(path, READ_ONLY | NO_SUID | (0 if path in devices else NO_DEV), RECURSIVE)
    call("umount2", b"/old", 2)  # MNT_DETACH
    os.rmdir("/old")
    os.mkdir("/scratch")
    if not os.path.exists("/tmp"):  # else the interpreter lives there, and must stay read-only
        os.symlink("scratch", "/tmp")
    size = f"size={scratch_bytes},nr_inodes=4096,mode=1777".encode()
    call("mount", b"none", b"/scratch", b"tmpfs", MS_NOSUID | MS_NODEV, size)
    set_mount("/", READ_ONLY | NO_SUID | NO_DEV, 0)
    os.chdir("/scratch")
    call("sethostname", b"sandbox", 7)


def set_mount(path: str, flags: int, how: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    call("syscall", SYS_MOUNT_SETATTR, -100, os.fsencode(path), how, attributes, 32)


def drop_privileges() -> None:
    """Become the user nobody, irreversibly."""
    with suppress(OSError):  # the first number the kernel does not know ends the list
        for capability in range(64):
            call("prctl", CAPBSET_DROP, capability, 0, 0, 0)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    call("capset", (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
    call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
    refuse_calls(OUT_OF_BOUNDS)
    call("prctl", DUMPABLE, 0, 0, 0, 0)
    call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # cleared by the change of user


def refuse_calls(refusals: list[Refusal]) -> None:
    """Add a filter of system calls, for this process and all that it starts."""
    column, audit = ARCHES[os.uname().machine]
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, audit), (ANSWER, 0, 0, KILL), (LOAD, 0, 0, 0)]
    code += [(AT_LEAST, 0, 1, FIRST_UNKNOWN), (ANSWER, 0, 0, UNKNOWN)]
    for name, *conditions in refusals:
        number, left = SYSCALLS[name][column], 2 * len(conditions) + 1
        if number is None:
            continue
        code += [(LOAD, 0, 0, 0), (EQUAL, 0, left, number)]
        for argument, instruction, value in conditions:
            left -= 2  # instructions to skip where the condition does not hold
            code += [(LOAD, 0, 0, 16 + 8 * argument), (instruction, 0, left, value)]
        code.append((ANSWER, 0, 0, REFUSE))
    code.append((ANSWER, 0, 0, ALLOW))

    class Step(ctypes.Structure):
        _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8),
                    ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))  # fmt: skip

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step)))

    program = Program(len(code), (Step * len(code))(*(Step(*step) for step in code)))
    call("prctl", SECCOMP, 2, ctypes.byref(program), 0, 0)


def set_limits(job: dict[str, Any]) -> None:
    cpu = job["cpu_seconds"]
    for name, pair in {
        "CORE": (0, 0),
        "CPU": (cpu, cpu + 1),  # SIGXCPU first, then SIGKILL
        "AS": (job["memory_bytes"],) * 2,
        "FSIZE": (job["file_bytes"],) * 2,
        "NOFILE": (64, 64),
    }.items():
        with suppress(ValueError):  # macOS refuses some; isolated runs are on Linux
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), pair)


# -- Between examiner and candidate ---------------------------------------------------------------

PLAIN: dict[str, Any] = {kind.__name__: kind for kind in (list, tuple, set, frozenset, bytes, dict)}
NUMBERS = {"Decimal": "decimal", "Fraction": "fractions"}
CHANGEABLE = (list, dict, set)
"""Types that a function may change in place."""


def pack(value: Any, refer: Callable[[Any], int]) -> Any:
    """Convert a value to JSON types; `refer` numbers objects that cannot be copied."""
    if isinstance(value, int) and value.bit_length() > 8000:
        return ["int", [hex(value)]]  # Python refuses to print so many decimal digits
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for name, kind in PLAIN.items():
        if isinstance(value, kind):
            items = value.items() if kind is dict else value
            return [name, [pack(item, refer) for item in items]]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if isinstance(value, complex):
        return ["complex", [value.real, value.imag]]
    if type(value).__name__ in NUMBERS:
        return [type(value).__name__, [str(value)]]
    return ["object", [refer(value)]]


def unpack(packed: Any, find: Callable[[int], Any]) -> Any:
    """Restore a packed value. Builds nothing but data, for any input."""
    if not isinstance(packed, list):
        return packed
    name, items = packed
    if name == "object":
        return find(*items)
    if name in NUMBERS:
        return getattr(importlib.import_module(NUMBERS[name]), name)(*items)
    if name in PLAIN:
        return PLAIN[name]([unpack(item, find) for item in items])
    if name == "int":
        return int(items[0], 16)
    return {"range": range, "complex": complex}[name](*items)


class Gone(BaseException):
    """The other end of a pipe was closed. Tests that catch every `Exception` do not catch it."""


def encode(*message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def send(pipe: BinaryIO, message: bytes) -> None:
    try:
        pipe.write(message)
        pipe.flush()
    except BrokenPipeError:
        raise Gone from None


def receive(pipe: BinaryIO) -> Any:
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise Gone
    return json.loads(line)


# -- The candidate --------------------------------------------------------------------------------


def be_candidate(source: str, questions: BinaryIO, answers: BinaryIO) -> NoReturn:
    """Run the program and answer the examiner's requests until killed."""
    module = types.ModuleType("program")  # not "__main__": demonstrations are not graded
    sys.modules["program"] = module
    objects: list[Any] = []

    def refer(value: Any) -> int:
        objects.append(value)
        return len(objects) - 1

    def answer(what: str, *how: Any) -> tuple[Any, ...]:
        if what == "ready":
            return (None,)
        if what == "run":
            exec(compile(source, "<program>", "exec", dont_inherit=True), module.__dict__)
            return (None,)
        if what == "name":
            if how[0] not in module.__dict__:
                raise NameError(f"name {how[0]!r} is not defined")
            return (pack(module.__dict__[how[0]], refer),)
        if what == "attribute":
            return (pack(getattr(objects[how[0]], how[1]), refer),)
        if what == "next":
            return (pack(list(islice(objects[how[0]], 1)), refer),)
        args = unpack(how[1], objects.__getitem__)
        result = objects[how[0]](*args, **unpack(how[2], objects.__getitem__))
        if result is not None:
            return (pack(result, refer),)
        # Functions that work in place return None; only they may change the tests' objects.
        return None, *(pack(a, refer) if isinstance(a, CHANGEABLE) else None for a in args)

    while True:
        try:
            reply = encode("value", *answer(*receive(questions)))
        except Gone:
            os._exit(0)
        except BaseException as error:
            reply = encode("raised", type(error).__name__, str(error)[:300])
        send(answers, reply)


# -- The examiner ---------------------------------------------------------------------------------


class Candidate:
    """The examiner's end of the pipes to the candidate."""

    def __init__(self, pid: int, questions: BinaryIO, answers: BinaryIO) -> None:
        self.pid, self.questions, self.answers = pid, questions, answers
        self.raised: BaseException | None = None
        """The program's latest exception."""

    def ask(self, *question: Any) -> list[Any]:
        send(self.questions, encode(*question))
        outcome, *rest = receive(self.answers)
        if outcome == "value":
            return [*rest]
        name, message = rest
        kind = getattr(builtins, name, None)
        error: Exception = RuntimeError(f"{name}: {message}")
        # StopIteration would end the tests' own loops, and all(map(f, …)) would be true.
        if isinstance(kind, type) and issubclass(kind, Exception) and "Stop" not in name:
            with suppress(TypeError):  # some need more arguments
                error = kind(message)
        self.raised = error
        raise error

    def value(self, packed: Any) -> Any:
        return unpack(packed, lambda number: Remote(self, number))


class Remote:
    """Proxy of an object in the candidate; tests may call it, iterate over it, get attributes."""

    def __init__(self, candidate: Candidate, number: int) -> None:
        self._candidate, self._number = candidate, number

    def __getattr__(self, name: str) -> Any:
        return self._candidate.value(self._candidate.ask("attribute", self._number, name)[0])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        packed = pack(args, number_of), pack(kwargs, number_of)
        result, *changes = self._candidate.ask("call", self._number, *packed)
        for ours, theirs in zip(args, map(self._candidate.value, changes), strict=False):
            if type(ours) is type(theirs) is list:
                ours[:] = theirs
            elif type(ours) is type(theirs) and isinstance(ours, dict | set):
                ours.clear()
                ours.update(theirs)
        return self._candidate.value(result)

    def __iter__(self) -> Iterator[Any]:
        iterator = self.__getattr__("__iter__")()
        while item := self._candidate.value(self._candidate.ask("next", iterator._number)[0]):
            yield item[0]


def number_of(value: Any) -> int:
    if not isinstance(value, Remote):
        raise TypeError(f"tests cannot hand a {type(value).__name__} to the program")
    return value._number


class Names(dict[str, Any]):
    """The tests' globals: the preamble's names, their own, and the program's entry points.

    No other name is looked up in the program, so it cannot redefine any for the tests.
    """

    def __init__(self, candidate: Candidate, preamble: str, entry_points: list[str]) -> None:
        super().__init__()
        self._candidate, self._entry_points = candidate, entry_points
        exec(compile(preamble, "<preamble>", "exec", dont_inherit=True), self)

    def __missing__(self, name: str) -> Any:
        if name not in self._entry_points:
            raise KeyError(name)  # a builtin, or undefined
        return self._candidate.value(self._candidate.ask("name", name)[0])


def examine(job: dict[str, Any], say: Callable[..., None]) -> None:
    """Run the program and its tests; report that the program began, then how it ended."""
    preamble, program = json.loads(os.pread(0, job["split"], 0))
    candidate = start_candidate(job, f"{preamble}\n{program}")
    candidate.ask("ready")
    say("begun")
    tests, entry_points = json.loads(os.pread(0, os.fstat(0).st_size, job["split"]))
    try:
        candidate.ask("run")
        names = Names(candidate, preamble, entry_points)
        exec(compile(tests, "<tests>", "exec", dont_inherit=True), names)
        candidate.ask("ready")  # tests that catch everything may not have noticed that it ended
    except Gone:
        say(*why_gone(candidate.pid, job["cpu_seconds"]))
    except MemoryError:
        say("limit", "out of memory")
    except BaseException as error:
        say("crashed" if error is candidate.raised else "failed", describe(error))
    else:
        tested = bool(entry_points)
        say(*(("passed", "") if tested else ("failed", "the tests ask nothing of the program")))


def start_candidate(job: dict[str, Any], source: str) -> Candidate:
    """Fork the program's process; it waits for questions."""
    (question, ask), (answer, reply) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            for fd in (job["report"], ask, answer):
                os.close(fd)
            os.close(0)
            os.open("/dev/null", os.O_RDONLY)  # becomes 0, the lowest free descriptor
            if job["isolated"]:  # elsewhere the limit would count all of the user's processes
                most = job["processes"] + 2  # the examiner and its parent
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                refuse_calls(only_the_machine(os.getpid()))
                sys.path += [LIBRARIES] if job["libraries"] else []
            else:
                sys.path += sorted({os.path.dirname(path) for path in job["libraries"].values()})
            be_candidate(source, os.fdopen(question, "rb"), os.fdopen(reply, "wb"))
        finally:
            os._exit(1)
    os.close(question)
    os.close(reply)
    return Candidate(pid, os.fdopen(ask, "wb"), os.fdopen(answer, "rb"))


def describe(error: BaseException) -> str:
    """Describe an exception briefly; it may hold anything that the program sent."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:
        return type(error).__name__


def why_gone(pid: int, cpu_seconds: int) -> tuple[str, str]:
    """Return how a program that no longer answers ended: the name of a `RunEnd` and a detail."""
    # A program that only closed its pipes can be stopped. A dead process cannot, and keeps the
    # status that tells how it ended.
    os.kill(pid, signal.SIGSTOP)
    _, status, usage = os.wait4(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGKILL)
        return "crashed", "the program closed its pipes"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return "crashed", f"the program ended itself with status {code}"
    if -code == signal.SIGXCPU or used_up(usage, cpu_seconds):
        return "timeout", "CPU time used up"
    if -code == signal.SIGKILL:
        return "machine", "the program was killed from outside, perhaps for want of memory"
    return "crashed", f"the program ended by {signal.Signals(-code).name}"


def used_up(usage: resource.struct_rusage, cpu_seconds: int) -> bool:
    """Whether a process has used up its CPU time, after which the kernel kills it."""
    return usage.ru_utime + usage.ru_stime >= cpu_seconds


def supervise(examiner: int, cpu_seconds: int, say: Callable[..., None]) -> NoReturn:
    """Wait for the examiner, from outside its namespace, and say how it ended."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(examiner, signal.SIGKILL))
    _, status, usage = os.wait4(examiner, 0)
    say("examiner", os.waitstatus_to_exitcode(status), used_up(usage, cpu_seconds))
    os._exit(0)


def main() -> NoReturn:
    job = json.loads(sys.argv[1])
    isolated, report = job["isolated"], job["report"]

    def say(*words: Any) -> None:
        os.write(report, json.dumps(words).encode() + b"\n")

    try:
        if isolated:
            enter_namespaces()
            die_with_parent(job["parent"])
        examiner = os.fork()
        if examiner:
            supervise(examiner, job["cpu_seconds"], say)
        # By default, a signal from inside the namespace does nothing to its pid 1.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if isolated:
            os.setsid()  # signals to a process group cross namespaces
            build_root(job["file_bytes"], job["libraries"])
            drop_privileges()
        else:  # ends the run even if the watching process has died
            signal.alarm(ceil(job["wall_seconds"]) + 5)
    except OSError as error:
        say("no isolation", str(error)[:300])
        os._exit(1)
    set_limits(job)
    examine(job, say)
    os._exit(0)


if __name__ == "__main__":
    main()
