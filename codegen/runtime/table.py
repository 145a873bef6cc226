"""The runtime table of this process: where generated code gets memory, threads and time."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias

from ...ir.errors import TilewrightError
from ...ir.host import layout
from ...ir.host.support import calls, pool, providers, results
from ...ir.thread import table as slots
from .pool import process_pool
from .support import support_address

Parallel: TypeAlias = Literal["pool", "openmp", "serial"] | int
"""Who shares out iterations: our workers, an OpenMP runtime, nobody, or the address of a function
of yours."""

_OPENMP_NAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so")
_OPENMP_SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")


class ProviderError(TilewrightError):
    """A provider of the runtime table that this machine does not have."""

    title = "No such provider"


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _loaded_openmp() -> list[str]:
    """List the OpenMP runtimes in this process already: two would fight over the cores."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    pattern = re.compile(r"/\S*/lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\d]*$", re.MULTILINE)
    return sorted(set(pattern.findall(maps.read_text())))


@cache
def openmp_runtime() -> tuple[str, tuple[int, int, int]] | None:
    """Find an OpenMP runtime: its name, and the addresses of the three functions used.

    One that the process has loaded (PyTorch brings its own) is preferred to another one.
    """
    for name in (*_loaded_openmp(), *_OPENMP_NAMES):
        try:
            library = ctypes.CDLL(name)
            region, rank, team = (_address(library, s) for s in _OPENMP_SYMBOLS)
        except (OSError, AttributeError):
            continue
        return name, (region, rank, team)
    return None


@cache
def _system() -> ctypes.Array[ctypes.c_int64]:
    words = (ctypes.c_int64 * (layout.SYSTEM_SIZE // 8))()
    process = ctypes.CDLL(None)
    found = {
        layout.SYSTEM_ALLOCATE: _address(process, "aligned_alloc"),
        layout.SYSTEM_FREE: _address(process, "free"),
        layout.SYSTEM_CLOCK: _address(process, "clock_gettime"),
        layout.SYSTEM_THREAD: _address(process, "pthread_self"),
    }
    runtime = openmp_runtime()
    if runtime is not None:
        places = (layout.SYSTEM_REGION, layout.SYSTEM_RANK, layout.SYSTEM_TEAM)
        found |= dict(zip(places, runtime[1], strict=True))
    for offset, address in found.items():
        words[offset // 8] = address
    workers = process_pool()
    words[layout.SYSTEM_POOL // 8] = workers.address if workers else 0
    return words


class _First:
    """Held while the words are first filled in: there is one set of them, and one pool."""

    def __init__(self) -> None:
        self.lock = Lock()

    def renew(self) -> None:
        """Begin anew in a forked child, where another thread may have held it."""
        self.lock = Lock()


_FIRST = _First()


def _system_words() -> ctypes.Array[ctypes.c_int64]:
    with _FIRST.lock:
        return _system()


def available_threads() -> int:
    """Count the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_KEPT: list[RuntimeTable] = []
"""Every table, as long as the process: result tensors free their memory through them."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory provider written in Python, for tests and for accounting; calls take the GIL.

    ``allocate(bytes, alignment)`` gives an address or 0, ``free(address)`` takes it back.
    """

    allocate: Callable[[int, int], int]
    free: Callable[[int], None]


class RuntimeTable:
    """One table of function pointers (version 1); it lives as long as the process.

    Parameters
    ----------
    threads : int
        Workers a parallel loop may use; 0 means one per core.
    parallel : {"pool", "openmp", "serial"} or int
        Provider of parallel loops: the workers of this process (:mod:`.pool`), those of an OpenMP
        runtime, none; an integer is the address of a function of yours. The pool where it is not
        given, and none on a system without POSIX threads.
    memory : Memory, optional
        Provider of memory; the C library's where it is not given.
    launch : int
        Address of the provider that starts kernels on a device; 0 where kernels are functions.
    device : int
        Address of the description of a device whose memory is not the host's.
    profile : int
        Address of the provider of times; the standard one's if 0.

    Raises
    ------
    ProviderError
        If ``"openmp"`` is asked for and no OpenMP runtime is found, or ``"pool"`` where the system
        has no POSIX threads.

    Examples
    --------
    >>> RuntimeTable(threads=2, parallel="serial").threads
    1
    """

    def __init__(
        self,
        *,
        threads: int = 0,
        parallel: Parallel | None = None,
        memory: Memory | None = None,
        launch: int = 0,
        device: int = 0,
        profile: int = 0,
    ) -> None:
        """Fill the slots."""
        self._words = (ctypes.c_int64 * (slots.SIZE // 8))()
        self._callbacks: list[Any] = []
        system = _system_words()
        chosen = parallel or ("pool" if process_pool() else "serial")
        self._put(slots.VERSION, slots.CURRENT)
        support_address(providers.run_serial)  # remembered for a forked child
        self._memory(memory)
        self._parallel(chosen, threads or available_threads())
        self._put(slots.ERROR, support_address(calls.report))
        self._put(slots.LIBRARY, support_address(calls.call_library))
        self._put(slots.PROFILE, profile or support_address(providers.take_time))
        self._put(slots.RELEASE, support_address(results.release_result))
        self._put(slots.SYSTEM, ctypes.addressof(system))
        self._put(slots.LAUNCH, launch)
        self._put(slots.DEVICE, device)
        _KEPT.append(self)
        _watch_forks()

    def _put(self, slot: int, value: int) -> None:
        self._words[slot // 8] = value

    def _memory(self, memory: Memory | None) -> None:
        if memory is None:
            self._put(slots.ALLOC, support_address(providers.provide_memory))
            self._put(slots.FREE, support_address(providers.take_memory))
            return

        def give(_context: int, size: int, alignment: int) -> int | None:
            return memory.allocate(size, alignment) or None

        def take(_context: int, address: int) -> None:
            memory.free(address)

        allocate, free = _ALLOC(give), _FREE(take)
        self._callbacks += [allocate, free]
        self._put(slots.ALLOC, ctypes.cast(allocate, ctypes.c_void_p).value or 0)
        self._put(slots.FREE, ctypes.cast(free, ctypes.c_void_p).value or 0)

    def _parallel(self, provider: Parallel, threads: int) -> None:
        if provider == "pool" and process_pool() is None:
            raise ProviderError(
                "this system has no POSIX threads", hint="use parallel='openmp' or 'serial'"
            )
        if provider == "openmp" and openmp_runtime() is None:
            raise ProviderError(
                "no OpenMP runtime is found",
                hint=f"install one of {', '.join(_OPENMP_NAMES)}, or use parallel='pool'",
            )
        if provider == "serial":
            threads = 1
        entry = {
            "pool": pool.run_pool,
            "openmp": providers.run_openmp,
            "serial": providers.run_serial,
        }
        self._survives = provider == "pool"
        own = isinstance(provider, int)
        self._put(slots.PARALLEL, provider if own else support_address(entry[provider]))
        self._put(slots.THREADS, threads)

    @property
    def address(self) -> int:
        """Where generated code finds the table."""
        return ctypes.addressof(self._words)

    @property
    def threads(self) -> int:
        """How many workers a parallel loop may use now."""
        return int(self._words[slots.THREADS // 8])

    @property
    def profile(self) -> int:
        """The provider of times: the address of a function."""
        return int(self._words[slots.PROFILE // 8])

    @profile.setter
    def profile(self, address: int) -> None:
        self._put(slots.PROFILE, address)

    def limit(self, threads: int) -> None:
        """Let a parallel loop use so many workers from now on; without a runtime it stays one."""
        serial = self._words[slots.PARALLEL // 8] == support_address(providers.run_serial)
        self._put(slots.THREADS, 1 if serial else threads)

    def go_serial(self) -> None:
        """Run every parallel loop on its caller's thread from now on."""
        self._parallel("serial", 1)

    def after_fork(self) -> None:
        """Leave, in a forked child, a provider whose threads are lost; our pool begins anew."""
        if not self._survives:
            self.go_serial()


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """An OpenMP runtime has lost its threads in a forked child, and hangs waiting for them."""
    _FIRST.renew()
    for table in _KEPT:
        table.after_fork()
    _system()[layout.SYSTEM_BUSY // 8] = 0


@cache
def default_table(threads: int = 0) -> RuntimeTable:
    """Give the process's table for a number of threads."""
    return RuntimeTable(threads=threads)
