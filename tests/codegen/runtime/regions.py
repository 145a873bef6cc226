"""Parallel loops called by hand: bodies compiled from the subset of Python of the support code."""

from __future__ import annotations

import ctypes
import dataclasses
from functools import cache

from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower.host import lower_host
from tilewright.codegen.runtime.loader import Library
from tilewright.codegen.runtime.table import RuntimeTable
from tilewright.ir.host.language import (
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
from tilewright.ir.host.translate import translate
from tilewright.ir.target import Target
from tilewright.ir.thread import table as slots


def nothing(_environment: Ptr, _begin: int, _end: int, _worker: int) -> Code:
    return Code(0)


def tally(environment: Ptr, begin: int, end: int, worker: int) -> Code:
    """Count every iteration, not atomically: two threads on one would be seen.

    While a chunk is done, its worker's word is taken, so that a number given twice fails with 77.
    """
    taken = load_ptr(environment, 8)
    if exchange(taken, 8 * worker, 0, 1) != 0:
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
    publish(taken, 8 * worker, 0)
    return Code(code)


def nested(environment: Ptr, begin: int, end: int, _worker: int) -> Code:
    """Run a parallel loop inside of one: by the table's provider, a tally of its own each."""
    inner = load_ptr(environment, 32)
    record = load_ptr(environment, 40)
    run = load_ptr(load_ptr(record, 0), 32)
    code = 0
    for k in range(begin, end):
        each = move(inner, 64 * k)
        code = max(code, widen(call_code(run, record, load_ptr(environment, 48), 50, each)))
    return Code(code)


def together(environment: Ptr, begin: int, end: int, worker: int) -> Code:
    """Wait until as many chunks are in work as the loop has; note each worker's."""
    for _k in range(begin, end):
        store_i64(environment, 16 + 8 * worker, load_i64(environment, 16 + 8 * worker) + 1)
        here = observe(environment, 0)
        held = exchange(environment, 0, here, here + 1)
        while held != here:
            here = held
            held = exchange(environment, 0, here, here + 1)
        seen = observe(environment, 0)
        while seen < 2:
            pause()
            seen = observe(environment, 0)
    return Code(0)


def stubborn(environment: Ptr, _begin: int, _end: int, _worker: int) -> Code:
    """Run until the first word is set."""
    seen = observe(environment, 0)
    while seen == 0:
        pause()
        seen = observe(environment, 0)
    return Code(0)


_PROVIDER = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)


@cache
def bodies() -> Library:
    """Compile the bodies of this file."""
    assert slots.PARALLEL == 32
    functions = [
        dataclasses.replace(lower_host(translate(f"tw_{f.__name__}", f)), exported=True)
        for f in (nothing, tally, nested, together, stubborn)
    ]
    target = Target("cpu")
    return Library([compile_text(emit_module(functions, target), target)], target)


class Region:
    """A parallel loop: the provider of a table, a body's address, and how far it goes."""

    def __init__(self, table: RuntimeTable, body: int, stop: int) -> None:
        self._record = (ctypes.c_int64 * 16)(table.address)
        provider = ctypes.c_int64.from_address(table.address + slots.PARALLEL).value
        self._provider = _PROVIDER(provider)
        self._body, self._stop, self._table = body, stop, table

    @property
    def record(self) -> int:
        return ctypes.addressof(self._record)

    def run(self, environment: Tally | int = 0, stop: int | None = None) -> int:
        """Run it once; the code it gave."""
        stop = self._stop if stop is None else stop
        address = environment.address if isinstance(environment, Tally) else environment
        return self._provider(self.record, self._body, stop, address)


class Tally:
    """An environment of ``tally``: what every iteration counted, for at most ``size`` of them."""

    def __init__(self, size: int, *, fail_at: int = -1, spin: int = 0) -> None:
        self.counts = (ctypes.c_int64 * max(size, 1))()
        self.taken = (ctypes.c_int64 * 300)()
        self.words = (ctypes.c_int64 * 8)(
            ctypes.addressof(self.counts), ctypes.addressof(self.taken), fail_at, spin
        )

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)

    def rounds(self, stop: int) -> set[int]:
        """How often the iterations up to ``stop`` were run: one number where all is well."""
        found = {self.counts[k] / (k + 1) for k in range(stop)}
        return {int(f) if f == int(f) else -1 for f in found}

    @property
    def untouched_after(self) -> int:
        """The last iteration that was run, plus one."""
        return max((k + 1 for k, c in enumerate(self.counts) if c), default=0)
