"""The memory limit of the control groups of a process, such as that of its container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def group_memory_limit(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Return the lowest memory limit of the control groups of this process in bytes, if any.

    Parameters
    ----------
    root : Path
        The folder in which the hierarchies of control groups are mounted.
    membership : Path
        The file that lists the control group of the process in each hierarchy.
    """
    return min(_limits(root, membership), default=None)


def _limits(root: Path, membership: Path) -> Iterator[int]:
    """Yield the limits of the groups of the process, and of the groups that contain them."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2: one hierarchy of all controllers
            top, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # A container may see itself as the top, although its path is that of the host.
        group = Path(path.lstrip("/"))
        for each in (group, *group.parents):
            text = _text(top / each / name).strip()
            if text.isdigit():  # not "max"
                yield int(text)


def _text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
