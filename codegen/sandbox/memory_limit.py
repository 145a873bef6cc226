"""The memory limit of a process: bytes that a program may allocate in addition to present ones."""

from __future__ import annotations

import resource
from pathlib import Path

SLACK = 64 << 20
"""The bytes that Python may allocate in addition: thread stacks, frames, messages."""


def allocated_bytes() -> int:
    """Return the private memory that this process has allocated, in bytes.

    Libraries, weights and arguments are mapped files or shared memory, which are not counted.

    Examples
    --------
    >>> allocated_bytes() > 1 << 20
    True
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0


def limit_memory(budget: int, threads: int) -> int:
    """Allow this process to allocate ``budget`` more bytes; return the bytes allocated so far.

    ``threads`` is the number of threads of parallel loops, whose stacks are added to the limit.
    """
    now = allocated_bytes()
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    stacks = threads * (stack if 0 < stack < SLACK else 8 << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + budget + SLACK + stacks
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    return now
