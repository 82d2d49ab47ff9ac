"""The sandbox: right programs pass, wrong ones fail, and what the machine does is no verdict.

Hostile programs are in test_hostile.py.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hostile import HONEST, LIMITS, TESTS, WRONG, survivors
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.errors import ConfigError, SandboxError
from c4.tasks.sandbox import run as sandbox_run
from c4.tasks.sandbox.child import pack, unpack
from c4.tasks.sandbox.processes import Standing, look_at
from c4.tasks.sandbox.run import (
    BEGUN,
    Limits,
    Outcome,
    RunEnd,
    can_isolate,
    judge_report,
    judge_timeout,
    run_program,
)

isolated = pytest.mark.skipif(
    not can_isolate(),
    reason=f"programs cannot be isolated here: {sandbox_run._what_is_missing()}",
)


def run(program: str, tests: str = TESTS, limits: Limits = LIMITS, **options: Any) -> Outcome:
    outcome = run_program("", program, tests, limits=limits, **options)
    assert survivors(os.getpid()) == []
    assert outcome.detail.isprintable()
    assert len(outcome.detail) <= 200
    return outcome


@pytest.fixture
def no_isolation(monkeypatch):
    monkeypatch.setattr(sandbox_run, "_what_is_missing", lambda: "unshare: Operation not permitted")


# -- Honest programs -------------------------------------------------------------------------------


@isolated
def test_a_right_program_passes():
    assert run(HONEST) == Outcome(RunEnd.PASSED)


@isolated
@pytest.mark.parametrize(
    ("program", "detail"),
    {
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
def test_a_program_that_raises_has_crashed_and_it_is_said_why(program, detail):
    outcome = run(program)
    assert outcome.verdict is RunEnd.CRASHED
    assert outcome.detail.startswith(detail)


@isolated
def test_a_wrong_answer_fails():
    assert run(WRONG) == Outcome(RunEnd.FAILED, "AssertionError:")


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
def test_tests_that_ask_nothing_of_the_program_cannot_be_passed():
    lie = "def abs(x): return 0\ndef sum(a, b): return a"
    for tests in ("", "assert True", "assert abs(sum([3, 4]) - 7) == 0"):
        assert run(lie, tests) == Outcome(RunEnd.FAILED, "the tests ask nothing of the program")


@isolated
def test_arguments_change_only_where_a_function_answers_nothing():
    program = "def f(x):\n    x.sort()\n    return x"
    assert run(program, "x = [2, 1]\nassert f(x) == [1, 2] and x == [2, 1]").verdict == "passed"


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


# -- What a program has ---------------------------------------------------------------------------


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
    limits = replace(LIMITS, processes=5)
    assert run(program, "assert 4 <= forks() <= 5", limits=limits) == Outcome(RunEnd.PASSED)


@isolated
def test_a_killed_caller_takes_the_sandbox_with_it():
    code = (
        "from c4.tasks.sandbox.run import Limits, run_program\n"
        "program = 'import time; time.sleep(60)'\n"
        "run_program('', program, '', limits=Limits(wall_seconds=60))\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", code], env=env) as caller:
        # Three processes: the first, the examiner, the candidate. The trial run comes first.
        wait_until(lambda: len(survivors(caller.pid)) >= 3)
        time.sleep(0.5)
        caller.send_signal(signal.SIGKILL)
    wait_until(lambda: not survivors(caller.pid))


def wait_until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


# -- Failures of the machine -----------------------------------------------------------------------

SLEEPER = "import time; time.sleep(60)\n" + HONEST


def meanwhile(program: str, do: Callable[[list[int]], None], limits: Limits = LIMITS) -> Outcome:
    """A run, with something done to its processes, oldest first, once all three are there."""
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(run_program, "", program, TESTS, limits=limits)
        wait_until(lambda: len(survivors(os.getpid())) == 3)
        time.sleep(0.2)  # the program has begun
        do(sorted(survivors(os.getpid())))
        return run.result()


@isolated
@pytest.mark.parametrize("which", [0, 1, 2], ids=["supervisor", "examiner", "program"])
def test_a_process_killed_from_outside_is_a_failure_of_the_machine(which):
    """As the out-of-memory killer does it."""
    can_isolate()  # the trial run has processes too
    limits = replace(LIMITS, wall_seconds=60)
    outcome = meanwhile(SLEEPER, lambda pids: os.kill(pids[which], signal.SIGKILL), limits)
    assert outcome.verdict is RunEnd.MACHINE
    wait_until(lambda: not survivors(os.getpid()))


@isolated
@pytest.mark.parametrize("which", [1, 2], ids=["examiner", "program"])
def test_a_process_stopped_from_outside_is_a_failure_of_the_machine(which):
    can_isolate()
    outcome = meanwhile(SLEEPER, lambda pids: os.kill(pids[which], signal.SIGSTOP))
    assert outcome == Outcome(RunEnd.MACHINE, "the program was stopped at the end of 2 s")


@isolated
def test_a_program_that_was_never_reached_has_not_timed_out():
    outcome = run(HONEST, limits=Limits(wall_seconds=0.001))
    assert outcome == Outcome(RunEnd.MACHINE, "the program had not begun after 0.001 s")


@isolated
@pytest.mark.parametrize(
    "error",
    [
        BlockingIOError(11, "Resource temporarily unavailable"),
        OSError(12, "Cannot allocate memory"),
        OSError(24, "Too many open files"),
    ],
    ids=str,
)
def test_no_process_to_be_had_is_a_failure_of_the_machine(error, monkeypatch):
    can_isolate()

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = len(os.listdir("/proc/self/fd"))
    assert run_program("", HONEST, TESTS) == Outcome(RunEnd.MACHINE, str(error))
    assert len(os.listdir("/proc/self/fd")) == before


@isolated
@pytest.mark.parametrize(
    "script",
    ["", "raise OSError", 'import os; os.write({}, b\'["no isolation", "mount: No space left"]\')'],
    ids=["says nothing", "fails", "has no room"],
)
def test_a_sandbox_that_cannot_be_made_any_more_is_a_failure_of_the_machine(
    script, monkeypatch, tmp_path
):
    can_isolate()
    child = tmp_path / "child.py"
    child.write_text("import json, sys\n" + script.format("json.loads(sys.argv[1])['report']"))
    monkeypatch.setattr(sandbox_run, "_CHILD", child)
    assert run_program("", HONEST, TESTS).verdict is RunEnd.MACHINE


@pytest.mark.parametrize(
    ("said", "verdict"),
    {
        "nothing": (b"", RunEnd.MACHINE),
        "half a line": (b'["passed", "', RunEnd.MACHINE),
        "noise": (b"\x00\xff\n", RunEnd.MACHINE),
        "a word that is none": (b'["fine", ""]\n', RunEnd.MACHINE),
        "a number": (b"7\n", RunEnd.MACHINE),
        "an end before the beginning": (b'["examiner", 1, false]\n', RunEnd.MACHINE),
        "a beginning without an end": (BEGUN, RunEnd.MACHINE),
        "killed": (BEGUN + b'["examiner", -9, false]\n', RunEnd.MACHINE),
        "a bad disk": (BEGUN + b'["examiner", -7, false]\n', RunEnd.MACHINE),
        "killed at the end of its CPU time": (BEGUN + b'["examiner", -9, true]\n', RunEnd.TIMEOUT),
        "a fault in the tests": (BEGUN + b'["examiner", -11, false]\n', RunEnd.CRASHED),
        "an exception outside of the tests": (BEGUN + b'["examiner", 1, false]\n', RunEnd.CRASHED),
        "a verdict": (BEGUN + b'["passed", ""]\n["examiner", 0, false]\n', RunEnd.PASSED),
        "a verdict, then a kill": (BEGUN + b'["failed", ""]\n["examiner", -9, false]\n',
                                   RunEnd.FAILED),
    }.values(),
)  # fmt: skip
def test_what_is_said_decides_who_failed(said, verdict):
    assert judge_report(said).verdict is verdict


@pytest.mark.parametrize(
    ("said", "standing", "verdict"),
    {
        "not reached": (b"", Standing(ran=9.0), RunEnd.MACHINE),
        "asleep": (BEGUN, Standing(), RunEnd.TIMEOUT),
        "busy": (BEGUN, Standing(ran=9.0, waited=1.0), RunEnd.TIMEOUT),
        "busy in many processes": (BEGUN, Standing(ran=18.0, waited=8.0), RunEnd.TIMEOUT),
        "starved": (BEGUN, Standing(ran=2.0, waited=8.0), RunEnd.MACHINE),
        "asleep on a busy machine": (BEGUN, Standing(ran=0.1, waited=0.4), RunEnd.TIMEOUT),
        "stopped": (BEGUN, Standing(halted="stopped"), RunEnd.MACHINE),
        "done, but slow to go": (BEGUN + b'["passed", ""]\n', Standing(), RunEnd.PASSED),
    }.values(),
)
def test_who_let_the_clock_run_out(said, standing, verdict):
    assert judge_timeout(said, standing, Limits(wall_seconds=10)).verdict is verdict


def test_the_kernel_tells_who_runs_and_who_is_stopped():
    code = "import time; sum(range(10**7)); print(); time.sleep(60)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = look_at(child.pid)
        child.send_signal(signal.SIGSTOP)
        wait_until(lambda: look_at(child.pid).halted == "stopped")
        child.kill()
    assert running.ran > 0
    assert running.halted == ""
    assert look_at(child.pid) == Standing()


def test_a_machine_too_busy_for_the_trial_is_asked_again(monkeypatch):
    answers = [Outcome(RunEnd.MACHINE, "fork: no memory"), Outcome(RunEnd.PASSED)]
    monkeypatch.setattr(sandbox_run, "_run", lambda job: answers.pop(0))
    sandbox_run._what_is_missing.cache_clear()
    try:
        with pytest.raises(SandboxError, match=r"trial program \(fork: no memory\).*try again"):
            can_isolate()
        assert can_isolate()
    finally:
        sandbox_run._what_is_missing.cache_clear()


# -- Without isolation -----------------------------------------------------------------------------


def test_without_isolation_code_is_refused(no_isolation):
    assert not can_isolate()
    with pytest.raises(SandboxError) as refusal:
        run_program("", HONEST, TESTS)
    assert str(refusal.value) == (
        "code written by a model cannot be isolated here (unshare: Operation not permitted), "
        "so it is not run; use a Linux machine that allows user namespaces, "
        "or accept the risk with --unsafe-code"
    )


def test_another_system_has_no_isolation(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert sandbox_run._what_is_missing.__wrapped__() == "no namespaces on darwin"


@pytest.mark.parametrize(
    ("program", "verdict"),
    {
        "right": (HONEST, RunEnd.PASSED),
        "wrong": (WRONG, RunEnd.FAILED),
        "early end": ("import os; os._exit(0)", RunEnd.CRASHED),
        "endless": ("import time; time.sleep(60)", RunEnd.TIMEOUT),
        "CPU": ("while True: pass", RunEnd.TIMEOUT),
        "memory": ("x = [0]\nwhile True: x += x", RunEnd.LIMIT),
        "output": ("while True: print('a' * 1000)", RunEnd.LIMIT),
        "file": ("open('a', 'wb').write(b'a' * 2**21)", RunEnd.CRASHED),
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
    assert run_program("", program, TESTS, limits=LIMITS, unsafe=True).verdict is verdict
    wait_until(lambda: not survivors(os.getpid()))
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
