"""Our own pool of worker threads: what stands behind ``parallel`` unless somebody else does.

Why not OpenMP: a team ends with a barrier, so on a machine with other work to do a region waits
for workers that the system has not scheduled and that have nothing left to do: 10 to 50 times the
time of one thread was measured. Small machines have no OpenMP runtime at all. Why here: threads
come from ``pthread_create`` through its address, and all else is integers and atomics, so the pool
is compiled by the generator that compiles kernels, runs without the interpreter's lock, needs no C
compiler, and is what exported libraries carry too. (``tilewright.h`` says the same in C.)

A region is cut into chunks. One word holds all that threads agree on::

    generation (31 bits) | free seats (8) | at work (8) | unclaimed chunks (16)

A worker joins by taking a seat and a chunk in one exchange of that word; having done a chunk, it
takes the next one, or leaves, in one exchange again. Whoever is counted "at work" holds a chunk,
so the caller, which takes chunks like everybody, waits for chunks in flight and never for a worker
that did not start: that one finds nothing unclaimed, whenever it comes. The seat gives the worker
its number, so numbers stay below the number of threads, whoever joins. The fields of a region are
written when nobody is at work, and read by who is. A failing chunk takes away all that is
unclaimed.

One region runs at a time. A second caller, or a region inside of a region, does its work alone:
there are never more threads at work than callers and workers.

An idle worker looks at the word for ``PATIENCE``, then sleeps on a condition: it costs nothing. It
sleeps at once where it notices that the system had given its core to somebody else, or that it is
the caller's. Waking is a hint: it never waits for a lock, it is repeated before every chunk while
there is one for somebody else, and a woken worker passes it on.
"""

from __future__ import annotations

from ...thread import table
from .. import layout
from ..language import (
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
    stack,
    store_i64,
    store_ptr,
    support,
    widen,
)
from .providers import system

CHUNKS = 4
"""Chunks a thread, so that one that is slowed down does not hold the others up."""
PATIENCE = 100_000
"""Nanoseconds a thread looks out for a change before it sleeps: about what waking it costs."""
GRACE = 20_000
"""Nanoseconds a caller looks out for the end of others' chunks before it sleeps: who does them may
wait for the caller's own core."""
INTERRUPTED = 20_000
"""Nanoseconds between two looks after which the core must have been somebody else's."""
LOOKS = 24
"""Pauses from one look at the clock to the next."""
UNCLAIMED = 0xFFFF
AT_WORK = 1 << 16
WORKING = 0xFFFFFF
"""The bits of the unclaimed chunks and of those at work: none is set when a region is done."""
SEAT = 1 << 24
SEATS = 0xFF << 24
GENERATION = 1 << 32
GENERATIONS = 0x7FFFFFFF


@support
def pool_time(pool: Ptr) -> int:
    """Nanoseconds of a clock that only goes forward."""
    time = stack(16)
    call_code(load_ptr(pool, layout.POOL_TIME), load_i64(pool, layout.POOL_CLOCK), time)
    return load_i64(time, 0) * 1_000_000_000 + load_i64(time, 8)


@support
def core_here(pool: Ptr) -> int:
    """The core that the calling thread runs on, or -1 where the system does not say."""
    here = load_ptr(pool, layout.POOL_HERE)
    if here == NULL:
        return -1
    return widen(call_code(here))


@support
def count_up(pool: Ptr, offset: int, change: int) -> None:
    """Add to a number that several threads change."""
    old = observe(pool, offset)
    held = exchange(pool, offset, old, old + change)
    while held != old:
        old = held
        held = exchange(pool, offset, old, old + change)


@support
def work_open(word: int) -> int:
    """Whether a worker may join: a chunk is unclaimed, and a seat free."""
    if (word & UNCLAIMED) != 0 and (word & SEATS) != 0:
        return 1
    return 0


@support
def wake_worker(pool: Ptr) -> None:
    """Wake a worker where one sleeps and there is work for it; never wait for a lock."""
    wanted = work_open(observe(pool, layout.POOL_WORK))
    if wanted == 0 or observe(pool, layout.POOL_SLEEPERS) == 0:
        return
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    if widen(call_code(load_ptr(pool, layout.POOL_TRY_LOCK), mutex)) == 0:
        call_code(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_SLEEP_CONDITION))
        call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@support
def join_region(pool: Ptr) -> int:
    """Take a seat and a chunk: the word as it was before, or 0 where there is none to take."""
    word = observe(pool, layout.POOL_WORK)
    while (word & UNCLAIMED) != 0 and (word & SEATS) != 0:
        held = exchange(pool, layout.POOL_WORK, word, word - SEAT + AT_WORK - 1)
        if held == word:
            return word
        word = held
    return 0


@support
def tell_done(pool: Ptr) -> None:
    """Wake the caller of the region if it sleeps."""
    mutex = move(pool, layout.POOL_DONE_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    call_code(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_DONE_CONDITION))
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@support
def next_chunk(pool: Ptr, worker: int, code: int) -> int:
    """Having done a chunk, take another, or leave: how many were unclaimed, or 0."""
    word = observe(pool, layout.POOL_WORK)
    while 1:
        left = word & UNCLAIMED
        wanted = word - 1
        if code != 0 or left == 0:
            wanted = word - left - AT_WORK
        held = exchange(pool, layout.POOL_WORK, word, wanted)
        if held == word:
            if code == 0 and left != 0:
                return left
            if worker != 0 and (wanted & WORKING) == 0:
                tell_done(pool)
            return 0
        word = held
    return 0


@support
def do_chunks(pool: Ptr, worker: int, unclaimed: int) -> None:
    """Do the chunk that was taken when so many were unclaimed, then others until none is left."""
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


@support
def look_out(pool: Ptr) -> int:
    """Wait for work, or for the end, without sleeping: 1 where it came, 0 where it took long."""
    start = pool_time(pool)
    last = start
    while last - start < PATIENCE:
        for _look in range(LOOKS):
            if work_open(observe(pool, layout.POOL_WORK)) == 1:
                return 1
            pause()
        if observe(pool, layout.POOL_CLOSING) != 0:
            return 1
        core = core_here(pool)
        if core >= 0 and core == observe(pool, layout.POOL_CORE):
            return 0
        time = pool_time(pool)
        if time - last > INTERRUPTED:
            return 0
        last = time
    return 0


@support
def sleep_idle(pool: Ptr) -> None:
    """Sleep until somebody says that there is work, or that the pool closes.

    Who comes too late for the work looks out for more of it: it seldom comes alone.
    """
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    count_up(pool, layout.POOL_SLEEPERS, 1)
    if work_open(observe(pool, layout.POOL_WORK)) == 0 and observe(pool, layout.POOL_CLOSING) == 0:
        condition = move(pool, layout.POOL_SLEEP_CONDITION)
        call_code(load_ptr(pool, layout.POOL_WAIT), condition, mutex)
    count_up(pool, layout.POOL_SLEEPERS, -1)
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@support
def pool_worker(pool: Ptr) -> Ptr:
    """Be a worker until the pool closes; signals are left to the threads of the program."""
    how = load_i64(pool, layout.POOL_BLOCK)
    call_code(load_ptr(pool, layout.POOL_MASK), how, move(pool, layout.POOL_SIGNALS), 0)
    closing = observe(pool, layout.POOL_CLOSING)
    while closing == 0:
        word = join_region(pool)
        if word != 0:
            seats = (word & SEATS) // SEAT
            do_chunks(pool, load_i64(pool, layout.POOL_SEATS) - seats + 1, word & UNCLAIMED)
        elif look_out(pool) == 0:
            sleep_idle(pool)
        closing = observe(pool, layout.POOL_CLOSING)
    count_up(pool, layout.POOL_GONE, 1)
    return NULL


@support
def grow_pool(pool: Ptr, wanted: int) -> None:
    """Start workers; where the system gives no more, there are as many as there are."""
    size = load_i64(pool, layout.POOL_SIZE)
    wanted = min(wanted, load_i64(pool, layout.POOL_MOST))
    while size < wanted:
        handle = move(pool, layout.POOL_HANDLES + 8 * size)
        create = load_ptr(pool, layout.POOL_CREATE)
        if widen(call_code(create, handle, 0, function(pool_worker), pool)) == 0:
            size += 1
            store_i64(pool, layout.POOL_SIZE, size)
        else:
            store_i64(pool, layout.POOL_MOST, size)
            wanted = size


@support
def await_others(pool: Ptr) -> None:
    """Wait until every chunk that somebody took is done."""
    start = pool_time(pool)
    last = start
    while last - start < GRACE:
        for _look in range(LOOKS):
            if (observe(pool, layout.POOL_WORK) & WORKING) == 0:
                return
            pause()
        time = pool_time(pool)
        if time - last > INTERRUPTED:
            time = start + GRACE
        last = time
    mutex = move(pool, layout.POOL_DONE_MUTEX)
    call_code(load_ptr(pool, layout.POOL_LOCK), mutex)
    word = observe(pool, layout.POOL_WORK)
    while (word & WORKING) != 0:
        condition = move(pool, layout.POOL_DONE_CONDITION)
        call_code(load_ptr(pool, layout.POOL_WAIT), condition, mutex)
        word = observe(pool, layout.POOL_WORK)
    call_code(load_ptr(pool, layout.POOL_UNLOCK), mutex)


@support
def take_pool(pool: Ptr) -> int:
    """Begin a region: 1, or 0 where one runs, or the pool closes."""
    if observe(pool, layout.POOL_CLOSING) != 0 or observe(pool, layout.POOL_BUSY) != 0:
        return 0
    if exchange(pool, layout.POOL_BUSY, 0, 1) != 0:
        return 0
    return 1


@support
def share_out(pool: Ptr, threads: int, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Run a region on at most ``threads`` threads, of which the caller is one."""
    most = min(threads, layout.POOL_WORKERS + 1)
    threads = min(most, stop)
    if threads < 2:
        return call_code(body, environment, 0, stop, 0)
    if take_pool(pool) == 0:
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
    publish(pool, layout.POOL_CORE, core_here(pool))
    store_i64(pool, layout.POOL_SEATS, threads - 1)
    word = observe(pool, layout.POOL_WORK)
    generation = (word // GENERATION + 1) & GENERATIONS
    opened = generation * GENERATION + (threads - 1) * SEAT + AT_WORK + chunks - 1
    exchange(pool, layout.POOL_WORK, word, opened)
    do_chunks(pool, 0, chunks)
    await_others(pool)
    code = load_i64(pool, layout.POOL_CODE)
    publish(pool, layout.POOL_BUSY, 0)
    return Code(code)


@support
def run_pool(context: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Share iterations out among the workers of the process; ``parallel`` of the table."""
    threads = load_i64(load_ptr(context, 0), table.THREADS)
    pool = load_ptr(system(context), layout.SYSTEM_POOL)
    return share_out(pool, threads, body, stop, environment)


@support
def pool_parallel(pool: Ptr, body: Ptr, stop: int, environment: Ptr) -> Code:
    """Share iterations out; ``parallel`` of a runtime whose context is the pool itself."""
    return share_out(pool, load_i64(pool, layout.POOL_LIMIT), body, stop, environment)


@support
def close_pool(pool: Ptr) -> None:
    """Tell every worker to end after the chunk that it does; later regions run serially."""
    publish(pool, layout.POOL_CLOSING, 1)
    mutex = move(pool, layout.POOL_SLEEP_MUTEX)
    call_nothing(load_ptr(pool, layout.POOL_LOCK), mutex)
    for _worker in range(load_i64(pool, layout.POOL_SIZE)):
        call_nothing(load_ptr(pool, layout.POOL_SIGNAL), move(pool, layout.POOL_SLEEP_CONDITION))
    call_nothing(load_ptr(pool, layout.POOL_UNLOCK), mutex)
