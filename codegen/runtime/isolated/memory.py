"""What a process may allocate: a limit on what a program takes, beside what was there before it."""

from __future__ import annotations

import resource
from pathlib import Path

SLACK = 64 << 20
"""Bytes that Python itself may take beside the program: stacks of threads, frames, messages."""


def held() -> int:
    """Tell the bytes of private memory this process has allocated; shared memory is not counted.

    Libraries, weights and arguments lie in files or shared memory, so they are none of it.

    Examples
    --------
    >>> held() > 1 << 20
    True
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0


def allow(budget: int, threads: int) -> int:
    """Let this process allocate so many bytes more than it holds; give what it holds.

    ``threads`` is how many a parallel loop may start: their stacks come on top.
    """
    now = held()
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    stacks = threads * (stack if 0 < stack < SLACK else 8 << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + budget + SLACK + stacks
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    return now
