"""The pool of worker threads of this process: what it stands on, its end, and a forked child's.

The pool itself is native code (:mod:`tilewright.ir.host.support.pool`). Workers start when a
region first needs them, serve every executable, and sleep when there is nothing to do. They are
ended before the interpreter goes down; from then on parallel loops run on their callers' threads. A
forked child has none of its parent's threads, and starts workers of its own when it needs some.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import time
from collections.abc import Mapping
from functools import cache
from typing import Final

from ...ir.host import layout
from ...ir.host.support import pool as native
from .support import support_address

_FUNCTIONS: Final[Mapping[int, str]] = {
    layout.POOL_CREATE: "pthread_create",
    layout.POOL_LOCK: "pthread_mutex_lock",
    layout.POOL_TRY_LOCK: "pthread_mutex_trylock",
    layout.POOL_UNLOCK: "pthread_mutex_unlock",
    layout.POOL_WAIT: "pthread_cond_wait",
    layout.POOL_SIGNAL: "pthread_cond_signal",
    layout.POOL_MASK: "pthread_sigmask",
    layout.POOL_TIME: "clock_gettime",
}
_LOCKS: Final[Mapping[str, tuple[int, ...]]] = {
    "pthread_mutex_init": (layout.POOL_SLEEP_MUTEX, layout.POOL_DONE_MUTEX),
    "pthread_cond_init": (layout.POOL_SLEEP_CONDITION, layout.POOL_DONE_CONDITION),
}
_FAULTS: Final = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
"""Signals that tell of a fault of the thread itself, which it must not leave to another."""
_COUNTERS: Final = (
    layout.POOL_WORK, layout.POOL_BUSY, layout.POOL_SLEEPERS, layout.POOL_GONE, layout.POOL_SIZE,
)  # fmt: skip
LINGER: Final = 2.0
"""Seconds that the end of the process waits for workers inside of a kernel."""


class Pool:
    """The words that the native pool works on; they lie where they are as long as the process.

    Examples
    --------
    >>> pool = process_pool()
    >>> pool is not None and pool.workers >= 0
    True
    """

    def __init__(self, process: ctypes.CDLL) -> None:
        """Fill in the system's functions; no thread is started."""
        self._memory = ctypes.create_string_buffer(layout.POOL_BYTES + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._process = process
        for offset, name in _FUNCTIONS.items():
            self._put(offset, ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0)
        here = getattr(process, "sched_getcpu", None)  # Linux alone has it
        self._put(layout.POOL_HERE, ctypes.cast(here, ctypes.c_void_p).value or 0 if here else 0)
        self._put(layout.POOL_BLOCK, int(signal.SIG_BLOCK))
        self._put(layout.POOL_CLOCK, time.CLOCK_MONOTONIC)
        self._put(layout.POOL_MOST, layout.POOL_WORKERS)
        kept = {getattr(signal, name) for name in _FAULTS if hasattr(signal, name)}
        for number in signal.valid_signals() - kept:
            place = self.address + layout.POOL_SIGNALS + (number - 1) // 8
            ctypes.c_uint8.from_address(place).value |= 1 << (number - 1) % 8
        self._close = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(support_address(native.close_pool))
        self._begin()

    def _put(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def _get(self, offset: int) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def _begin(self) -> None:
        """Begin without a worker, and with locks that nobody holds."""
        for offset in _COUNTERS:
            self._put(offset, 0)
        self._put(layout.POOL_MOST, layout.POOL_WORKERS)
        for name, places in _LOCKS.items():
            for place in places:
                where = self.address + place
                ctypes.memset(where, 0, 128)
                getattr(self._process, name)(ctypes.c_void_p(where), None)

    @property
    def workers(self) -> int:
        """How many workers have been started."""
        return self._get(layout.POOL_SIZE)

    @property
    def sleeping(self) -> int:
        """How many workers sleep now."""
        return self._get(layout.POOL_SLEEPERS)

    @property
    def closed(self) -> bool:
        """Whether the pool is at its end."""
        return self._get(layout.POOL_CLOSING) != 0

    def renew(self) -> None:
        """Begin anew in a forked child, which has none of the threads and maybe locks they held."""
        self._begin()

    def close(self) -> None:
        """End the workers; regions run serially from now on.

        One that does not leave its kernel within :data:`LINGER` seconds is left behind, so that a
        kernel without an end in a daemon thread does not keep the process from ending.
        """
        if self.closed:
            return
        self._close(self.address)
        end = time.monotonic() + LINGER
        while self._get(layout.POOL_GONE) < self.workers:
            if time.monotonic() > end:
                return
            time.sleep(0.0005)
        for k in range(self.workers):
            handle = ctypes.c_uint64.from_address(self.address + layout.POOL_HANDLES + 8 * k)
            self._process.pthread_join(handle, None)


@cache
def process_pool() -> Pool | None:
    """Give the pool of this process; None where the system has no POSIX threads."""
    if os.name != "posix":
        return None
    process = ctypes.CDLL(None)
    try:
        pool = Pool(process)
    except AttributeError:  # the C library lacks a function, as before glibc 2.34 without -pthread
        return None
    support_address(native.run_pool)  # remembered for a forked child
    atexit.register(pool.close)
    os.register_at_fork(after_in_child=pool.renew)
    return pool
