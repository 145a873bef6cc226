"""The thread pool of this process: initialization, shutdown, and forked child processes.

The pool is native code (:mod:`tilewright.codegen.rtlib.pool`). Workers start when a parallel region
first needs them, are shared by all executables, and sleep while they are idle. They are joined
before the interpreter exits; after that, parallel loops run on the calling thread. A forked child
process does not inherit threads; it starts its own workers when it needs them.
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

from ..build.rtlib_object import rtlib_address
from ..rtlib import layout, pool as native

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
"""Signals of faults in the thread itself; workers do not block them."""
_COUNTERS: Final = (
    layout.POOL_WORK, layout.POOL_BUSY, layout.POOL_SLEEPERS, layout.POOL_EXITED, layout.POOL_SIZE,
)  # fmt: skip
LINGER: Final = 2.0
"""Seconds that the process waits at exit for workers inside of a kernel."""


class ThreadPool:
    """The state of the native pool, at a fixed address for the lifetime of the process.

    Examples
    --------
    >>> pool = process_pool()
    >>> pool is not None and pool.workers >= 0
    True
    """

    def __init__(self, process: ctypes.CDLL) -> None:
        """Store the addresses of system functions; start no threads."""
        self._memory = ctypes.create_string_buffer(layout.POOL_BYTES + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._process = process
        for offset, name in _FUNCTIONS.items():
            self._put(offset, ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0)
        get_cpu = getattr(process, "sched_getcpu", None)  # only Linux has it
        address = ctypes.cast(get_cpu, ctypes.c_void_p).value if get_cpu else 0
        self._put(layout.POOL_GET_CPU, address or 0)
        self._put(layout.POOL_BLOCK, int(signal.SIG_BLOCK))
        self._put(layout.POOL_CLOCK, time.CLOCK_MONOTONIC)
        self._put(layout.POOL_MOST, layout.POOL_WORKERS)
        faults = {getattr(signal, name) for name in _FAULTS if hasattr(signal, name)}
        for number in signal.valid_signals() - faults:
            byte = self.address + layout.POOL_SIGNALS + (number - 1) // 8
            ctypes.c_uint8.from_address(byte).value |= 1 << (number - 1) % 8
        self._close = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(rtlib_address(native.close_pool))
        self._reset()

    def _put(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def _get(self, offset: int) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def _reset(self) -> None:
        """Reset to no workers and unlocked mutexes."""
        for offset in _COUNTERS:
            self._put(offset, 0)
        self._put(layout.POOL_MOST, layout.POOL_WORKERS)
        for name, offsets in _LOCKS.items():
            for offset in offsets:
                address = self.address + offset
                ctypes.memset(address, 0, 128)
                getattr(self._process, name)(ctypes.c_void_p(address), None)

    @property
    def workers(self) -> int:
        """The number of workers that have been started."""
        return self._get(layout.POOL_SIZE)

    @property
    def sleeping(self) -> int:
        """The number of workers that are sleeping."""
        return self._get(layout.POOL_SLEEPERS)

    @property
    def closed(self) -> bool:
        """True once the pool is closed."""
        return self._get(layout.POOL_CLOSING) != 0

    def renew(self) -> None:
        """Reset in a forked child, which has no workers but may have inherited locked mutexes."""
        self._reset()

    def close(self) -> None:
        """Stop and join the workers; later parallel regions run serially.

        A region that runs may still start workers, so the pool waits for its end, too. Threads
        that do not leave their kernel within :data:`LINGER` seconds are not joined, so that a
        kernel that never terminates in a daemon thread does not prevent the process from exiting;
        the memory of the pool stays valid for them.
        """
        if self.closed:
            return
        self._close(self.address)
        end = time.monotonic() + LINGER
        while self._get(layout.POOL_BUSY) or self._get(layout.POOL_EXITED) < self.workers:
            if time.monotonic() > end:
                _RUNNING.append(self)
                return
            time.sleep(0.0005)
        for k in range(self.workers):
            handle = ctypes.c_uint64.from_address(self.address + layout.POOL_HANDLES + 8 * k)
            self._process.pthread_join(handle, None)


_RUNNING: Final[list[ThreadPool]] = []
"""The closed pools with threads that were not joined."""


@cache
def process_pool() -> ThreadPool | None:
    """Return the pool of this process; None if the system has no POSIX threads."""
    if os.name != "posix":
        return None
    process = ctypes.CDLL(None)
    try:
        pool = ThreadPool(process)
    except AttributeError:  # the C library lacks a function, as before glibc 2.34 without -pthread
        return None
    rtlib_address(native.run_pool)  # cached here, because a forked child must not call LLVM
    atexit.register(pool.close)
    os.register_at_fork(after_in_child=pool.renew)
    return pool
