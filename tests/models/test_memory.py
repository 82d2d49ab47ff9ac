"""How much memory is left, from what Linux says about a machine and its control groups."""

import pytest

from c4.models._memory import available_memory

GIGABYTE = 2**30


def machine(root, groups="", available=20):
    """A stand-in of /proc and /sys; numbers in gigabytes."""
    (root / "proc/self").mkdir(parents=True)
    lines = f"MemTotal: {24 * 2**20} kB\nMemAvailable: {available * 2**20} kB\nHugePages_Free: 0\n"
    (root / "proc/meminfo").write_text(lines)
    (root / "proc/self/cgroup").write_text(groups)
    return root


def group(folder, limit, used, *, active=0, inactive=0):
    """A control group of version 2; numbers in gigabytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit if limit == 'max' else limit * GIGABYTE}\n")
    (folder / "memory.current").write_text(f"{used * GIGABYTE}\n")
    stat = f"anon 17\nactive_file {active * GIGABYTE}\ninactive_file {inactive * GIGABYTE}\n"
    (folder / "memory.stat").write_text(stat)


def gigabytes(root):
    return available_memory(root) / GIGABYTE


def test_a_machine_has_what_it_says_is_available(tmp_path):
    assert gigabytes(machine(tmp_path)) == 20


def test_a_control_group_s_file_cache_can_be_given_back(tmp_path):
    root = machine(tmp_path, "0::/job\n")
    group(root / "sys/fs/cgroup/job", limit=16, used=12, active=3, inactive=4)
    assert gigabytes(root) == 16 - 12 + 3 + 4


def test_a_limit_on_a_group_above_counts(tmp_path):
    root = machine(tmp_path, "0::/user/job/step\n")
    group(root / "sys/fs/cgroup/user/job/step", limit="max", used=1)
    group(root / "sys/fs/cgroup/user/job", limit=12, used=1)
    group(root / "sys/fs/cgroup/user", limit=8, used=3)
    assert gigabytes(root) == 5


def test_a_container_s_own_group_may_be_the_mount(tmp_path):
    root = machine(tmp_path, "0::/not/visible/here\n")
    group(root / "sys/fs/cgroup", limit=4, used=1)
    assert gigabytes(root) == 3


def test_a_group_that_allows_more_than_the_machine_has_changes_nothing(tmp_path):
    root = machine(tmp_path, "0::/job\n", available=2)
    group(root / "sys/fs/cgroup/job", limit=64, used=1)
    assert gigabytes(root) == 2


def test_a_group_beyond_its_limit_leaves_nothing(tmp_path):
    root = machine(tmp_path, "0::/job\n")
    group(root / "sys/fs/cgroup/job", limit=4, used=5)
    assert available_memory(root) == 0


@pytest.mark.parametrize("text", ["", "nonsense\n", "0:\n", "4:memory:/job\n"])
def test_files_of_another_form_are_passed_over(tmp_path, text):
    assert gigabytes(machine(tmp_path, text)) == 20


def test_this_machine_has_some():
    assert available_memory() > 2**20
