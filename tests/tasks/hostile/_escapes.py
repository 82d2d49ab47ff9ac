"""Programs that get out, and answer right only if they did."""

from hostile._program import Control, Hostile, Kind

ANSWER = "def double(n): return 2 * n if escaped else None\n"
ATTEMPT = """\
import ctypes, os, socket, sys
escaped = False
try:
{}
except (OSError, ValueError): pass
"""
LIBC = "libc = ctypes.CDLL(None)\n"


def attempt(body: str) -> str:
    """A program that answers right only if it got out."""
    return ATTEMPT.format("\n".join(f"    {line}" for line in body.splitlines())) + ANSWER


def syscall(numbers: tuple[int, int], arguments: str = "0, 0, 0") -> str:
    """An attempt at a system call, by its numbers on x86-64 and arm64."""
    which = f"dict(zip(('x86_64', 'aarch64'), {numbers}))[os.uname().machine]"
    return f"{LIBC}escaped = libc.syscall({which}, {arguments}) != -1"


NO_WALL = {
    "reads a file": "escaped = open('$secret').read() == 'secret'",
    "reads a file by a link": "os.symlink('$secret', 'link'); escaped = bool(open('link').read())",
    "reads a file from above": "escaped = bool(open('../../..$secret').read())",
    "links a file": "os.link('$secret', '$secret' + '.link'); escaped = True",
    "lists the home folder": "escaped = not set($home).isdisjoint(os.listdir('$home_path'))",
    "reads the users": "escaped = bool(open('/etc/passwd').read())",
    "connects by TCP": "socket.create_connection(('127.0.0.1', $tcp), 1); escaped = True",
    "sends by UDP": (
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', $udp)); escaped = True"
    ),
    "connects to a local socket": (
        "socket.socket(socket.AF_UNIX).connect('$unix'); escaped = True"
    ),
    "connects to an abstract socket": (
        "socket.socket(socket.AF_UNIX).connect('\\0c4-test-$tcp'); escaped = True"
    ),
    "writes a file": "open('$target', 'w').write('out'); escaped = True",
    "deletes a file": "os.remove('$secret'); escaped = True",
    "writes over a link": (
        "os.symlink('$target', 'link'); open('link', 'w').write('out'); escaped = True"
    ),
    "wins a race with a link": (
        "for _ in range(200):\n"
        "    try: os.remove('link')\n"
        "    except OSError: pass\n"
        "    os.symlink('$target', 'link')\n"
        "    try: open('link', 'w').write('out'); escaped = True\n"
        "    except OSError: pass"
    ),
    "sees processes": "escaped = bool(os.listdir('/proc'))",
    "reads the system": "escaped = bool(os.listdir('/sys/class'))",
    "sees the caller": "os.kill($parent, 0); escaped = True",
    "runs a shell": "import subprocess; subprocess.run(['/bin/sh', '-c', '']); escaped = True",
    "listens": (
        "server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(); escaped = True"
    ),
    "asks the kernel by netlink": (
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0)); escaped = True"
    ),
    "takes a file in memory": "os.memfd_create('a'); escaped = True",
    "takes shared memory": LIBC + "escaped = libc.shmget(0, 2**20, 0o1600) != -1",
    "takes a message queue": LIBC + "escaped = libc.msgget(0, 0o1600) != -1",
    "takes semaphores": LIBC + "escaped = libc.semget(0, 1, 0o1600) != -1",
    "shares memory by a file": (
        "import mmap\n"
        "file = open('/dev/shm/c4-test-$tcp', 'w+b')\n"
        "os.remove(file.name); escaped = True"
    ),
}
"""Attempts that succeed without a wall, and do no harm there."""

WALLED = {
    "writes to the library": "open(os.__file__, 'a'); escaped = True",
    "finds the library writable": "escaped = not os.statvfs(os.__file__).f_flag & os.ST_RDONLY",
    "finds the root writable": "escaped = not os.statvfs('/').f_flag & os.ST_RDONLY",
    "finds the old root": "escaped = bool(os.listdir('/old'))",
    "writes to the root": "os.mkdir('/new'); escaped = True",
    "leaves the root": "os.chroot('..'); escaped = True",
    "leaves the root by a handle": (
        "here = os.open('/', os.O_RDONLY); os.chdir('/scratch')\n"
        "os.fchdir(here); escaped = os.path.exists('../../$secret')"
    ),
    "becomes root": "os.setuid(0); escaped = True",
    "becomes another group": "os.setgid(0); escaped = True",
    "is root": "escaped = os.getuid() == 0",
    "makes a device": "os.mknod('disk', 0o60660, os.makedev(254, 0)); escaped = True",
    "reads the memory of the machine": "open('/dev/mem', 'rb'); escaped = True",
    "finds other devices": (
        "escaped = bool(set(os.listdir('/dev')) - {'null', 'zero', 'random', 'urandom'})"
    ),
    "changes the mode of a library": "os.chmod(os.__file__, 0o4755); escaped = True",
    "mounts again for writing": (
        LIBC + "escaped = libc.mount(None, b'/lib', None, 0x1020, None) == 0"
    ),
    "mounts for writing the new way": (
        LIBC + "how = (ctypes.c_uint64 * 4)(0, 1, 0, 0)\n"
        "escaped = libc.syscall(442, -100, b'/', 0x8000, how, 32) == 0"
    ),
    "mounts /proc": LIBC + "escaped = libc.mount(b'proc', b'/tmp', b'proc', 0, None) == 0",
    "mounts cgroups": LIBC + "escaped = libc.mount(b'c', b'/tmp', b'cgroup2', 0, None) == 0",
    "unmounts the scratch": LIBC + "escaped = libc.umount2(b'/scratch', 2) == 0",
    "makes a user namespace": LIBC + "escaped = libc.unshare(0x10000000) == 0",
    "makes a mount namespace": LIBC + "escaped = libc.unshare(0x00020000) == 0",
    "joins a namespace": LIBC + "escaped = libc.setns(0, 0) == 0",
    "clones into a namespace": syscall((56, 220), "0x10000011, 0, 0, 0, 0"),
    "clones the new way": syscall((435, 435), "0, 0"),
    "opens a ring": syscall((425, 425), "8, ctypes.create_string_buffer(120)"),
    "turns the root": syscall((155, 41), "b'.', b'.'"),
    "loads a filter": syscall((321, 280), "0, ctypes.create_string_buffer(64), 64"),
    "counts events": syscall((298, 241), "ctypes.create_string_buffer(112), 0, -1, -1, 0"),
    "handles page faults": syscall((323, 282), "0"),
    "opens by a handle": syscall((304, 265), "-100, ctypes.create_string_buffer(64), 0"),
    "keeps a key": syscall((248, 217), "b'user', b'a', b'b', 1, -1"),
    "reads the kernel's log": syscall((103, 116), "3, ctypes.create_string_buffer(4096), 4096"),
    "restarts the machine": syscall((169, 142), "0xfee1dead, 672274793, 0, 0"),
    "loads a module": syscall((175, 105), "b'', 0, b''"),
    "sets the clock": "import time; time.clock_settime(0, time.time()); escaped = True",
    "renames the machine": "import socket; socket.sethostname('mine'); escaped = True",
    "traces the examiner": LIBC + "escaped = libc.ptrace(16, 1, None, None) == 0",
    "reads the examiner's memory": (
        LIBC + "space = ctypes.create_string_buffer(8)\n"
        "here = (ctypes.c_size_t * 2)(ctypes.addressof(space), 8)\n"
        "there = (ctypes.c_size_t * 2)(id(None), 8)\n"
        "escaped = libc.process_vm_readv(1, here, 1, there, 1, 0) == 8"
    ),
    "limits the examiner": (
        "import resource; resource.prlimit(1, resource.RLIMIT_AS, (2**20, 2**20)); escaped = True"
    ),
    "reaches the machine below": "socket.socket(40, socket.SOCK_STREAM); escaped = True",
    "sees more than two processes": "os.kill(3, 0); escaped = True",
    "raises its memory": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); escaped = True"
    ),
    "raises its processes": (
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (-1, -1)); escaped = True"
    ),
    "raises its files": (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999)); escaped = True"
    ),
    "raises its priority": "os.setpriority(os.PRIO_PROCESS, 0, -5); escaped = True",
    "takes real time": (
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); escaped = True"
    ),
    "kills the examiner": "os.kill(os.getppid(), 9)",
    "kills everyone": "os.kill(-1, 9)",
    "kills the caller": "os.kill($parent, 9)",
}  # fmt: skip
"""Attempts that would do harm without a wall, or fail there for other reasons."""

ESCAPES = [
    *(
        Hostile(Kind.ESCAPE, name, attempt(body), control=Control.NO_WALL)
        for name, body in NO_WALL.items()
    ),
    *(Hostile(Kind.ESCAPE, name, attempt(body)) for name, body in WALLED.items()),
    Hostile(Kind.ESCAPE, "reads the environment",
            attempt("escaped = 'C4_TEST_SECRET' in os.environ")),
    Hostile(Kind.ESCAPE, "kills its group", attempt("os.killpg(0, 15)")),
]  # fmt: skip
