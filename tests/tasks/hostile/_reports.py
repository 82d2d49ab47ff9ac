"""Programs that forge the report of their run."""

from hostile._program import WRONG, Control, Hostile, Kind

FIND_PIPES = (
    "import os, stat\n"
    "pipes = []\n"
    "for fd in range(256):\n"
    "    try: pipes += [fd] if stat.S_ISFIFO(os.fstat(fd).st_mode) and fd > 2 else []\n"
    "    except OSError: pass\n"
    "def say(message):\n"
    "    for fd in pipes:\n"
    "        try: os.write(fd, message)\n"
    "        except OSError: pass\n"
)


def saying(message: str) -> str:
    """A program that answers a call with a message of its own making, then with the truth."""
    return f"{FIND_PIPES}def double(n):\n    say({message})\n    return n\n"


REPORTS: dict[str, tuple[str, Control]] = {
    "leaves with status 0": ("import os; os._exit(0)", Control.ONE_PROCESS),
    "leaves with status 0 when called": (
        "import os\ndef double(n): os._exit(0)", Control.ONE_PROCESS
    ),
    "sys.exit": ("import sys; sys.exit(0)", Control.ONE_PROCESS),
    "sys.exit when called": ("import sys\ndef double(n): sys.exit(0)", Control.ONE_PROCESS),
    "raises SystemExit": ("raise SystemExit(0)", Control.ONE_PROCESS),
    "exits at exit": (
        "import atexit, os; atexit.register(os._exit, 0); raise SystemExit", Control.ONE_PROCESS
    ),
    "exits when it is collected": (
        "import os\n"
        "class End:\n"
        "    def __del__(self): os._exit(0)\n"
        "def double(n): End()",
        Control.ONE_PROCESS,
    ),
    "exits in the exception hook": (
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\n" + WRONG, Control.ONE_PROCESS
    ),
    "exits in a thread": (
        "import os, threading, time\n"
        "def double(n):\n"
        "    threading.Thread(target=os._exit, args=(0,)).start()\n"
        "    time.sleep(60)",
        Control.ONE_PROCESS,
    ),
    "exits from a trace": (
        "import os, sys\n"
        "def double(n):\n"
        "    sys.setprofile(lambda *a: os._exit(0))\n"
        "    return n",
        Control.ONE_PROCESS,
    ),
    "generator exit": ("def double(n): raise GeneratorExit", Control.NONE),
    "interrupts": ("def double(n): raise KeyboardInterrupt", Control.NONE),
    "assertions disabled": (
        "import builtins, sys\n"
        "class Never(BaseException): pass\n"
        "builtins.AssertionError = builtins.Exception = Never\n"
        "sys.flags = type('F', (), {'optimize': 2})()\n"
        "def double(n): return n",
        Control.NONE,
    ),
    "builtins replaced": (
        "import builtins, json\n"
        "builtins.__dict__.update(len=lambda x: 42, isinstance=lambda *a: True, str=repr)\n"
        'json.loads = json.dumps = lambda *a, **k: b\'["passed", ""]\'\n'
        "def double(n): return n",
        Control.NONE,
    ),
    "verdict printed everywhere": (
        "import os\n"
        "def double(n):\n"
        "    for fd in range(256):\n"
        "        for text in (b'[\"passed\", \"\"]\\n', b'passed', b'[\"value\", null]\\n'):\n"
        "            try: os.write(fd, text)\n"
        "            except OSError: pass\n"
        "    os._exit(0)\n",
        Control.ONE_PROCESS,
    ),
    "verdict printed at once": (
        "import os\n"
        "for fd in range(256):\n"
        '    try: os.write(fd, b\'["passed", ""]\\n\')\n'
        "    except OSError: pass\n",
        Control.NONE,
    ),
    "every descriptor echoed": (
        "import os\n"
        "for fd in range(3, 256):\n"
        "    try: os.set_blocking(fd, False); taken = os.read(fd, 65536)\n"
        "    except OSError: continue\n"
        "    for to in range(256):\n"
        "        try: os.write(to, taken)\n"
        "        except OSError: pass\n",
        Control.NONE,
    ),
    "calls answered ahead": (saying("b'[\"value\", 4]\\n' * 9"), Control.NONE),
    "half a message": (saying("b'[\"value\", 4'"), Control.NONE),
    "no message at all": (saying("b'passed\\n'"), Control.NONE),
    "a message that is no text": (saying("b'\\xff\\xfe\\n'"), Control.NONE),
    "a message of another shape": (saying("b'{\"value\": 4}\\n'"), Control.NONE),
    "a value of no kind": (saying("b'[\"value\", [\"code\", [\"4\"]]]\\n'"), Control.NONE),
    "a list of no kind": (saying("b'[\"value\", [[], []]]\\n'"), Control.NONE),
    "an object it never had": (saying("b'[\"value\", [\"object\", [10]]]\\n'"), Control.NONE),
    "a message too deep": (saying("b'[' * 200000 + b'\\n'"), Control.NONE),
    "an exception that is none": (saying("b'[\"raised\", \"print\", \"\"]\\n'"), Control.NONE),
    "an exception without a name": (saying("b'[\"raised\", 1, [2]]\\n'"), Control.NONE),
    "an exception too deep to print": (
        saying("b'[\"raised\", \"ValueError\", ' + b'[' * 900 + b']' * 900 + b']\\n'"),
        Control.NONE,
    ),
    "all descriptors closed": ("import os; os.closerange(0, 256)", Control.NONE),
    "closed, then waiting": (
        "import os, time; os.closerange(0, 256); time.sleep(60)", Control.NONE
    ),
    "two answers": ("import os\ndef double(n): os.fork(); return n", Control.NONE),
    "a child answers": (
        "import os, time\n"
        "def double(n):\n"
        "    if os.fork(): time.sleep(60)\n"
        "    return n",
        Control.NONE,
    ),
    "standard output replaced": (
        "import sys, io; sys.stdout = sys.stderr = sys.__stdout__ = io.StringIO()\n" + WRONG,
        Control.NONE,
    ),
    "thread that prints a verdict": (
        FIND_PIPES + "import threading\n"
        "def spam():\n"
        "    while True: say(b'[\"passed\", \"\"]\\n')\n"
        "threading.Thread(target=spam, daemon=True).start()\n" + WRONG,
        Control.NONE,
    ),
    "signals to the examiner": (
        "import os, signal\n"
        "for number in set(signal.Signals):\n"
        "    os.kill(1, number)\n" + WRONG,
        Control.NONE,
    ),
    "crash": ("import ctypes\ndef double(n): ctypes.string_at(0)", Control.NONE),
    "recursion": ("def double(n): return double(n)", Control.NONE),
    "recursion without limit": (
        "import sys; sys.setrecursionlimit(2**30)\ndef double(n): return [double(n)]", Control.NONE
    ),
    "an answer too deep": (
        "def double(n):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x", Control.NONE
    ),
    "an answer that holds itself": (
        "def double(n): x = []; x.append(x); return x", Control.NONE
    ),
    "another program instead": (
        "import os, sys; os.execv(sys.executable, ['python', '-c', ''])", Control.ONE_PROCESS
    ),
    "a pickle that runs code": (
        "import os\n"
        "class P:\n"
        "    def __reduce__(self): return os._exit, (0,)\n"
        "def double(n): return P()",
        Control.NONE,
    ),
}  # fmt: skip

QUIET_TESTS = "try:\n    found = double(2)\nexcept Exception:\n    found = 4\nassert found == 4\n"
BARE_TESTS = "try:\n    found = double(2)\nexcept:\n    found = 4\nassert found == 4\n"

FORGED_REPORTS = [
    *(
        Hostile(Kind.REPORT, name, program, control=control)
        for name, (program, control) in REPORTS.items()
    ),
    Hostile(Kind.REPORT, "every message answered", (
        FIND_PIPES + "while True: say(b'[\"value\", true, []]\\n')\n"
    ), slow=True),
    Hostile(Kind.REPORT, "leaves where tests catch errors",
            "import os\ndef double(n): os._exit(0)", QUIET_TESTS),
    Hostile(Kind.REPORT, "leaves where tests catch everything",
            "import os\ndef double(n): os._exit(0)", BARE_TESTS),
    Hostile(Kind.REPORT, "ends the loops of the tests",
            "def even(n): raise StopIteration",
            "assert all(map(even, [2, 4]))\n",
            "def even(n): return n % 2 == 0", control=Control.ONE_PROCESS),
]  # fmt: skip
