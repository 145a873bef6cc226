"""Runtime tables: providers of memory, threads and time for generated code."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from ...errors import TilewrightError
from ...ir.graph.devices import device_named
from ...ir.thread import runtime_table as slots
from ...locks import renew_in_children
from ...target.host import available_threads
from ..build.rtlib_object import rtlib_address
from ..rtlib import calls, layout, pool, providers, results
from .pool import process_pool

Parallel: TypeAlias = Literal["pool", "openmp", "serial"] | int
"""The provider of parallel loops: the thread pool, an OpenMP runtime, none, or the address of a
custom function."""

_OPENMP_NAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so")
_OPENMP_SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")


class ProviderError(TilewrightError):
    """A provider of the runtime table that is not available."""

    title = "Unavailable provider"


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _loaded_openmp() -> list[str]:
    """Return the OpenMP runtimes that the process has loaded; a second one would oversubscribe."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    pattern = re.compile(r"/\S*/lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\d]*$", re.MULTILINE)
    return sorted(set(pattern.findall(maps.read_text())))


@cache
def openmp_runtime() -> tuple[str, tuple[int, int, int]] | None:
    """Return the name of an OpenMP runtime and the addresses of the three functions used.

    A runtime that the process has loaded already, for example by PyTorch, is preferred. None if
    there is no OpenMP runtime.
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
    addresses = {
        layout.SYSTEM_ALLOCATE: _address(process, "aligned_alloc"),
        layout.SYSTEM_FREE: _address(process, "free"),
        layout.SYSTEM_CLOCK: _address(process, "clock_gettime"),
        layout.SYSTEM_THREAD: _address(process, "pthread_self"),
    }
    if sys.platform == "linux":
        addresses[layout.SYSTEM_ADVISE] = _address(process, "madvise")
    runtime = openmp_runtime()
    if runtime is not None:
        offsets = (layout.SYSTEM_REGION, layout.SYSTEM_RANK, layout.SYSTEM_TEAM)
        addresses |= dict(zip(offsets, runtime[1], strict=True))
    for offset, address in addresses.items():
        words[offset // 8] = address
    workers = process_pool()
    words[layout.SYSTEM_POOL // 8] = workers.address if workers else 0
    return words


class _InitLock:
    """The lock of the one-time initialization of the system words and the thread pool."""

    def __init__(self) -> None:
        self.lock = Lock()
        renew_in_children(self, "lock")


_INIT_LOCK = _InitLock()


def _system_words() -> ctypes.Array[ctypes.c_int64]:
    with _INIT_LOCK.lock:
        return _system()


_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 4)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 2)

_KEPT: list[RuntimeTable] = []
"""All tables; result tensors free their memory through them, so they are never destroyed."""


@dataclass(frozen=True, slots=True)
class MemoryProvider:
    """A memory provider written in Python, for tests and accounting; calls acquire the GIL.

    ``allocate(bytes, alignment)`` returns an address, or 0 on failure; ``free(address)`` frees it.
    """

    allocate: Callable[[int, int], int]
    free: Callable[[int], None]


NO_DEVICES: Final[Mapping[str, MemoryProvider | None]] = MappingProxyType({})


def _by_number(devices: Mapping[str, MemoryProvider | None]) -> dict[int, MemoryProvider]:
    """Return the memory of devices by their numbers in the table.

    Raises
    ------
    ProviderError
        If a name is not that of a device.
    """
    found: dict[int, MemoryProvider] = {}
    for name, memory in devices.items():
        named = device_named(name)
        if named is None:
            raise ProviderError(
                f"{name!r} is not a device",
                where="argument 'devices' of RuntimeTable",
                hint="devices are 'cpu:1', 'cuda', 'cuda:1', ...",
            )
        kind = {"cpu": layout.HOST, "cuda": layout.CUDA}[named.kind]
        if memory is not None:
            found[kind * layout.DEVICE_TYPE_UNIT + named.ordinal] = memory
    return found


def _process_memory() -> MemoryProvider:
    """Return the memory of the C library as a provider in Python."""
    process = ctypes.CDLL(None)
    process.aligned_alloc.restype = ctypes.c_void_p
    process.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    process.free.argtypes = [ctypes.c_void_p]

    def allocate(size: int, alignment: int) -> int:
        return process.aligned_alloc(alignment, -(-size // alignment) * alignment) or 0

    return MemoryProvider(allocate, process.free)


class RuntimeTable:
    """A table of function pointers (version 1), which is never destroyed.

    Parameters
    ----------
    threads : int
        Maximum number of threads of a parallel loop; 0 means one per core.
    parallel : {"pool", "openmp", "serial"} or int
        Provider of parallel loops: the thread pool of this process (:mod:`.pool`), an OpenMP
        runtime, or none; an integer is the address of a custom function. The default is the thread
        pool, or ``"serial"`` on a system without POSIX threads.
    memory : MemoryProvider, optional
        Provider of memory; by default the C library.
    launch : int
        Address of the provider that launches kernels on a device; 0 if kernels are CPU functions.
    device : int
        Address of the description of a device with separate memory; 0 if there is none.
    profile : int
        Address of the provider of times; 0 means the default provider.
    copy : int
        Address of the provider of copies; 0 means copies by the processor.
    devices : Mapping of str to MemoryProvider or None
        The devices of the table besides ``cpu``, such as ``cpu:1``, with their memory; None if
        ``memory`` or the device provides it.

    Raises
    ------
    ProviderError
        If ``parallel`` is ``"openmp"`` and no OpenMP runtime is found, or ``"pool"`` and the system
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
        memory: MemoryProvider | None = None,
        launch: int = 0,
        device: int = 0,
        profile: int = 0,
        copy: int = 0,
        devices: Mapping[str, MemoryProvider | None] = NO_DEVICES,
    ) -> None:
        """Fill the slots."""
        self.devices: frozenset[str] = frozenset({"cpu", *devices})
        self._words = (ctypes.c_int64 * (slots.SIZE // 8))()
        self._callbacks: list[Any] = []
        system = _system_words()
        chosen = parallel or ("pool" if process_pool() else "serial")
        self._put(slots.VERSION, slots.CURRENT)
        rtlib_address(providers.run_serial)  # cached here, because a forked child needs it
        self._memory(memory, _by_number(devices))
        self._parallel(chosen, threads or available_threads())
        self._put(slots.ERROR, rtlib_address(calls.report))
        self._put(slots.LIBRARY, rtlib_address(calls.call_library))
        self._put(slots.PROFILE, profile or rtlib_address(providers.take_time))
        self._put(slots.RELEASE, rtlib_address(results.release_result))
        self._put(slots.SYSTEM, ctypes.addressof(system))
        self._put(slots.LAUNCH, launch)
        self._put(slots.DEVICE, device)
        self._put(slots.COPY, copy or rtlib_address(results.copy_memory))
        _KEPT.append(self)
        _watch_forks()

    def _put(self, slot: int, value: int) -> None:
        self._words[slot // 8] = value

    def _memory(self, memory: MemoryProvider | None, others: Mapping[int, MemoryProvider]) -> None:
        if memory is None and others:
            memory = _process_memory()
        if memory is None:
            self._put(slots.ALLOC, rtlib_address(providers.provide_memory))
            self._put(slots.FREE, rtlib_address(providers.take_memory))
            return

        own = memory

        def call_allocate(
            _context: int, size: int, alignment: int, device: int, _stream: int
        ) -> int | None:
            return others.get(device, own).allocate(size, alignment) or None

        def call_free(_context: int, address: int, device: int, _stream: int) -> None:
            others.get(device, own).free(address)

        allocate, free = _ALLOC(call_allocate), _FREE(call_free)
        self._callbacks += [allocate, free]
        self._put(slots.ALLOC, ctypes.cast(allocate, ctypes.c_void_p).value or 0)
        self._put(slots.FREE, ctypes.cast(free, ctypes.c_void_p).value or 0)

    def _parallel(self, provider: Parallel, threads: int) -> None:
        if provider == "pool" and process_pool() is None:
            raise ProviderError(
                "parallel='pool' requires POSIX threads, which this system does not have",
                hint="use parallel='openmp' or parallel='serial'",
            )
        if provider == "openmp" and openmp_runtime() is None:
            raise ProviderError(
                "parallel='openmp' requires an OpenMP runtime, and none was found",
                hint=f"install one of {', '.join(_OPENMP_NAMES)}, or use parallel='pool'",
            )
        if provider == "serial":
            threads = 1
        entry = {
            "pool": pool.run_pool,
            "openmp": providers.run_openmp,
            "serial": providers.run_serial,
        }
        self._survives_fork = provider == "pool"
        custom = isinstance(provider, int)
        self._put(slots.PARALLEL, provider if custom else rtlib_address(entry[provider]))
        self._put(slots.THREADS, threads)

    @property
    def address(self) -> int:
        """The address of the table."""
        return ctypes.addressof(self._words)

    @property
    def threads(self) -> int:
        """The maximum number of threads of a parallel loop."""
        return int(self._words[slots.THREADS // 8])

    @property
    def profile(self) -> int:
        """The address of the provider of times."""
        return int(self._words[slots.PROFILE // 8])

    @profile.setter
    def profile(self, address: int) -> None:
        self._put(slots.PROFILE, address)

    def word(self, slot: int) -> int:
        """Return the value of a slot."""
        return int(self._words[slot // 8])

    def limit(self, threads: int) -> None:
        """Set the maximum number of threads of a parallel loop; a serial provider keeps 1."""
        serial = self._words[slots.PARALLEL // 8] == rtlib_address(providers.run_serial)
        self._put(slots.THREADS, 1 if serial else threads)

    def make_serial(self) -> None:
        """Run all later parallel loops on the calling thread."""
        self._parallel("serial", 1)

    def after_fork(self) -> None:
        """Make a forked child serial, unless its provider is the thread pool, which restarts."""
        if not self._survives_fork:
            self.make_serial()


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """Reset the tables of a forked child, where an OpenMP runtime would wait for lost threads."""
    for table in _KEPT:
        table.after_fork()
    _system()[layout.SYSTEM_BUSY // 8] = 0


@cache
def default_table(threads: int = 0) -> RuntimeTable:
    """Return the default table of the process for a number of threads."""
    return RuntimeTable(threads=threads)
