"""The sandbox: right programs pass, wrong ones fail, hostile ones neither pass nor get out.

Escapes are written so that the program answers correctly only if it got out: "not passed" means
"did not get out", and a control run without isolation shows that the attempt itself is sound.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from string import Template

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.errors import ConfigError, SandboxError
from c4.tasks import _sandbox
from c4.tasks._sandbox import Isolation, Limits, Outcome, RunEnd, isolation, run_program
from c4.tasks._sandbox_child import pack, unpack

TESTS = "assert double(2) == 4\nassert double(21) == 42\n"
HONEST = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return n\n"
SHORT = Limits(
    wall_seconds=2, cpu_seconds=1, memory_bytes=256 * 2**20, output_bytes=2**16, file_bytes=2**20
)

isolated = pytest.mark.skipif(
    isolation() is Isolation.NONE,
    reason=f"programs cannot be isolated here: {_sandbox._what_is_missing()}",
)


def leftovers(parent: int) -> list[int]:
    """Sandbox processes that `parent` started and that still live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if b"_sandbox_child.py" in line and f'"parent": {parent}'.encode() in line:
                found.append(int(folder.name))
    return found


def run(program: str, tests: str = TESTS, preamble: str = "", limits: Limits = SHORT) -> Outcome:
    outcome = run_program(preamble, program, tests, limits=limits)
    assert leftovers(os.getpid()) == []
    assert outcome.detail.isprintable()
    assert len(outcome.detail) <= 200
    return outcome


@pytest.fixture
def no_isolation(monkeypatch):
    monkeypatch.setattr(_sandbox, "_what_is_missing", lambda: "unshare: Operation not permitted")


# -- Honest programs -------------------------------------------------------------------------------


@isolated
def test_a_right_program_passes():
    assert run(HONEST) == Outcome(RunEnd.PASSED)


@isolated
@pytest.mark.parametrize(
    ("program", "detail"),
    {
        "wrong answer": (WRONG, "AssertionError"),
        "exception": ("def double(n):\n    return n[0]", "TypeError: 'int' object is not"),
        "exception on the way": ("1 / 0\n" + HONEST, "ZeroDivisionError: division by zero"),
        "own exception": (
            "class Odd(Exception): pass\ndef double(n): raise Odd('a\\n\\x1b[31mb')",
            "RuntimeError: Odd: a [31mb",
        ),
        "syntax error": ("def double(n:\n", "SyntaxError: "),
        "missing function": ("def triple(n): return 3 * n", "NameError: name 'double' is not"),
        "input": ("n = input()\n" + HONEST, "EOFError: "),
        "nothing": ("", "NameError: "),
    }.values(),
)
def test_a_wrong_program_fails_and_says_why(program, detail):
    outcome = run(program)
    assert outcome.verdict is RunEnd.FAILED
    assert outcome.detail.startswith(detail)


@isolated
@pytest.mark.parametrize(
    ("program", "tests"),
    {
        "plain data": (
            "def f(x): return x",
            "for x in (None, True, 1.5, -0.0, float('inf'), 'é\\ud800', b'\\x00', (), [1, (2,)],\n"
            "          {1: {'a'}}, frozenset({2}), 1j, range(3), 2 ** 99999):\n"
            "    assert f(x) == x and type(f(x)) is type(x)",
        ),
        "numbers of the library": (
            "from decimal import Decimal\nfrom fractions import Fraction\n"
            "def f(): return [Decimal('0.5'), Fraction(1, 2)]",
            "assert f() == [0.5, 0.5]",
        ),
        "kinds of dict": (
            "from collections import Counter\ndef f(x): return Counter(x)",
            "assert f('aab') == {'a': 2, 'b': 1}",
        ),
        "a changed argument": ("def f(x): x.sort()", "x = [2, 1]\nf(x)\nassert x == [1, 2]"),
        "a changed dict": ("def f(x): x.pop(1)", "x = {1: 2}\nf(x)\nassert x == {}"),
        "an endless generator": (
            "def f():\n    n = 0\n    while True:\n        yield (n := n + 1)",
            "for n, m in zip(f(), range(1, 9)): assert n == m",
        ),
        "a returned function": ("def f(a): return lambda b: a + b", "assert f(1)(b=2) == 3"),
        "an object with methods": (
            "class Stack(list):\n    pass\nclass Box:\n"
            "    def __init__(self, n): self.n = n\n    def add(self, o): return self.n + o.n",
            "b = Box(3)\nassert b.n == 3 and b.add(Box(4)) == 7",
        ),
        "an expected exception": (
            "def f(x): raise KeyError(x)",
            "try: f('a')\nexcept KeyError: pass\nelse: assert False",
        ),
        "a builtin's name": ("def sum(a, b): return a * b", "assert sum(3, 4) == 12"),
        "a demonstration": (
            "def f(): return 1\nif __name__ == '__main__': raise SystemExit",
            "assert f() == 1",
        ),
        "a dataclass": (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass P:\n    x: int\ndef f(): return P(3).x",
            "assert f() == 3",
        ),
        "scratch files": (
            "import tempfile\ndef f():\n    with tempfile.NamedTemporaryFile('w+') as t:\n"
            "        t.write('a'); t.seek(0); open('b', 'w').close(); return t.read()",
            "assert f() == 'a'",
        ),
        "threads": (
            "from concurrent.futures import ThreadPoolExecutor as T\n"
            "def f():\n    with T(4) as t: return list(t.map(abs, [-1, -2]))",
            "assert f() == [1, 2]",
        ),
        "a thread that goes on": (
            "import threading, time\ndef f():\n"
            "    threading.Thread(target=time.sleep, args=(60,)).start()\n    return 1",
            "assert f() == 1",
        ),
    }.values(),
)
def test_tests_see_what_the_program_answers(program, tests):
    assert run(program, tests) == Outcome(RunEnd.PASSED)


@isolated
@pytest.mark.parametrize(
    ("lie", "tests"),
    [
        ("def abs(x): return 0", "assert abs(f(2) - 4) < 1e-6"),
        ("def error(a, b): return 0", "assert error(f(2), 4) == 0"),
        ("math.isclose = lambda a, b: True", "assert math.isclose(f(2), 4)"),
    ],
)
def test_helpers_of_the_preamble_and_builtins_cannot_be_redefined_for_the_tests(lie, tests):
    preamble = "import math\ndef error(a, b):\n    return a - b\n"
    assert run("def f(n): return 2 * n", tests, preamble).verdict is RunEnd.PASSED
    assert run(f"def f(n): return n\n{lie}", tests, preamble).verdict is RunEnd.FAILED


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.tuples(st.integers()), inner)
        | st.sets(st.integers() | st.binary())
    ),
)


@settings(max_examples=50, deadline=None)
@given(plain)
def test_plain_data_crosses_unchanged(value):
    assert unpack(pack(value, lambda _: 0), lambda _: None) == value


@isolated
def test_many_runs_at_once_from_threads_do_not_meet():
    programs = [HONEST, WRONG] * 4
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda p: run_program("", p, TESTS), programs))
    assert [outcome.verdict for outcome in outcomes] == [RunEnd.PASSED, RunEnd.FAILED] * 4


@isolated
def test_the_order_of_sets_is_the_same_in_every_run():
    tests = "assert f() == " + repr("".join(_sets_order()))
    assert run("def f(): return ''.join({'a', 'b', 'c', 'd', 'e'})", tests).verdict == "passed"


def _sets_order() -> list[str]:
    command = [sys.executable, "-c", "print(*{'a', 'b', 'c', 'd', 'e'})"]
    env = {"PYTHONHASHSEED": "0"}
    return subprocess.run(command, env=env, capture_output=True, text=True).stdout.split()


# -- Hostile programs: forging a pass --------------------------------------------------------------

FORGERIES = {
    "leaves with status 0": "import os; os._exit(0)",
    "leaves with status 0 when called": "import os\ndef double(n): os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "sys.exit when called": "import sys\ndef double(n): sys.exit(0)",
    "raises SystemExit": "raise SystemExit(0)",
    "exits at exit": "import atexit, os; atexit.register(os._exit, 0); raise SystemExit",
    "generator exit": "def double(n): raise GeneratorExit",
    "assertions disabled": (
        "import builtins, sys\n"
        "class Never(BaseException): pass\n"
        "builtins.AssertionError = builtins.Exception = Never\n"
        "sys.flags = type('F', (), {'optimize': 2})()\n"
        "def double(n): return n"
    ),
    "builtins replaced": (
        "import builtins, json\n"
        "builtins.__dict__.update(len=lambda x: 42, isinstance=lambda *a: True, str=repr)\n"
        'json.loads = json.dumps = lambda *a, **k: b\'["passed", ""]\'\n'
        "def double(n): return n"
    ),
    "verdict printed everywhere": (
        "import os\n"
        "def double(n):\n"
        "    for fd in range(256):\n"
        "        for text in (b'[\"passed\", \"\"]', b'passed', b'[\"value\", null]\\n'):\n"
        "            try: os.write(fd, text)\n"
        "            except OSError: pass\n"
        "    os._exit(0)\n"
    ),
    "verdict printed at once": (
        "import os\n"
        "for fd in range(256):\n"
        '    try: os.write(fd, b\'["passed", ""]\\n\')\n'
        "    except OSError: pass\n"
    ),
    "every descriptor echoed": (
        "import os\n"
        "for fd in range(3, 256):\n"
        "    try: os.set_blocking(fd, False); heard = os.read(fd, 65536)\n"
        "    except OSError: continue\n"
        "    for to in range(256):\n"
        "        try: os.write(to, heard)\n"
        "        except OSError: pass\n"
    ),
    "every message answered": (
        "import os\n"
        "while True:\n"
        "    for fd in range(3, 9):\n"
        "        try: os.write(fd, b'[\"value\", true, []]\\n')\n"
        "        except OSError: pass\n"
    ),
    "equal to everything": (
        "class Yes:\n"
        "    def __eq__(self, other): return True\n"
        "    __class__ = int\n"
        "def double(n): return Yes()"
    ),
    "a number equal to everything": (
        "class Yes(int):\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = int.__hash__\n"
        "def double(n): return Yes(7)"
    ),
    "all descriptors closed": "import os; os.closerange(0, 256)",
    "closed, then waiting": "import os, time; os.closerange(0, 256); time.sleep(60)",
    "two answers": "import os\ndef double(n): os.fork(); return n",
    "standard output replaced": (
        "import sys, io; sys.stdout = sys.stderr = sys.__stdout__ = io.StringIO()\n" + WRONG
    ),
    "thread that prints a verdict": (
        "import os, threading\n"
        "def spam():\n"
        "    while True:\n"
        "        for fd in range(3, 9):\n"
        '            try: os.write(fd, b\'["passed", ""]\')\n'
        "            except OSError: pass\n"
        "threading.Thread(target=spam, daemon=True).start()\n" + WRONG
    ),
    "crash": "import ctypes\ndef double(n): ctypes.string_at(0)",
    "recursion": "def double(n): return double(n)",
    "recursion without limit": (
        "import sys; sys.setrecursionlimit(2**30)\ndef double(n): return [double(n)]"
    ),
    "an answer too deep": (
        "def double(n):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x"
    ),
    "an answer that holds itself": "def double(n): x = []; x.append(x); return x",
    "another program instead": "import os, sys; os.execv(sys.executable, ['python', '-c', ''])",
}


@isolated
@pytest.mark.parametrize("program", FORGERIES.values(), ids=FORGERIES)
def test_a_pass_cannot_be_forged(program):
    assert run(program).verdict in (RunEnd.FAILED, RunEnd.KILLED, RunEnd.TIMEOUT, RunEnd.LIMIT)


@isolated
def test_a_program_cannot_end_the_loops_of_the_tests():
    tests = "assert all(map(even, [1, 3]))\nassert list(map(even, [1])) == []\n"
    assert run("def even(n): raise StopIteration", tests).verdict is RunEnd.FAILED


THIEVES = {
    "frames and garbage": (
        "import gc, sys\n"
        "def everything():\n"
        "    for frame in list(sys._current_frames().values()):\n"
        "        while frame:\n"
        "            yield frame.f_locals, frame.f_globals, frame.f_code.co_consts\n"
        "            frame = frame.f_back\n"
        "    yield from gc.get_objects()\n"
        "def search():\n"
        "    for thing in everything():\n"
        "        try: text = repr(thing)\n"
        "        except Exception: continue\n"
        "        look(text)\n"
    ),
    "trace and profile": (
        "import sys, threading\n"
        "def trace(frame, event, argument):\n"
        "    look(repr((frame.f_locals, frame.f_code.co_consts, argument)))\n"
        "    return trace\n"
        "def search():\n"
        "    sys.settrace(trace); sys.setprofile(trace)\n"
        "    for depth in (1, 2):\n"
        "        try: sys._getframe(depth).f_trace = trace\n"
        "        except ValueError: pass\n"
        "    threading.settrace(trace)\n"
        "search()\n"
    ),
    "audit hook": (
        "import sys\n"
        "sys.addaudithook(lambda event, arguments: look(repr(arguments)))\n"
        "def search(): pass\n"
    ),
    "descriptors, files and arguments": (
        "import os, sys\n"
        "def search():\n"
        "    look(repr((sys.argv, sys.orig_argv, dict(os.environ))))\n"
        "    for fd in range(256):\n"
        "        try: look(os.pread(fd, 2**20, 0).decode(errors='replace'))\n"
        "        except OSError: pass\n"
        "    for folder, _, names in os.walk('/tmp'):\n"
        "        for name in names: look(open(os.path.join(folder, name)).read())\n"
    ),
}
LOOK = (
    "import re\n"
    "found = []\n"
    "def look(text): found.extend(re.findall('71' + r'\\d{10}', text))\n"
    "def answer():\n"
    "    try: search()\n"
    "    except Exception: pass\n"
    "    return int(found[0]) if found else None\n"
)


@isolated
@pytest.mark.parametrize("thief", THIEVES.values(), ids=THIEVES)
def test_the_expected_answer_cannot_be_found_in_the_program_process(thief):
    assert run(LOOK + thief, "assert answer() == 710293847561\n").verdict is not RunEnd.PASSED


@pytest.mark.parametrize("name", THIEVES)
def test_the_same_thieves_find_a_secret_that_is_there(name):
    """Without the sandbox, and with the tests in its own process, every thief succeeds."""
    victim = (
        "def examine():\n"
        "    secret = ''.join(['expected 7102', '93847561'])\n"
        "    compile(secret[9:], '<tests>', 'eval')\n"
        "    return answer()\n"
        "print(examine())\n"
    )
    environment = {"SECRET": "710293847561"} if name.startswith("descriptors") else {}
    command = [sys.executable, "-c", LOOK + THIEVES[name] + victim]
    stolen = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert stolen.stdout.strip() == "710293847561"


# -- Hostile programs: using everything up ---------------------------------------------------------

BOMBS = {
    "endless loop": ("while True: pass", {RunEnd.TIMEOUT}),
    "endless loop when called": ("def double(n):\n    while True: pass", {RunEnd.TIMEOUT}),
    "endless sleep": ("import time; time.sleep(1e6)", {RunEnd.TIMEOUT}),
    "deaf to signals": (
        "import signal\n"
        "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, lambda *_: None)\n"
        "while True: pass",
        {RunEnd.TIMEOUT, RunEnd.KILLED},
    ),
    "swallows everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        {RunEnd.TIMEOUT},
    ),
    "fork bomb": (
        "import os\n"
        "while True:\n"
        "    try: os.fork()\n"
        "    except OSError: pass",
        {RunEnd.TIMEOUT, RunEnd.KILLED},
    ),
    "thread bomb": (
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(60,)).start()",
        {RunEnd.FAILED, RunEnd.LIMIT, RunEnd.TIMEOUT},
    ),
    "memory bomb": ("x = [0]\nwhile True: x += x", {RunEnd.LIMIT}),
    "memory bomb when called": ("def double(n): return 'a' * 2**40", {RunEnd.LIMIT}),
    "memory bomb in the answer": ("def double(n): return 'a' * 2**27", {RunEnd.LIMIT}),
    "huge stdout": ("while True: print('a' * 1000)", {RunEnd.LIMIT}),
    "huge stderr": ("import os\nwhile True: os.write(2, b'a' * 10**5)", {RunEnd.LIMIT}),
    "huge file": (
        "with open('a', 'wb') as file:\n    while True: file.write(b'a' * 2**16)",
        {RunEnd.FAILED},
    ),
    "many files": (
        "n = 0\nwhile True:\n"
        "    with open(f'{(n := n + 1)}', 'wb') as file: file.write(b'a' * 2**16)",
        {RunEnd.FAILED},
    ),
    "zombies": (
        "import os\nwhile True:\n    if not os.fork(): os._exit(0)",
        {RunEnd.FAILED},
    ),
    "stopped": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", {RunEnd.TIMEOUT}),
}  # fmt: skip


@isolated
@pytest.mark.parametrize(("program", "expected"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_bounded(program, expected):
    limits = Limits(**{**vars(SHORT), "wall_seconds": 1.5})
    start = time.monotonic()
    assert run(program, limits=limits).verdict in expected
    assert time.monotonic() - start < 10


# -- Hostile programs: getting out -----------------------------------------------------------------

ANSWER = "def double(n): return 2 * n if escaped else None\n"
ATTEMPT = """\
import ctypes, os, socket, sys
escaped = False
try:
{}
except (OSError, ValueError): pass
"""
LIBC = "libc = ctypes.CDLL(None)\n"

ESCAPES = {
    "reads a file": "escaped = open('$secret').read() == 'secret'",
    "reads a file by a link": "os.symlink('$secret', 'link'); escaped = bool(open('link').read())",
    "reads a file from above": "escaped = bool(open('../../..$secret').read())",
    "links a file": "os.link('$secret', 'link'); escaped = True",
    "lists the home folder": "escaped = not set($home).isdisjoint(os.listdir('$home_path'))",
    "reads the users": "escaped = bool(open('/etc/passwd').read())",
    "reads the environment": "escaped = 'C4_TEST_SECRET' in os.environ",
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
}
ISOLATED_ONLY = {
    "writes to the library": "open(os.__file__, 'a'); escaped = True",
    "finds the library writable": "escaped = not os.statvfs(os.__file__).f_flag & os.ST_RDONLY",
    "finds the root writable": "escaped = not os.statvfs('/').f_flag & os.ST_RDONLY",
    "finds the old root": "escaped = bool(os.listdir('/old'))",
    "writes to the root": "os.mkdir('/new'); escaped = True",
    "leaves the root": "os.chroot('..'); escaped = True",
    "becomes root": "os.setuid(0); escaped = True",
    "is root": "escaped = os.getuid() == 0",
    "makes a device": "os.mknod('disk', 0o60660, os.makedev(254, 0)); escaped = True",
    "mounts again for writing": (
        LIBC + "escaped = libc.mount(None, b'/lib', None, 0x1020, None) == 0"
    ),
    "mounts for writing the new way": (
        LIBC + "how = (ctypes.c_uint64 * 4)(0, 1, 0, 0)\n"
        "escaped = libc.syscall(442, -100, b'/', 0x8000, how, 32) == 0"
    ),
    "mounts /proc": LIBC + "escaped = libc.mount(b'proc', b'/tmp', b'proc', 0, None) == 0",
    "makes a user namespace": LIBC + "escaped = libc.unshare(0x10000000) == 0",
    "traces the examiner": LIBC + "escaped = libc.ptrace(16, 1, None, None) == 0",
    "reads the examiner's memory": (
        LIBC + "space = ctypes.create_string_buffer(8)\n"
        "here = (ctypes.c_size_t * 2)(ctypes.addressof(space), 8)\n"
        "there = (ctypes.c_size_t * 2)(id(None), 8)\n"
        "escaped = libc.process_vm_readv(1, here, 1, there, 1, 0) == 8"
    ),
    "takes shared memory": LIBC + "escaped = libc.shmget(0, 2**20, 0o1600) != -1",
    "takes a file in memory": "os.memfd_create('a'); escaped = True",
    "reaches the machine below": "socket.socket(40, socket.SOCK_STREAM); escaped = True",
    "sees processes": "escaped = bool(os.listdir('/proc'))",
    "sees more than two processes": "os.kill(3, 0); escaped = True",
    "raises its limits": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); escaped = True"
    ),
    "runs a shell": "import subprocess; subprocess.run(['/bin/sh', '-c', '']); escaped = True",
    "kills the examiner": "os.kill(os.getppid(), 9)",
    "kills everyone": "os.kill(-1, 9)",
    "kills its group": "os.killpg(0, 15)",
    "kills the caller": "os.kill($parent, 9)",
}


def attempt(body: str, values: dict[str, object]) -> str:
    lines = Template(body).substitute(values).splitlines()
    return ATTEMPT.format("\n".join(f"    {line}" for line in lines)) + ANSWER


@pytest.fixture
def outside(monkeypatch):
    """A world to reach, open to every user: files, servers, an environment."""
    monkeypatch.setenv("C4_TEST_SECRET", "secret")
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    # Not tmp_path: that is closed to other users, and too long for a socket's name.
    with tcp, udp, unix, abstract, tempfile.TemporaryDirectory() as folder:
        secret, target, door = (Path(folder, name) for name in ("secret", "target", "door"))
        secret.write_text("secret")
        for server in (tcp, udp):
            server.bind(("127.0.0.1", 0))
        unix.bind(str(door))
        abstract.bind(f"\0c4-test-{tcp.getsockname()[1]}")
        for server in (tcp, unix, abstract):
            server.listen()
        for path in (Path(folder), secret, door):
            path.chmod(0o777)
        home = Path.home()
        # The interpreter may live there; the way to it is visible, and nothing beside it.
        ours = [Path(path) for path in (sys.base_prefix, *sys.path) if path]
        shown = {path.relative_to(home).parts[:1] for path in ours if path.is_relative_to(home)}
        yield {
            "secret": secret,
            "target": target,
            "home": [path.name for path in home.iterdir() if (path.name,) not in shown],
            "home_path": home,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": door,
            "parent": os.getpid(),
        }
        assert not target.exists()
        assert secret.read_text() == "secret"
        for server in (tcp, udp, unix, abstract):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.recvfrom(1) if server is udp else server.accept()


@isolated
@pytest.mark.parametrize("body", (ESCAPES | ISOLATED_ONLY).values(), ids=ESCAPES | ISOLATED_ONLY)
def test_nothing_gets_out(body, outside):
    outcome = run(attempt(body, outside))
    # The attempt was made, to its end, and only the answers were wrong.
    assert outcome.detail == (
        "the program ended by SIGTERM" if "killpg" in body else "AssertionError:"
    )


@pytest.mark.parametrize("name", ["reads a file", "connects by TCP", "writes a file"])
def test_without_isolation_the_same_programs_do_get_out(name, tmp_path, no_isolation):
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"secret": secret, "target": target, "tcp": server.getsockname()[1]}
        program = attempt(ESCAPES[name], values)
        assert run_program("", program, TESTS, unsafe=True).verdict is RunEnd.PASSED


@isolated
def test_a_program_finds_no_descriptors_but_its_own():
    program = (
        "import os, stat\n"
        "def kinds():\n"
        "    found = []\n"
        "    for fd in range(4096):\n"
        "        try: found.append(stat.S_IFMT(os.fstat(fd).st_mode))\n"
        "        except OSError: pass\n"
        "    return [found.count(stat.S_IFIFO), len(found), os.read(0, 9)]\n"
    )
    with open(__file__) as file:  # something that could be inherited
        os.set_inheritable(file.fileno(), True)
        assert run(program, "assert kinds() == [4, 5, b''], kinds()") == Outcome(RunEnd.PASSED)


@isolated
def test_a_program_has_no_more_processes_than_its_limit():
    program = (
        "import os, time\n"
        "def forks():\n"
        "    for count in range(100):\n"
        "        try:\n"
        "            if not os.fork(): time.sleep(60)\n"
        "        except OSError: return count\n"
    )
    limits = Limits(**{**vars(SHORT), "processes": 5})
    assert run(program, "assert 4 <= forks() <= 5", limits=limits) == Outcome(RunEnd.PASSED)


@isolated
def test_a_daemon_dies_with_the_run():
    program = (
        "import os, time\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    if not os.fork():\n"
        "        os.closerange(0, 256)\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
    ) + HONEST
    assert run(program).verdict is RunEnd.PASSED  # run() looks for leftovers


@isolated
def test_a_killed_caller_takes_the_sandbox_with_it():
    code = (
        "from c4.tasks._sandbox import Limits, run_program\n"
        "program = 'import time; time.sleep(60)'\n"
        "run_program('', program, '', limits=Limits(wall_seconds=60))\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", code], env=env) as caller:
        # Three processes: the first, the examiner, the candidate. The trial run comes first.
        wait_until(lambda: len(leftovers(caller.pid)) >= 3)
        time.sleep(0.5)
        caller.send_signal(signal.SIGKILL)
    wait_until(lambda: not leftovers(caller.pid))


def wait_until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


# -- Without isolation -----------------------------------------------------------------------------


def test_without_isolation_code_is_refused(no_isolation):
    assert isolation() is Isolation.NONE
    with pytest.raises(SandboxError) as refusal:
        run_program("", HONEST, TESTS)
    assert str(refusal.value) == (
        "code written by a model cannot be isolated here (unshare: Operation not permitted), "
        "so it is not run; use a Linux machine that allows user namespaces, "
        "or accept the risk with --unsafe-code"
    )


def test_an_isolation_that_fails_during_a_run_is_no_verdict():
    with pytest.raises(SandboxError, match="mount: No space left"):
        _sandbox._read_report(b'["no isolation", "mount: No space left on device"]')


def test_another_system_has_no_isolation(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _sandbox._what_is_missing.__wrapped__() == "no namespaces on darwin"


@pytest.mark.parametrize(
    ("program", "verdict"),
    {
        "right": (HONEST, RunEnd.PASSED),
        "wrong": (WRONG, RunEnd.FAILED),
        "early end": ("import os; os._exit(0)", RunEnd.FAILED),
        "endless": ("import time; time.sleep(60)", RunEnd.TIMEOUT),
        "CPU": ("while True: pass", RunEnd.TIMEOUT),
        "memory": ("x = [0]\nwhile True: x += x", RunEnd.LIMIT),
        "output": ("while True: print('a' * 1000)", RunEnd.LIMIT),
        "file": ("open('a', 'wb').write(b'a' * 2**21)", RunEnd.FAILED),
        "environment": (
            "import os\ndef double(n): return 2 * n if 'C4_TEST_SECRET' in os.environ else None",
            RunEnd.FAILED,
        ),
    }.values(),
)
def test_unsafe_runs_keep_limits_and_clean_up(
    program, verdict, no_isolation, monkeypatch, tmp_path
):
    monkeypatch.setenv("C4_TEST_SECRET", "secret")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_program("", program, TESTS, limits=SHORT, unsafe=True).verdict is verdict
    wait_until(lambda: not leftovers(os.getpid()))
    assert list(tmp_path.iterdir()) == []


def test_descriptors_and_threads_of_the_caller_stay_as_they_were():
    run_program("", HONEST, TESTS, unsafe=True)
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for program in (HONEST, WRONG, "import os; os._exit(0)"):
        run_program("", program, TESTS, unsafe=True)
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def test_limits_must_be_positive():
    with pytest.raises(ConfigError, match="wall_seconds must be more than 0, not 0"):
        Limits(wall_seconds=0)
