"""The thread pool: the default implementation of parallel regions.

Reasons for a pool instead of OpenMP: an OpenMP team ends with a barrier, so on a busy machine a
region waits for workers that the operating system has not scheduled yet and that have no work
left. Measured times were 10 to 50 times those of a single thread. Some machines have no OpenMP
runtime. Threads are created with the address of ``pthread_create``; everything else is integer
arithmetic and atomics. Therefore the same code generator that compiles kernels compiles the pool,
it runs without Python's global interpreter lock, needs no C compiler, and is part of exported
libraries. (``tilewright.h`` contains a C version.)

A region is divided into chunks of iterations. Its state is one 64-bit word::

    generation (31 bits) | free seats (8) | active threads (8) | unclaimed chunks (16)

A worker joins the region by claiming a seat and a chunk in one atomic exchange of the word. After a
chunk, one atomic exchange either claims the next chunk or leaves the region. Every active thread
runs a chunk. The caller of the region also runs chunks, and at the end waits only for chunks that
have started, never for workers that have not: a late worker finds no unclaimed chunk. The seat
determines the worker number, so worker numbers are less than the number of threads. The other
fields of a region are written only while no thread is active, and are read only by active threads.
A failing chunk cancels all unclaimed chunks.

One region runs at a time. A concurrent caller or a nested region runs its iterations serially, so
the number of running threads is at most the number of callers plus workers.

An idle worker spins on the word for ``SPIN_IDLE`` nanoseconds, then sleeps on a condition variable.
It sleeps immediately if it detects that its core was preempted or is the core of the caller. A
wake-up is only a hint: it never blocks on a lock, it is repeated before every chunk while workers
can join, and a woken worker wakes the next one.
"""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
    NULL,
    Code,
    Ptr,
    call_code,
    call_nothing,
    exchange,
    function,
    load_i64,
    load_ptr,
    move,
    observe,
    pause,
    publish,
    rtlib_function,
    stack,
    store_i64,
    store_ptr,
    widen,
)
from .providers import system

CHUNKS = 4
"""The number of chunks per thread; several chunks balance the load if a thread is slow."""
SPIN_IDLE = 100_000
"""The time in nanoseconds that an idle worker spins: about the cost of waking it."""
SPIN_JOIN = 20_000
"""The time in nanoseconds that a caller spins for the last chunks before it sleeps.

Their threads may be waiting for the caller's core.
"""
PREEMPTED = 20_000
"""The time in nanoseconds between two polls that indicates that the thread was preempted."""
POLLS = 24
"""The number of polls between two reads of the clock."""
UNCLAIMED = 0xFFFF
ACTIVE = 1 << 16
UNFINISHED = 0xFFFFFF
"""The bits of unclaimed chunks and active threads; all are 0 when a region is finished."""
SEAT = 1 << 24
SEATS = 0xFF << 24
GENERATION = 1 << 32
GENERATIONS = 0x7FFFFFFF


@rtlib_function
def pool_time(pool: Ptr) -> int:
    """Return the time of a monotonic clock in nanoseconds."""
    time = stack(16)
    call_code(load_ptr(pool, layout.POOL_TIME), load_i64(pool, layout.POOL_CLOCK), time)
    return load_i64(time, 0) * 1_000_000_000 + load_i64(time, 8)


@rtlib_function
def current_core(pool: Ptr) -> int:
    """Return the core of the calling thread, or -1 if the system does not provide it."""
    get_cpu = load_ptr(pool, layout.POOL_GET_CPU)
    if get_cpu == NULL:
        return -1
    return widen(call_code(get_cpu))


@rtlib_function
def atomic_add(pool: Ptr, offset: int, change: int) -> None:
    """Add to an integer atomically."""
    old = observe(pool, offset)
    current = exchange(pool, offset, old, old + change)
    while current != old:
        old = current
        current = exchange(pool, offset, old, old + change)


@rtlib_function
def work_open(word: int) -> int:
    """Return whether a worker may join: there is an unclaimed chunk and a free seat."""
    if (word & UNCLAIMED) != 0 and (word & SEATS) != 0:
        return 1
    return 0


@rtlib_function
def wake_worker(pool: Ptr) -> None:
    """Wake a sleeping worker if one can join the region; never block on a lock."""
    is_open = work_open(observe(pool, layout.POOL_WORK))
    if is_open == 0 or observe(pool, layout.POOL_SLEEPERS) == 0:
        return
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    if widen(call_code(load_ptr(pool, layout.POOL_TRY_LOCK), mutex)) == 0:
        call_code(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_SLEEP_CONDITION))
        call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@rtlib_function
def join_region(pool: Ptr) -> int:
    """Claim a seat and a chunk; return the old state word, or 0 if none is available."""
    word = observe(pool, layout.POOL_WORK)
    while (word & UNCLAIMED) != 0 and (word & SEATS) != 0:
        current = exchange(pool, layout.POOL_WORK, word, word - SEAT + ACTIVE - 1)
        if current == word:
            return word
        word = current
    return 0


@rtlib_function
def notify_caller(pool: Ptr) -> None:
    """Wake the caller of the region if it is sleeping."""
    mutex = move(pool, layout.POOL_DONE_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    call_code(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_DONE_CONDITION))
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@rtlib_function
def next_chunk(pool: Ptr, worker: int, code: int) -> int:
    """Claim the next chunk after a finished one, or leave the region.

    Return the number of unclaimed chunks before the claim, or 0 after leaving. A nonzero ``code``
    cancels all unclaimed chunks.
    """
    word = observe(pool, layout.POOL_WORK)
    while 1:
        left = word & UNCLAIMED
        updated = word - 1
        if code != 0 or left == 0:
            updated = word - left - ACTIVE
        current = exchange(pool, layout.POOL_WORK, word, updated)
        if current == word:
            if code == 0 and left != 0:
                return left
            if worker != 0 and (updated & UNFINISHED) == 0:
                notify_caller(pool)
            return 0
        word = current
    return 0


@rtlib_function
def run_chunks(pool: Ptr, worker: int, unclaimed: int) -> None:
    """Run the claimed chunk, then claim and run further chunks until none is left.

    ``unclaimed`` is the number of unclaimed chunks before the first claim.
    """
    body = load_ptr(pool, layout.POOL_BODY)
    environment = load_ptr(pool, layout.POOL_ENVIRONMENT)
    stop = load_i64(pool, layout.POOL_STOP)
    chunk = load_i64(pool, layout.POOL_CHUNK)
    chunks = load_i64(pool, layout.POOL_CHUNKS)
    left = unclaimed
    while left != 0:
        wake_worker(pool)
        begin = (chunks - left) * chunk
        code = widen(call_code(body, environment, begin, min(begin + chunk, stop), worker))
        if code != 0:
            exchange(pool, layout.POOL_CODE, 0, code)
        left = next_chunk(pool, worker, code)


@rtlib_function
def spin_for_work(pool: Ptr) -> int:
    """Spin until there is work or the pool closes; return 0 if the thread should sleep."""
    start = pool_time(pool)
    last = start
    while last - start < SPIN_IDLE:
        for _poll in range(POLLS):
            if work_open(observe(pool, layout.POOL_WORK)) == 1:
                return 1
            pause()
        if observe(pool, layout.POOL_CLOSING) != 0:
            return 1
        core = current_core(pool)
        if core >= 0 and core == observe(pool, layout.POOL_CORE):
            return 0
        time = pool_time(pool)
        if time - last > PREEMPTED:
            return 0
        last = time
    return 0


@rtlib_function
def sleep_until_woken(pool: Ptr) -> None:
    """Sleep until a wake-up, unless there is work or the pool closes."""
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    atomic_add(pool, layout.POOL_SLEEPERS, 1)
    if work_open(observe(pool, layout.POOL_WORK)) == 0 and observe(pool, layout.POOL_CLOSING) == 0:
        condition = move(pool, layout.POOL_SLEEP_CONDITION)
        call_code(load_ptr(pool, layout.POOL_WAIT), condition, mutex)
    atomic_add(pool, layout.POOL_SLEEPERS, -1)
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@rtlib_function
def pool_worker(pool: Ptr) -> Ptr:
    """Run the loop of a worker thread until the pool closes, with signals blocked."""
    block = load_i64(pool, layout.POOL_BLOCK)
    call_code(load_ptr(pool, layout.POOL_MASK), block, move(pool, layout.POOL_SIGNALS), 0)
    closing = observe(pool, layout.POOL_CLOSING)
    while closing == 0:
        word = join_region(pool)
        if word != 0:
            seats = (word & SEATS) // SEAT
            run_chunks(pool, load_i64(pool, layout.POOL_SEATS) - seats + 1, word & UNCLAIMED)
        elif spin_for_work(pool) == 0:
            sleep_until_woken(pool)
        closing = observe(pool, layout.POOL_CLOSING)
    atomic_add(pool, layout.POOL_EXITED, 1)
    return NULL


@rtlib_function
def grow_pool(pool: Ptr, count: int) -> None:
    """Start workers until there are ``count``; stop if the system cannot create a thread."""
    size = load_i64(pool, layout.POOL_SIZE)
    count = min(count, load_i64(pool, layout.POOL_MOST))
    while size < count:
        handle = move(pool, layout.POOL_HANDLES + 8 * size)
        create = load_ptr(pool, layout.POOL_CREATE)
        if widen(call_code(create, handle, 0, function(pool_worker), pool)) == 0:
            size += 1
            store_i64(pool, layout.POOL_SIZE, size)
        else:
            store_i64(pool, layout.POOL_MOST, size)
            count = size


@rtlib_function
def wait_for_chunks(pool: Ptr) -> None:
    """Wait until all claimed chunks are finished."""
    start = pool_time(pool)
    last = start
    while last - start < SPIN_JOIN:
        for _poll in range(POLLS):
            if (observe(pool, layout.POOL_WORK) & UNFINISHED) == 0:
                return
            pause()
        time = pool_time(pool)
        if time - last > PREEMPTED:
            time = start + SPIN_JOIN
        last = time
    mutex = move(pool, layout.POOL_DONE_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    word = observe(pool, layout.POOL_WORK)
    while (word & UNFINISHED) != 0:
        condition = move(pool, layout.POOL_DONE_CONDITION)
        call_code(load_ptr(pool, layout.POOL_WAIT), condition, mutex)
        word = observe(pool, layout.POOL_WORK)
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@rtlib_function
def acquire_pool(pool: Ptr) -> int:
    """Acquire the pool for a region; return 0 if it is in use or closing, else 1."""
    if observe(pool, layout.POOL_CLOSING) != 0 or observe(pool, layout.POOL_BUSY) != 0:
        return 0
    if exchange(pool, layout.POOL_BUSY, 0, 1) != 0:
        return 0
    if observe(pool, layout.POOL_CLOSING) != 0:  # since the first look
        publish(pool, layout.POOL_BUSY, 0)
        return 0
    return 1


@rtlib_function
def run_region(pool: Ptr, threads: int, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run a region on at most ``threads`` threads, including the caller."""
    most = min(threads, layout.POOL_WORKERS + 1)
    threads = min(most, stop)
    if threads < 2:
        return call_code(body, environment, 0, stop, 0)
    if acquire_pool(pool) == 0:
        return call_code(body, environment, 0, stop, 0)
    grow_pool(pool, threads - 1)
    chunk = max(stop // (CHUNKS * threads), 1)
    chunks = (stop + chunk - 1) // chunk
    store_ptr(pool, layout.POOL_BODY, body)
    store_ptr(pool, layout.POOL_ENVIRONMENT, environment)
    store_i64(pool, layout.POOL_STOP, stop)
    store_i64(pool, layout.POOL_CHUNK, chunk)
    store_i64(pool, layout.POOL_CHUNKS, chunks)
    store_i64(pool, layout.POOL_CODE, 0)
    publish(pool, layout.POOL_CORE, current_core(pool))
    store_i64(pool, layout.POOL_SEATS, threads - 1)
    word = observe(pool, layout.POOL_WORK)
    generation = (word // GENERATION + 1) & GENERATIONS
    opened = generation * GENERATION + (threads - 1) * SEAT + ACTIVE + chunks - 1
    exchange(pool, layout.POOL_WORK, word, opened)
    run_chunks(pool, 0, chunks)
    wait_for_chunks(pool)
    code = load_i64(pool, layout.POOL_CODE)
    publish(pool, layout.POOL_BUSY, 0)
    return Code(code)


@rtlib_function
def run_pool(context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run a region on the pool of the process; function ``PARALLEL`` of the runtime table."""
    threads = load_i64(load_ptr(context, 0), runtime_table.THREADS)
    pool = load_ptr(system(context), layout.SYSTEM_POOL)
    return run_region(pool, threads, body, stop, environment)


@rtlib_function
def pool_parallel(pool: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run a region; function ``PARALLEL`` of a runtime whose context is the pool itself."""
    return run_region(pool, load_i64(pool, layout.POOL_LIMIT), body, stop, environment)


@rtlib_function
def close_pool(pool: Ptr) -> None:
    """Make every worker exit after its current chunk; later regions run serially.

    A region that runs may still start workers; it ends with ``POOL_BUSY`` 0.
    """
    exchange(pool, layout.POOL_CLOSING, 0, 1)
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    call_nothing(load_ptr(pool, layout.POOL_LOCK), mutex)
    for _worker in range(load_i64(pool, layout.POOL_SIZE)):
        call_nothing(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_SLEEP_CONDITION))
    call_nothing(load_ptr(pool, layout.POOL_UNLOCK), mutex)
