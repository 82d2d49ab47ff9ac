"""Programs that leave something behind."""

from hostile._program import CLOCK, CRASH, HONEST, PASSED, Ends, Hostile, Kind


def survivor(name: str, program: str, ends: Ends = PASSED, slow: bool = False) -> Hostile:
    """A program that answers rightly, and leaves something behind."""
    program = f"import os, signal, sys, time\n{program}\n{HONEST}"
    return Hostile(Kind.SURVIVAL, name, program, ends=ends, slow=slow)


DAEMON = (
    "if not os.fork():\n"
    "    os.setsid()\n"
    "    if not os.fork():\n"
    "        {}\n"
    "        time.sleep(60)\n"
    "    os._exit(0)\n"
)
SURVIVORS = [
    survivor("a daemon", DAEMON.format("os.closerange(0, 256)")),
    survivor("a daemon with open descriptors", DAEMON.format("pass")),
    survivor("a daemon deaf to signals", DAEMON.format(
        "[signal.signal(n, signal.SIG_IGN) for n in set(signal.Signals) - {9, 19}]"
    )),
    survivor("a daemon under another name", DAEMON.format(
        "__import__('ctypes').CDLL(None).prctl(15, b'innocent', 0, 0, 0)"
    )),
    survivor("a busy daemon", DAEMON.format("exec('while True: pass')")),
    survivor("a child that is stopped",
             "pid = os.fork()\nif not pid: time.sleep(60)\nos.kill(pid, signal.SIGSTOP)"),
    survivor("a child in a group of its own",
             "if not os.fork(): os.setpgid(0, 0); time.sleep(60)"),
    survivor("a child that forks for ever",
             "if not os.fork():\n    while True:\n        if os.fork(): os._exit(0)\n"
             "        time.sleep(0.01)"),
    survivor("a thread", "import threading\n"
             "threading.Thread(target=time.sleep, args=(60,)).start()"),
    survivor("a zombie", "if not os.fork(): os._exit(0)"),
    survivor("a child of an ended program",
             "if not os.fork(): os.closerange(0, 256); time.sleep(60)\nos._exit(0)", CRASH),
    survivor("a child that keeps the pipes of an ended program",
             "if not os.fork(): time.sleep(60)\nos._exit(0)", CLOCK, slow=True),
    survivor("a child at exit", "import atexit\n"
             "atexit.register(lambda: os.fork() or time.sleep(60))\nraise SystemExit", CRASH),
    survivor("a pool", "from multiprocessing import Process\n"
             "Process(target=time.sleep, args=(60,)).start()"),
]  # fmt: skip
