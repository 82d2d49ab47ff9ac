"""How much memory a process may still take, so that a model is refused before it is read."""

from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can have without swapping or being killed; None where unknown.

    The least of what the machine has left and what each control group around the process allows
    (version 2, as containers and batch systems set them).

    Args:
        root: where the folders `proc` and `sys` are.
    """
    free = []
    available = _table(root / "proc/meminfo").get("MemAvailable:")
    if available is not None:
        free.append(available * 1024)
    lines = _text(root / "proc/self/cgroup").splitlines()
    own = Path(next((line[3:] for line in lines if line.startswith("0::")), "").strip("/"))
    # A container may see its own group as the mount itself, under a path that is not there.
    for group in (own, *own.parents):
        folder = root / "sys/fs/cgroup" / group
        limit, used = _text(folder / "memory.max"), _text(folder / "memory.current")
        if limit.isdecimal() and used.isdecimal():
            facts = _table(folder / "memory.stat")
            # The group's file cache is given back when memory is needed.
            cached = facts.get("active_file", 0) + facts.get("inactive_file", 0)
            free.append(int(limit) - int(used) + cached)
    return max(0, min(free)) if free else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _table(path: Path) -> dict[str, int]:
    """The numbers of a file that has a name and a number on each line."""
    words = (line.split() for line in _text(path).splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}
