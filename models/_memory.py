"""Available memory, so that a model that does not fit is rejected before it is read."""

from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can allocate without swapping or being killed; None if unknown.

    The minimum of the machine's available memory and what each enclosing control group still
    allows (cgroup version 2, as containers and batch systems set them).

    Args:
        root: the folder that contains `proc` and `sys`.
    """
    free = []
    available = _table(root / "proc/meminfo").get("MemAvailable:")
    if available is not None:
        free.append(available * 1024)
    lines = _text(root / "proc/self/cgroup").splitlines()
    own = Path(next((line[3:] for line in lines if line.startswith("0::")), "").strip("/"))
    # In a container, the own group may be the mount itself, and its path may not exist.
    for group in (own, *own.parents):
        folder = root / "sys/fs/cgroup" / group
        limit, used = _text(folder / "memory.max"), _text(folder / "memory.current")
        if limit.isdecimal() and used.isdecimal():
            facts = _table(folder / "memory.stat")
            # The kernel reclaims the group's file cache when memory is needed.
            cached = facts.get("active_file", 0) + facts.get("inactive_file", 0)
            free.append(int(limit) - int(used) + cached)
    return max(0, min(free)) if free else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _table(path: Path) -> dict[str, int]:
    """Parse a file that has a name and a number on each line."""
    words = (line.split() for line in _text(path).splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}
