"""Arrays next to pages that the process must not access."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE
NO_ACCESS = 0


class GuardedMemory:
    """Arrays whose first or last byte borders a page without access: other accesses end the test.

    The arrays are valid until :meth:`close`.
    """

    def __init__(self) -> None:
        self._maps: list[tuple[int, int]] = []
        LIBC.mmap.restype = ctypes.c_void_p
        LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def copy(self, values: np.ndarray, *, at_end: bool) -> np.ndarray:
        """Return a copy of an array that ends, or starts, at a page without access."""
        pages = -(-max(values.nbytes, 1) // PAGE)
        size = (pages + 2) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        assert start not in (None, ctypes.c_void_p(-1).value)
        self._maps.append((start, size))
        for guard in (start, start + (pages + 1) * PAGE):
            assert LIBC.mprotect(guard, PAGE, NO_ACCESS) == 0
        at = start + (pages + 1) * PAGE - values.nbytes if at_end else start + PAGE
        memory = (ctypes.c_uint8 * values.nbytes).from_address(at)
        made = np.ndarray(values.shape, values.dtype, buffer=memory)
        made[...] = values
        return made

    def close(self) -> None:
        """Release all arrays."""
        for start, size in self._maps:
            LIBC.munmap(start, size)
        self._maps.clear()
