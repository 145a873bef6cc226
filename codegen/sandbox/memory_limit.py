"""The memory limit of a process: bytes that a program may allocate in addition to present ones."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .control_groups import group_memory_limit

DEFAULT_MEMORY = 0.8
"""The fraction of usable memory that programs may allocate by default."""

SLACK = 64 << 20
"""The bytes that Python may allocate in addition: thread stacks, frames, messages."""


def usable_memory() -> int:
    """Return the size of the physical memory, or of the container's part of it, in bytes."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(physical, group_memory_limit() or physical)


def default_memory() -> int:
    """Return the default memory limit of programs in bytes."""
    return int(usable_memory() * DEFAULT_MEMORY)


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


def require_memory(size: int) -> None:
    """Check that this process may allocate ``size`` more bytes of shared memory.

    The system does not count shared memory as allocated by the process.

    Raises
    ------
    MemoryError
        If the limit is lower.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit != resource.RLIM_INFINITY and allocated_bytes() + size > limit:
        raise MemoryError(f"cannot allocate {size:,} bytes of shared memory")


@contextmanager
def shared_memory_counted(size: int) -> Generator[None]:
    """Count ``size`` bytes of shared memory as allocated by this process in the section.

    Raises
    ------
    MemoryError
        If this process may not allocate that many bytes.

    Examples
    --------
    >>> with shared_memory_counted(1 << 20):
    ...     memory = bytearray(1 << 20)
    """
    require_memory(size)
    limit, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit - size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
