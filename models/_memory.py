"""How much memory a process may still take, so that a model is refused before it is read."""

import os
from collections.abc import Iterator
from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can have without swapping or being killed; None where unknown.

    The least of what the machine has left, what every control group around the process allows,
    and what its own limit on address space leaves.

    Args:
        root: where the folders `proc` and `sys` are.
    """
    known = [*_machine(root), *_control_groups(root), *_address_space(root)]
    return max(0, min(known)) if known else None


def _machine(root: Path) -> Iterator[int]:
    facts = _table(root / "proc/meminfo")
    if "MemAvailable:" in facts:
        yield facts["MemAvailable:"] * 1024
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:  # macOS has no /proc
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _control_groups(root: Path) -> Iterator[int]:
    """What the groups of this process leave it; a limit may be set on any group above, too."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = (*line.split(":", 2), "none", "none")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue  # a group of version 2 names no controllers
        mount = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        # A container may see its own group as the mount itself, under a path that is not there.
        for group in [Path(path.strip("/")), *Path(path.strip("/")).parents]:
            yield from _group(mount / group)


def _group(folder: Path) -> Iterator[int]:
    """What one group leaves; its file cache is given back when memory is needed."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None:
            facts = _table(folder / "memory.stat")
            prefix = "total_" if "total_active_file" in facts else ""  # with the groups below
            cached = (facts.get(f"{prefix}{kind}_file", 0) for kind in ("active", "inactive"))
            yield most - used + sum(cached)


def _address_space(root: Path) -> Iterator[int]:
    try:
        import resource
    except ImportError:
        return  # Windows
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = next(iter(_lines(root / "proc/self/statm")), "").split()
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0]) * resource.getpagesize()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _table(path: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number on each line."""
    words = (line.split() for line in _lines(path))
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}


def _number(path: Path) -> int | None:
    """The number in a file; None where there is no file, or no limit."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None
