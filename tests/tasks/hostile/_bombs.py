"""Programs that use everything up."""

from hostile._program import CLOCK, CRASH, LIMIT, NOT_PASSED, Ends, Hostile, Kind


def bomb(name: str, program: str, ends: Ends, slow: bool = False) -> Hostile:
    return Hostile(Kind.EXHAUSTION, name, program, ends=ends, slow=slow)


BOMBS = [
    bomb("endless loop", "while True: pass", CLOCK),
    bomb("endless loop when called", "def double(n):\n    while True: pass", CLOCK, slow=True),
    bomb("endless sleep", "import time; time.sleep(1e6)", CLOCK),
    bomb("endless wait for a lock",
         "import threading\nlock = threading.Lock(); lock.acquire(); lock.acquire()", CLOCK, True),
    bomb("endless wait for a pipe", "import os; os.read(os.pipe()[0], 1)", CLOCK, slow=True),
    bomb("deaf to signals",
         "import signal\n"
         "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
         "    signal.signal(number, lambda *_: None)\n"
         "while True: pass", CLOCK, slow=True),
    bomb("swallows everything",
         "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
         CLOCK, slow=True),
    bomb("a pattern that backtracks", "import re; re.match('(a+)+c', 'a' * 60)", CLOCK, True),
    bomb("a giant number", "10 ** 10 ** 9", NOT_PASSED, slow=True),
    bomb("a giant number in text", "x = 9 ** 99999; str(x)", NOT_PASSED),
    bomb("a giant answer", "def double(n): return 1 << 2 ** 27", NOT_PASSED, slow=True),
    bomb("fork bomb",
         "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", NOT_PASSED, True),
    bomb("thread bomb",
         "import threading, time\n"
         "while True: threading.Thread(target=time.sleep, args=(60,)).start()", NOT_PASSED),
    bomb("memory bomb", "x = [0]\nwhile True: x += x", LIMIT),
    bomb("memory bomb when called", "def double(n): return 'a' * 2**40", LIMIT),
    bomb("memory bomb in the answer", "def double(n): return 'a' * 2**27", LIMIT),
    bomb("memory by mmap", "import mmap\nkept = [mmap.mmap(-1, 2**26) for _ in range(99)]", CRASH),
    bomb("memory in children",
         "import os, time\n"
         "while True:\n"
         "    if not os.fork(): x = bytearray(2**26); time.sleep(60)\n", CRASH),
    bomb("an endless answer", "def double(n):\n    while True: yield 1", NOT_PASSED),
    bomb("huge stdout", "while True: print('a' * 1000)", LIMIT),
    bomb("huge stderr", "import os\nwhile True: os.write(2, b'a' * 10**5)", LIMIT),
    bomb("a huge exception", "def double(n): raise ValueError('a' * 2**26)", NOT_PASSED),
    bomb("huge file", "with open('a', 'wb') as file:\n    while True: file.write(b'a' * 2**16)",
         CRASH),
    bomb("a file with a hole", "open('a', 'wb').truncate(2**40)", CRASH),
    bomb("many files",
         "n = 0\nwhile True:\n"
         "    with open(f'{(n := n + 1)}', 'wb') as file: file.write(b'a' * 2**16)", CRASH),
    bomb("many empty files", "n = 0\nwhile True: open(f'{(n := n + 1)}', 'w').close()", CRASH),
    bomb("deep folders",
         "import os\nwhile True: os.mkdir('d'); os.chdir('d')", CRASH),
    bomb("open files", "kept = []\nwhile True: kept.append(open('/dev/null'))", CRASH),
    bomb("full pipes",
         "import os\nkept = []\nwhile True:\n    kept.append(os.pipe())\n"
         "    os.write(kept[-1][1], bytes(2**16))", CRASH),
    bomb("watches", "import ctypes\nlibc = ctypes.CDLL(None)\n"
         "while libc.inotify_init() >= 0: pass\nraise OSError", CRASH),
    bomb("links in a ring", "import os\nos.symlink('a', 'b'); os.symlink('b', 'a'); open('a')",
         CRASH),
    bomb("zombies", "import os\nwhile True:\n    if not os.fork(): os._exit(0)", CRASH),
    bomb("a compiler bomb", "eval('(' * 10**4 + ')' * 10**4)", NOT_PASSED),
    bomb("a parser bomb", "compile('-' * 10**6 + '1', '', 'eval')", NOT_PASSED),
    bomb("a zip bomb", "import zlib\nx = zlib.compress(bytes(2**20))\n"
         "y = [zlib.decompress(x) for _ in range(2**12)]", LIMIT),
]  # fmt: skip
