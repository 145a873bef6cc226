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
    observe,
    publish,
    stack,
    store_i64,
    store_ptr,
    support,
    widen,
)

MONOTONIC = 1
CHUNKS = 4
"""Chunks a worker, so that one that is slowed down does not hold the others up."""
REGION_BODY = 0
REGION_ENVIRONMENT = 8
REGION_STOP = 16
REGION_SYSTEM = 24
REGION_CODE = 32
REGION_NEXT = 40
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
def claim_chunk(region: Ptr, chunk: int) -> int:
    """Take the next iterations of a region that nobody has taken, and give the first of them."""
    first = observe(region, REGION_NEXT)
    held = exchange(region, REGION_NEXT, first, first + chunk)
    while held != first:
        first = held
        held = exchange(region, REGION_NEXT, first, first + chunk)
    return first


@support
def region_worker(region: Ptr) -> None:
    """Do chunks of a parallel region until none is left; a worker that is late does fewer."""
    base = load_ptr(region, REGION_SYSTEM)
    rank = widen(call_code(load_ptr(base, layout.SYSTEM_RANK)))
    team = widen(call_code(load_ptr(base, layout.SYSTEM_TEAM)))
    stop = load_i64(region, REGION_STOP)
    chunk = max(stop // (CHUNKS * team), 1)
    begin = claim_chunk(region, chunk)
    while begin < stop:
        end = min(begin + chunk, stop)
        body = load_ptr(region, REGION_BODY)
        environment = load_ptr(region, REGION_ENVIRONMENT)
        code = widen(call_code(body, environment, begin, end, rank))
        if code != 0:
            exchange(region, REGION_CODE, 0, code)
        begin = claim_chunk(region, chunk)


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
    if threads < 2:
        return call_code(body, environment, 0, stop, 0)
    if exchange(base, layout.SYSTEM_BUSY, 0, 1) != 0:
        return call_code(body, environment, 0, stop, 0)
    code = 0
    if may_open(base) == 1:
        region = stack(48)
        store_ptr(region, REGION_BODY, body)
        store_ptr(region, REGION_ENVIRONMENT, environment)
        store_i64(region, REGION_STOP, stop)
        store_ptr(region, REGION_SYSTEM, base)
        store_i64(region, REGION_CODE, 0)
        store_i64(region, REGION_NEXT, 0)
        call_nothing(
            load_ptr(base, layout.SYSTEM_REGION), function(region_worker), region, threads, 0
        )
        store_i64(base, layout.SYSTEM_LAST, now(base))
        publish(base, layout.SYSTEM_BUSY, 0)
        code = load_i64(region, REGION_CODE)
    else:
        publish(base, layout.SYSTEM_BUSY, 0)
        code = widen(call_code(body, environment, 0, stop, 0))
    return Code(code)
