"""Programs that try to end as if the machine had failed, and would not count."""

from dataclasses import replace

from hostile._program import WRONG, Control, Hostile, Kind
from hostile._reports import FIND_PIPES

C_CALLS = "import ctypes, os, signal, time\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def blame(name: str, program: str, slow: bool = False) -> Hostile:
    """A program that tries to end as if the machine had failed, and would not count."""
    return Hostile(Kind.BLAME, name, C_CALLS + program, slow=slow)


def killed(name: str, program: str) -> Hostile:
    """A program that tries to end by SIGKILL, as the kernel ends one for want of memory."""
    return replace(blame(name, program), control=Control.NO_FILTER)


SENT = "time.sleep(0.3)\n" + WRONG
BLAMES = [
    killed("kills itself", "os.kill(os.getpid(), 9)"),
    blame("stops itself", "os.kill(os.getpid(), signal.SIGSTOP)"),
    killed("kills its group", "os.killpg(0, 9)"),
    killed("kills its thread", "import threading; signal.pthread_kill(threading.get_ident(), 9)"),
    killed("is killed by its child",
          "parent = os.getpid()\nif not os.fork(): os.kill(parent, 9); os._exit(0)\n" + SENT),
    killed("is killed with everyone", "if not os.fork(): os.kill(-1, 9); os._exit(0)\n" + SENT),
    blame("is stopped by its child",
          "parent = os.getpid()\nif not os.fork(): os.kill(parent, 19); os._exit(0)\n" + SENT),
    killed("queues a signal to itself",
          "info = ctypes.create_string_buffer(128)\n"
          "info[0], info[8:12] = 9, (-1).to_bytes(4, 'little', signed=True)\n"
          "libc.syscall({'x86_64': 129, 'aarch64': 138}[os.uname().machine], os.getpid(), 9, info)"
          "\n" + SENT),
    killed("sets a timer that kills",
          "event = ctypes.create_string_buffer(64); event[8] = 9\n"
          "timer = ctypes.c_void_p()\n"
          "libc.timer_create(1, event, ctypes.byref(timer))\n"
          "libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, 10**6), None)\n" + SENT),
    killed("has a child whose end kills",
          "if not libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 9, 0, 0, 0, 0):"
          "\n    os._exit(0)\n" + SENT),
    killed("has a pipe that kills",
          "import fcntl\n"
          "read, write = os.pipe()\n"
          "fcntl.fcntl(read, 10, 9)\n"
          "fcntl.fcntl(read, fcntl.F_SETOWN, os.getpid())\n"
          "fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)\n"
          "os.write(write, b'x')\n" + SENT),
    killed("shortens its CPU time",
          "import resource; resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\n"
          "while True: pass"),
    blame("shortens the examiner's CPU time",
          "import resource; resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\n" + WRONG),
    blame("shortens the examiner's memory",
          "import resource; resource.prlimit(1, resource.RLIMIT_AS, (1, 1))\n" + WRONG),
    blame("wakes the examiner's alarm", "os.kill(1, signal.SIGALRM)\n" + WRONG),
    blame("interrupts the examiner", "os.kill(1, signal.SIGINT)\n" + WRONG),
    blame("stops the examiner", "os.kill(1, signal.SIGSTOP)\n" + WRONG),
    blame("makes itself unimportant", "os.nice(19)\nwhile True: pass"),
    blame("makes the examiner unimportant", "os.setpriority(os.PRIO_PROCESS, 1, 19)\n" + WRONG),
    blame("idles", "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
          "while True: pass"),
    blame("keeps to one processor", "os.sched_setaffinity(0, {0})\nwhile True: pass"),
    blame("waits as if stuck",
          "libc.syscall({'x86_64': 58, 'aarch64': 220}[os.uname().machine], 0x4111, 0) or "
          "time.sleep(60)\n" + WRONG),
    blame("aborts", "os.abort()"),
    blame("faults", "ctypes.memset(8, 0, 8)"),
    blame("reads behind a file's end",
          "import mmap\nfile = open('a', 'w+b'); file.truncate(8192)\n"
          "place = mmap.mmap(file.fileno(), 8192); file.truncate(0); place[5000]"),
    blame("filters its own calls",
          "code = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 0, 0x80]))\n"
          "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
          "libc.prctl(22, 2, ctypes.byref(P(1, ctypes.addressof(code))), 0, 0)\n" + WRONG),
    blame("keeps the examiner busy",
          "class Fraction:\n    __str__ = lambda self: '1e999999999'\n"
          "def double(n): return Fraction()", slow=True),
    blame("fills the examiner's memory",
          FIND_PIPES + "def double(n):\n    while True: say(b'a' * 2**16)"),
    blame("never answers", FIND_PIPES + "def double(n): time.sleep(60)", slow=True),
    blame("works in many processes and hides them",
          "kids = [os.fork() for _ in range(2)]\nwhile True: pass", slow=True),
]  # fmt: skip
