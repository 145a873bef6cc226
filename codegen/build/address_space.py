"""Placement of loaded code in one region of the address space.

The loader allocates each section of an object with its own memory map. Sections refer to each other
with 32-bit offsets, and LLVM aborts the process if an offset does not fit. The kernel puts a small
map into the highest gap that it fits, so in a process with many maps a small section can be
gigabytes away from a large one.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Final

from ..llvm.exclusive import exclusive

MAX_MAPS: Final = 20_000
"""The maximum number of gaps to close; Linux allows 65,530 maps per process."""

SLACK: Final = 16 << 20
"""Bytes of the region in addition to twice the size of the objects."""

_NO_ACCESS: Final = 0
_NORESERVE: Final = 0x4000


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    ]  # fmt: skip
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _reserve(size: int) -> int | None:
    """Reserve address space; None if the system refuses."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    address = _libc().mmap(None, size, _NO_ACCESS, flags, -1, 0)
    return None if address in (None, ctypes.c_void_p(-1).value) else int(address)


def _close_gaps(above: int, region: int) -> list[tuple[int, int]]:
    """Reserve the gaps above an address that are smaller than a region."""
    closed: list[tuple[int, int]] = []
    size = 1 << (region.bit_length() - 1)  # powers of two end at exactly one page
    while size >= mmap.PAGESIZE and len(closed) < MAX_MAPS:
        address = _reserve(size)
        if address is not None and address > above:
            closed.append((address, size))
            continue
        if address is not None:
            _libc().munmap(address, size)
        size //= 2
    return closed


@contextmanager
def one_region(size: int) -> Generator[None]:
    """Let the memory maps that are created in this context be close to each other.

    Parameters
    ----------
    size : int
        The total size of the maps, in bytes.

    Examples
    --------
    >>> with one_region(1 << 20):
    ...     first, second = mmap.mmap(-1, 4096), mmap.mmap(-1, 1 << 20)
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    region = 2 * size + SLACK
    region += -region % mmap.PAGESIZE
    with exclusive():
        start = _reserve(region)
        closed = [] if start is None else _close_gaps(start, region)
        if start is not None:
            _libc().munmap(start, region)
        try:
            yield
        finally:
            for address, length in closed:
                _libc().munmap(address, length)
