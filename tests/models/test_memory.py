"""How much memory is left, from what Linux says about a machine and its control groups."""

import pytest

from c4.models._memory import available_memory

GIGABYTE = 2**30


def machine(root, groups):
    """A stand-in of /proc and /sys; numbers in gigabytes."""
    (root / "proc/self").mkdir(parents=True)
    lines = f"MemTotal: {24 * 2**20} kB\nMemAvailable: {20 * 2**20} kB\nHugePages_Free: 0\n"
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


@pytest.mark.parametrize(
    ("own", "groups", "left"),
    [
        ("/", {}, 20),
        ("/job", {"job": {"limit": 16, "used": 12, "active": 3, "inactive": 4}}, 16 - 12 + 3 + 4),
        ("/not/visible/here", {"": {"limit": 4, "used": 1}}, 3),  # a container's own is the mount
        ("/job", {"job": {"limit": 64, "used": 1}}, 20),
        ("/job", {"job": {"limit": 4, "used": 5}}, 0),
        (
            "/user/job/step",
            {
                "user/job/step": {"limit": "max", "used": 1},
                "user/job": {"limit": 12, "used": 1},
                "user": {"limit": 8, "used": 3},
            },
            5,
        ),
    ],
)
def test_the_least_that_the_machine_and_its_groups_leave_is_available(tmp_path, own, groups, left):
    root = machine(tmp_path, f"0::{own}\n")
    for folder, facts in groups.items():
        group(root / "sys/fs/cgroup" / folder, **facts)
    assert gigabytes(root) == left


@pytest.mark.parametrize("text", ["", "nonsense\n", "0:\n", "4:memory:/job\n"])
def test_files_of_another_form_are_passed_over(tmp_path, text):
    assert gigabytes(machine(tmp_path, text)) == 20


def test_this_machine_has_some():
    assert available_memory() > 2**20
