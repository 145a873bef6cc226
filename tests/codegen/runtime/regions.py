"""Parallel loops called directly, with bodies written in the language of the run-time library."""

from __future__ import annotations

import ctypes
import dataclasses
from functools import cache

from tilewright.codegen.build.native_library import Library
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower.host.to_thread import lower_host
from tilewright.codegen.rtlib.language import (
    Code,
    Ptr,
    call_code,
    exchange,
    load_i64,
    load_ptr,
    move,
    observe,
    pause,
    publish,
    store_i64,
    widen,
)
from tilewright.codegen.rtlib.translate import translate
from tilewright.codegen.runtime.table import RuntimeTable
from tilewright.ir.thread import runtime_table as slots
from tilewright.target.target import Target


def nothing(_environment: Ptr, _begin: int, _end: int, _worker: int) -> Code:
    return Code(0)


def tally(environment: Ptr, begin: int, end: int, worker: int) -> Code:
    """Count every iteration without atomics, so that duplicate iterations are detected.

    A chunk marks the index of its worker as busy and fails with code 77 if it is marked already, so
    that worker indices used by two threads are detected.
    """
    busy = load_ptr(environment, 8)
    if exchange(busy, 8 * worker, 0, 1) != 0:
        return Code(77)
    counts = load_ptr(environment, 0)
    fail_at = load_i64(environment, 16)
    code = 0
    for k in range(begin, end):
        for _wait in range(load_i64(environment, 24)):
            pause()
        store_i64(counts, 8 * k, load_i64(counts, 8 * k) + k + 1)
        if k == fail_at:
            code = 42
    publish(busy, 8 * worker, 0)
    return Code(code)


def nested(environment: Ptr, begin: int, end: int, _worker: int) -> Code:
    """Run a nested parallel loop for every iteration, with the provider of the runtime table."""
    inner = load_ptr(environment, 32)
    record = load_ptr(environment, 40)
    run = load_ptr(load_ptr(record, 0), 32)
    code = 0
    for k in range(begin, end):
        each = move(inner, 64 * k)
        code = max(code, widen(call_code(run, record, load_ptr(environment, 48), 50, each)))
    return Code(code)


def together(environment: Ptr, begin: int, end: int, worker: int) -> Code:
    """Wait until two chunks are running, and count the chunks of each worker."""
    for _k in range(begin, end):
        store_i64(environment, 16 + 8 * worker, load_i64(environment, 16 + 8 * worker) + 1)
        expected = observe(environment, 0)
        old = exchange(environment, 0, expected, expected + 1)
        while old != expected:
            expected = old
            old = exchange(environment, 0, expected, expected + 1)
        running = observe(environment, 0)
        while running < 2:
            pause()
            running = observe(environment, 0)
    return Code(0)


def endless(environment: Ptr, _begin: int, _end: int, _worker: int) -> Code:
    """Run until the first word of the environment is set."""
    stop = observe(environment, 0)
    while stop == 0:
        pause()
        stop = observe(environment, 0)
    return Code(0)


_PROVIDER = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)


@cache
def bodies() -> Library:
    """Compile the loop bodies of this file."""
    assert slots.PARALLEL == 32
    functions = [
        dataclasses.replace(lower_host(translate(f"tw_{f.__name__}", f)), exported=True)
        for f in (nothing, tally, nested, together, endless)
    ]
    target = Target("cpu")
    return Library([compile_text(emit_module(functions, target), target)], target)


class Region:
    """A parallel loop: the provider of a runtime table, the address of a body, and the extent."""

    def __init__(self, table: RuntimeTable, body: int, stop: int) -> None:
        self._record = (ctypes.c_int64 * 16)(table.address)
        provider = ctypes.c_int64.from_address(table.address + slots.PARALLEL).value
        self._provider = _PROVIDER(provider)
        self._body, self._stop, self._table = body, stop, table

    @property
    def record(self) -> int:
        return ctypes.addressof(self._record)

    def run(self, environment: Tally | int = 0, stop: int | None = None) -> int:
        """Run the loop and return its error code."""
        stop = self._stop if stop is None else stop
        address = environment.address if isinstance(environment, Tally) else environment
        return self._provider(self.record, self._body, stop, address)


class Tally:
    """An environment of ``tally``: counters of at most ``size`` iterations."""

    def __init__(self, size: int, *, fail_at: int = -1, spin: int = 0) -> None:
        self.counts = (ctypes.c_int64 * max(size, 1))()
        self.busy = (ctypes.c_int64 * 300)()
        self.words = (ctypes.c_int64 * 8)(
            ctypes.addressof(self.counts), ctypes.addressof(self.busy), fail_at, spin
        )

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)

    def rounds(self, stop: int) -> set[int]:
        """Return how often the iterations before ``stop`` ran: one number if all ran alike."""
        found = {self.counts[k] / (k + 1) for k in range(stop)}
        return {int(f) if f == int(f) else -1 for f in found}

    @property
    def end(self) -> int:
        """The last iteration that ran, plus one."""
        return max((k + 1 for k, c in enumerate(self.counts) if c), default=0)
