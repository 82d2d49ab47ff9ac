"""Claims: taken once, renewed, released, lost and taken over."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from made import MANIFEST, make_decode, write

from c4.errors import ConfigError, RunError
from c4.errors.system import is_running, process_mark
from c4.store.claims import (
    DEATHS,
    SEAL,
    Claims,
    Sign,
    Watch,
    lease_seconds,
    mark_dead,
    read_aside,
    sign_file,
)
from c4.store.storage import note_file
from c4.store.writer import RunWriter

NAMES = [f"{number:06d}" for number in range(6)]


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def elsewhere(**changes):
    """The sign of a worker on another machine, whose process cannot be seen from here."""
    return Sign(process="", **changes)


@pytest.fixture
def clock():
    return Clock()


def dead(folder, name, generation=1):
    """What a worker leaves that dies with a claim; its last sign stays."""
    gone = Claims(folder, elsewhere())
    gone.report()
    claim = gone._make(name, generation)
    assert claim is not None
    return gone


def test_somebody_who_is_alone_takes_names_in_order(tmp_path):
    with Claims(tmp_path) as claims:
        assert [claims.take(NAMES).name for _ in NAMES] == NAMES
        assert claims.take(NAMES) is None
        claims.release(NAMES[2])
        assert claims.take(NAMES).name == NAMES[2]
    assert list(tmp_path.iterdir()) == []


def test_no_name_is_taken_twice_while_its_holder_lives(tmp_path):
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        taken = [claims.take(NAMES).name for claims in (one, other) * 3]
        assert sorted(taken) == NAMES
        assert one.take(NAMES) is other.take(NAMES) is None


def test_somebody_who_loses_every_race_is_given_nothing(tmp_path, monkeypatch):
    """Others take each name between the look at the claims and the attempt."""
    with Claims(tmp_path) as claims:
        monkeypatch.setattr(claims, "_make", lambda name, generation: None)
        assert claims.take([f"{number:06d}" for number in range(100)]) is None


def test_a_claim_is_lost_after_a_lease_without_a_new_sign_by_the_watchers_clock(tmp_path, clock):
    gone = dead(tmp_path, "000000")
    with Claims(tmp_path, lease=60, clock=clock) as claims:
        assert claims.take(["000000"]) is None
        clock.now = 59
        gone.report()  # alive after all
        assert claims.take(["000000"]) is None
        clock.now = 118
        assert claims.take(["000000"]) is None
        clock.now = 119.1
        assert claims.take(["000000"]).generation == 2
        assert not gone.still_holds(gone._held["000000"])


@pytest.mark.parametrize("how", ["ended", "process gone"])
def test_whoever_is_known_to_be_gone_loses_its_claims_at_once(tmp_path, how):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = process_mark().split(":")
    mark = ":".join([*here[:-2], str(child.pid), start_of(child.pid)])
    assert is_running(mark)
    gone = Claims(tmp_path, Sign(process=mark))
    gone.report()
    gone.take(["000000"])
    with Claims(tmp_path) as claims:
        assert claims.take(["000000"]) is None
        if how == "ended":
            mark_dead(tmp_path, gone.sign.worker, "said goodbye")
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        assert is_running(mark) is False
        assert claims.take(["000000"]).generation == 2


def start_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def test_a_process_of_another_machine_cannot_be_judged_from_here():
    assert is_running("") is None
    assert is_running("elsewhere:pid:[4026531836]:1:1") is None
    assert is_running(process_mark()) is True


def test_names_that_cost_a_worker_come_last_and_are_set_aside_after_three(tmp_path, caplog):
    for generation in range(1, DEATHS + 1):
        gone = dead(tmp_path, "000000", generation)
        mark_dead(tmp_path, gone.sign.worker, f"death {generation}")
    with Claims(tmp_path) as claims:
        assert claims.take(NAMES[:2]).name == "000001"
        assert claims.take(NAMES[:2]) is None
        assert claims.aside == {"000000"}
    assert read_aside(tmp_path) == {0: "3 workers died of it; the last: death 3"}
    assert "trajectory 0 is set aside" in caplog.text
    with Claims(tmp_path) as claims:
        claims.retry_aside()
        assert claims.take(NAMES[:1]).generation == 1
        claims.finished = True
    assert list(tmp_path.iterdir()) == []


def test_what_a_worker_fails_at_stays_claimed_and_says_why(tmp_path):
    with Claims(tmp_path) as claims:
        name = claims.take(NAMES).name
        claims.fail(name, "ValueError: not a number")
    (sign,) = Watch(tmp_path, 60).signs().values()
    assert sign.ended == "ValueError: not a number"
    with Claims(tmp_path) as claims:
        assert claims.take(NAMES).name != name
        assert claims.take([name]).generation == 2


def test_a_claim_whose_maker_did_not_live_to_sign_it_is_free_after_a_lease(tmp_path, clock):
    (tmp_path / "claims" / "seal.1").mkdir(parents=True)
    with Claims(tmp_path, lease=60, clock=clock) as claims:
        assert claims.take(["seal"]) is None
        clock.now = 60.1
        assert claims.take(["seal"]).generation == 2
    assert list(tmp_path.iterdir()) == []


def test_signs_of_others_that_make_no_sense_are_nobodys(tmp_path):
    for number, data in enumerate([b"", b"[]", b'{"beat": "x"}', b'{"worker": 1}', b"\xff"]):
        note_file(sign_file(tmp_path, f"x{number}"), data)
    with Claims(tmp_path) as claims:
        assert claims.others() == []


def test_who_is_alive_is_told_from_who_is_not(tmp_path, clock):
    moving = Claims(tmp_path, elsewhere(place="node1"))
    moving.report()
    with Claims(tmp_path, lease=0.2) as claims:
        assert [sign.place for sign in claims.others()] == ["node1"]
        claims.require_alone()  # it did not move for a lease
        moving.report()
        claims.others()
        note_file(sign_file(tmp_path, moving.sign.worker), replace(moving.sign, beat=9).to_json())
        with pytest.raises(RunError, match=r"is writing here \(node1\)"):
            claims.require_alone()


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "1e9"])
def test_a_lease_that_cannot_be_meant_is_refused(monkeypatch, seconds):
    monkeypatch.setenv("C4_LEASE", seconds)
    with pytest.raises(ConfigError, match="give a number of seconds from"):
        lease_seconds()


def test_a_worker_learns_what_was_sealed_by_one_that_was_killed_before_it_could_say_so(
    tmp_path, monkeypatch
):
    write(tmp_path, range(3), [])
    with RunWriter(tmp_path) as living:
        living.go_on(MANIFEST)
        assert living.unfinished(range(5)) == [3, 4]
        monkeypatch.setattr(RunWriter, "note_sealed", lambda self, path: die())
        killed = RunWriter(tmp_path)
        killed.claims.report()
        killed.go_on(MANIFEST)
        with pytest.raises(KeyboardInterrupt):
            killed.seal_part(range(3), killed.claims.take([SEAL]))
        mark_dead(tmp_path, killed.claims.sign.worker, "killed")
        monkeypatch.undo()
        with RunWriter(tmp_path) as next_one:
            next_one.go_on(MANIFEST)
            with next_one.sealing() as claim:
                assert claim.generation == 2
        assert not (tmp_path / "pending").exists() or not list((tmp_path / "pending").iterdir())
        assert living.unfinished(range(5)) == [3, 4]


def die():
    raise KeyboardInterrupt


def test_who_leaves_removes_no_claim_of_a_worker_that_began_meanwhile(tmp_path, monkeypatch):
    began = Claims(tmp_path)
    with Claims(tmp_path) as leaving:
        listed = leaving.watch.signs

        def signs_and_then_somebody_begins():
            signs = listed()
            began.report()
            began._make(SEAL, 1)
            return signs

        monkeypatch.setattr(leaving.watch, "signs", signs_and_then_somebody_begins)
    assert began.current().keys() == {SEAL}


def test_a_worker_that_is_alone_sees_what_a_later_one_has_finished(tmp_path):
    with RunWriter(tmp_path) as first:
        first.start(MANIFEST, "{}")
        assert not first.is_finished(4)
        assert not first.claims.shared
        with RunWriter(tmp_path) as second:
            second.start(MANIFEST, "{}")
            second.add(*make_decode(4))
            assert first.is_finished(4)
            assert first.claims.shared
            assert second.claims.shared


def test_a_recovery_keeps_the_note_that_somebody_joined(tmp_path):
    write(tmp_path, range(3), [range(3)])
    with RunWriter(tmp_path) as first:
        first.start(MANIFEST, "{}")
        with RunWriter(tmp_path) as second:
            second.start(MANIFEST, "{}")
            with second.claims.hold(SEAL):
                second._recover()  # as after the death of a third worker
            second.add(*make_decode(4))
            assert first.is_finished(4)
            assert first.claims.shared
