"""Thread pool of an exported model: a part of the Python loader, without other imports.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

# @BEGIN@
import atexit
import ctypes
import os
import signal
import time

_POOL: dict[str, int] = {}  # @POOL@
_SYSTEM = {
    "CREATE": "pthread_create", "LOCK": "pthread_mutex_lock", "TRY_LOCK": "pthread_mutex_trylock",
    "UNLOCK": "pthread_mutex_unlock", "WAIT": "pthread_cond_wait", "SIGNAL": "pthread_cond_signal",
    "MASK": "pthread_sigmask", "TIME": "clock_gettime",
}  # fmt: skip
_LOCKS = {
    "pthread_mutex_init": ("SLEEP_MUTEX", "DONE_MUTEX"),
    "pthread_cond_init": ("SLEEP_CONDITION", "DONE_CONDITION"),
}
_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
_LINGER = 2.0


class _Pool:
    """A thread pool that the library runs; its threads start on demand and sleep when idle.

    The library owns the words of the pool. This class stores the addresses of system functions in
    them, resets them in forked children, which have no threads of their parent, and joins the
    threads before the process exits.
    """

    def __init__(self, close, threads: int) -> None:
        self._memory = ctypes.create_string_buffer(_POOL["BYTES"] + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._process = ctypes.CDLL(None)
        self._close = close
        for word, name in _SYSTEM.items():
            self._put(word, ctypes.cast(getattr(self._process, name), ctypes.c_void_p).value)
        get_cpu = getattr(self._process, "sched_getcpu", None)  # Linux only
        self._put("GET_CPU", ctypes.cast(get_cpu, ctypes.c_void_p).value if get_cpu else 0)
        self._put("BLOCK", int(signal.SIG_BLOCK))
        self._put("CLOCK", time.CLOCK_MONOTONIC)
        self._put("LIMIT", threads)
        kept = {getattr(signal, name) for name in _FAULTS if hasattr(signal, name)}
        for number in signal.valid_signals() - kept:
            byte = self.address + _POOL["SIGNALS"] + (number - 1) // 8
            ctypes.c_uint8.from_address(byte).value |= 1 << (number - 1) % 8
        self.reset()
        _pools.add(self)

    def _put(self, word: str, value: int) -> None:
        ctypes.c_int64.from_address(self.address + _POOL[word]).value = value

    def _get(self, word: str) -> int:
        return ctypes.c_int64.from_address(self.address + _POOL[word]).value

    def reset(self) -> None:
        """Forget all threads."""
        for word in ("WORK", "BUSY", "SLEEPERS", "EXITED", "SIZE"):
            self._put(word, 0)
        self._put("MOST", _POOL["WORKERS"])
        for name, words in _LOCKS.items():
            for word in words:
                lock = self.address + _POOL[word]
                ctypes.memset(lock, 0, 128)
                getattr(self._process, name)(ctypes.c_void_p(lock), None)

    def close(self) -> None:
        """Stop and join the threads."""
        if self._get("CLOSING"):
            return
        self._close(ctypes.c_void_p(self.address))
        end = time.monotonic() + _LINGER
        while self._get("BUSY") or self._get("EXITED") < self._get("SIZE"):
            if time.monotonic() > end:
                return
            time.sleep(0.0005)
        for k in range(self._get("SIZE")):
            handle = ctypes.c_uint64.from_address(self.address + _POOL["HANDLES"] + 8 * k)
            self._process.pthread_join(handle, None)
        _pools.discard(self)


_pools: set[_Pool] = set()
"""The pools whose memory threads may access."""


def _close_pools() -> None:
    for pool in tuple(_pools):
        pool.close()


def _reset_pools() -> None:
    for pool in tuple(_pools):
        pool.reset()


atexit.register(_close_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_pools)
