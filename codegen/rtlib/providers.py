"""The default providers: functions of the runtime table for memory, time, and threads.

A provider is a function whose address is an entry of the runtime table. Its argument ``context``
is the call record. The first word of the record is the runtime table of the process, whose
``SYSTEM`` slot is the address of the system record: functions of the C library and of an OpenMP
runtime, and the state of the providers.
"""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
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
    number,
    observe,
    publish,
    rtlib_function,
    stack,
    store_i64,
    store_ptr,
    widen,
)

MONOTONIC = 1
CHUNKS = 4
"""The number of chunks per worker; several chunks balance the load if a worker is slow."""
REGION_BODY = 0
REGION_ENVIRONMENT = 8
REGION_STOP = 16
REGION_SYSTEM = 24
REGION_CODE = 32
REGION_NEXT = 40
PAGE = 4096
HUGE = 4 << 20
"""The size in bytes from which on memory is requested in huge pages: one page fault, not 512."""
HUGE_PAGES = 14
"""``MADV_HUGEPAGE`` of Linux."""
HANDOVER = 100_000_000
"""The idle time in nanoseconds after which another thread may take over the OpenMP team."""


@rtlib_function
def system(context: Ptr) -> Ptr:
    """Return the system record."""
    return load_ptr(load_ptr(context, 0), runtime_table.SYSTEM)


@rtlib_function
def provide_memory(context: Ptr, size: int, alignment: int, _device: int, _stream: int) -> Ptr:
    """Allocate with the C library; function ``ALLOC`` of the runtime table."""
    whole = (size + alignment - 1) // alignment * alignment
    base = system(context)
    memory = call_ptr(load_ptr(base, layout.SYSTEM_ALLOCATE), alignment, whole)
    if whole >= HUGE and number(memory) != 0 and load_i64(base, layout.SYSTEM_ADVISE) != 0:
        skipped = (PAGE - number(memory) % PAGE) % PAGE
        pages = (whole - skipped) // PAGE * PAGE
        call_code(load_ptr(base, layout.SYSTEM_ADVISE), move(memory, skipped), pages, HUGE_PAGES)
    return memory


@rtlib_function
def take_memory(context: Ptr, memory: Ptr, _device: int, _stream: int) -> None:
    """Free with the C library; function ``FREE`` of the runtime table."""
    call_nothing(load_ptr(system(context), layout.SYSTEM_FREE), memory)


@rtlib_function
def now(base: Ptr) -> int:
    """Return the time of a monotonic clock in nanoseconds."""
    time = stack(16)
    call_code(load_ptr(base, layout.SYSTEM_CLOCK), MONOTONIC, time)
    return load_i64(time, 0) * 1_000_000_000 + load_i64(time, 8)


@rtlib_function
def take_time(call: Ptr, launch: int, phase: int) -> None:
    """Accumulate count and time of a launch; function ``PROFILE`` of the runtime table."""
    line = move(load_ptr(call, layout.CALL_SINK), 24 * launch)
    time = now(system(call))
    if phase == 0:
        store_i64(line, 16, time)
    else:
        store_i64(line, 0, load_i64(line, 0) + 1)
        store_i64(line, 8, load_i64(line, 8) + time - load_i64(line, 16))


@rtlib_function
def run_serial(_context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run all iterations on the calling thread; function ``PARALLEL`` of the runtime table."""
    return call_code(body, environment, 0, stop, 0)


@rtlib_function
def claim_chunk(region: Ptr, chunk: int) -> int:
    """Claim the next chunk of a parallel region; return its first iteration."""
    first = observe(region, REGION_NEXT)
    current = exchange(region, REGION_NEXT, first, first + chunk)
    while current != first:
        first = current
        current = exchange(region, REGION_NEXT, first, first + chunk)
    return first


@rtlib_function
def region_worker(region: Ptr) -> None:
    """Run chunks of a parallel region until none is left."""
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


@rtlib_function
def may_open(base: Ptr) -> int:
    """Return whether the calling thread may open an OpenMP region.

    An OpenMP runtime creates a separate team for each thread that opens regions. Therefore only
    one thread at a time owns the right to do so; other threads run serially, which bounds the
    number of threads. Another thread becomes the owner after the owner has been idle for a time.
    """
    me = call_int(load_ptr(base, layout.SYSTEM_THREAD))
    if me == load_i64(base, layout.SYSTEM_OWNER):
        return 1
    if now(base) - load_i64(base, layout.SYSTEM_LAST) < HANDOVER:
        return 0
    store_i64(base, layout.SYSTEM_OWNER, me)
    return 1


@rtlib_function
def run_openmp(context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Distribute iterations with an OpenMP runtime; function ``PARALLEL`` of the runtime table.

    Only one region runs at a time; other callers run their iterations serially.
    """
    base = system(context)
    threads = min(load_i64(load_ptr(context, 0), runtime_table.THREADS), stop)
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
