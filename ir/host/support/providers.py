"""The standard providers of the runtime table: memory, time and threads.

``context`` is the record of a call; its first word is the process's table, whose ``SYSTEM`` slot
leads to the functions of the C library and of an OpenMP runtime.
"""

from __future__ import annotations

from ...thread import table
from .. import layout
from ..language import (
    Code,
    Ptr,
    call_code,
    call_int,
    call_nothing,
    call_ptr,
    exchange,
    function,
    load_i64,
    load_ptr,
    move,
    publish,
    stack,
    store_i64,
    store_ptr,
    support,
    widen,
)

MONOTONIC = 1
HANDOVER = 100_000_000
"""Nanoseconds without a region after which another thread may own the team of workers."""


@support
def system(context: Ptr) -> Ptr:
    """Find what the providers stand on."""
    return load_ptr(load_ptr(context, 0), table.SYSTEM)


@support
def provide_memory(context: Ptr, size: int, alignment: int) -> Ptr:
    """Allocate from the C library; ``alloc`` of the table."""
    whole = (size + alignment - 1) // alignment * alignment
    return call_ptr(load_ptr(system(context), layout.SYSTEM_ALLOCATE), alignment, whole)


@support
def take_memory(context: Ptr, memory: Ptr) -> None:
    """Free to the C library; ``free`` of the table."""
    call_nothing(load_ptr(system(context), layout.SYSTEM_FREE), memory)


@support
def now(base: Ptr) -> int:
    """Nanoseconds of a clock that only goes forward."""
    time = stack(16)
    call_code(load_ptr(base, layout.SYSTEM_CLOCK), MONOTONIC, time)
    return load_i64(time, 0) * 1_000_000_000 + load_i64(time, 8)


@support
def take_time(call: Ptr, launch: int, phase: int) -> None:
    """Collect the time of a launch: count, nanoseconds, start; ``profile`` of the table."""
    line = move(load_ptr(call, layout.CALL_SINK), 24 * launch)
    time = now(system(call))
    if phase == 0:
        store_i64(line, 16, time)
    else:
        store_i64(line, 0, load_i64(line, 0) + 1)
        store_i64(line, 8, load_i64(line, 8) + time - load_i64(line, 16))


@support
def run_serial(_context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run all iterations on the calling thread; ``parallel`` of the table."""
    return call_code(body, environment, 0, stop, 0)


@support
def region_worker(region: Ptr) -> None:
    """One worker's share of a parallel region: body, environment, stop, system, code."""
    base = load_ptr(region, 24)
    rank = widen(call_code(load_ptr(base, layout.SYSTEM_RANK)))
    team = widen(call_code(load_ptr(base, layout.SYSTEM_TEAM)))
    stop = load_i64(region, 16)
    begin = stop * rank // team
    end = stop * (rank + 1) // team
    if begin < end:
        code = widen(call_code(load_ptr(region, 0), load_ptr(region, 8), begin, end, rank))
        if code != 0:
            exchange(region, 32, 0, code)


@support
def may_open(base: Ptr) -> int:
    """Whether the calling thread may use the team: each thread that does gets one of its own.

    A thread takes the ownership over once the owner has been idle for a while. Others run
    serially meanwhile, so many callers on few cores do not make many times as many threads.
    """
    me = call_int(load_ptr(base, layout.SYSTEM_THREAD))
    if me == load_i64(base, layout.SYSTEM_OWNER):
        return 1
    if now(base) - load_i64(base, layout.SYSTEM_LAST) < HANDOVER:
        return 0
    store_i64(base, layout.SYSTEM_OWNER, me)
    return 1


@support
def run_openmp(context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Share iterations out with an OpenMP runtime; ``parallel`` of the table.

    One region runs at a time; a caller that finds it taken does its work alone.
    """
    base = system(context)
    threads = min(load_i64(load_ptr(context, 0), table.THREADS), stop)
    if threads < 2 or exchange(base, layout.SYSTEM_BUSY, 0, 1) != 0:
        return call_code(body, environment, 0, stop, 0)
    code = 0
    if may_open(base) == 1:
        region = stack(40)
        store_ptr(region, 0, body)
        store_ptr(region, 8, environment)
        store_i64(region, 16, stop)
        store_ptr(region, 24, base)
        store_i64(region, 32, 0)
        call_nothing(
            load_ptr(base, layout.SYSTEM_REGION), function(region_worker), region, threads, 0
        )
        store_i64(base, layout.SYSTEM_LAST, now(base))
        publish(base, layout.SYSTEM_BUSY, 0)
        code = load_i64(region, 32)
    else:
        publish(base, layout.SYSTEM_BUSY, 0)
        code = widen(call_code(body, environment, 0, stop, 0))
    return Code(code)
