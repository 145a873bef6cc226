"""Where the run-time support finds each word of the structures it shares with its caller.

All offsets are in bytes, all words are 8 bytes wide.
"""

from __future__ import annotations

from typing import Final

from ..thread import table

# ---------------------------------------------------------------- the record of one call

CALL_TABLE: Final = 0
"""The process's runtime table."""
CALL_SITE: Final = 8
"""Which check failed; 0 means none."""
CALL_NUMBERS: Final = 16
"""Four numbers that were observed there."""
CALL_CODE: Final = 48
"""What a kernel reported through the table's ``error``, with its text and two numbers."""
CALL_TEXT: Final = 56
CALL_A: Final = 64
CALL_B: Final = 72
CALL_SINK: Final = 80
"""Where times are collected, or null: three words a launch (count, nanoseconds, start)."""
CALL_OWN_TABLE: Final = 88
"""A copy of the table whose context is this record, for the kernels of this call."""
CALL_OPERANDS: Final = CALL_OWN_TABLE + table.SIZE
"""Two words an argument (form, payload), then one word a result (its managed tensor)."""

FORM_NUMPY: Final = 0
"""The payload is a NumPy array interface structure."""
FORM_DLPACK: Final = 1
"""The payload is a DLPack tensor."""
FORM_INTEGER: Final = 2
"""The payload is the integer itself."""
FORM_BFLOAT: Final = 3
"""A NumPy array interface structure of an array of bfloat16, which NumPy cannot say."""

# ---------------------------------------------------------------- an argument once understood

VIEW_DATA: Final = 0
VIEW_RANK: Final = 8
VIEW_SHAPE: Final = 16
VIEW_STRIDES: Final = 24
VIEW_STRIDE_UNIT: Final = 32
VIEW_DTYPE: Final = 40
VIEW_WRITABLE: Final = 48
VIEW_DEVICE: Final = 56
VIEW_BYTES: Final = 64

PROBLEM_DTYPE: Final = 1
PROBLEM_RANK: Final = 2
PROBLEM_DEVICE: Final = 3
PROBLEM_STRIDES: Final = 4
PROBLEM_ALIGNMENT: Final = 5
PROBLEM_READ_ONLY: Final = 6

HOST: Final = 1
"""DLPack's number of the processor's memory."""
CUDA: Final = 2
"""DLPack's number of the memory of an NVIDIA GPU."""

# ---------------------------------------------------------------- one function of an executable

INSTANCE_CONSTANTS: Final = 0
"""Addresses of the constants' data."""
INSTANCE_LIBRARIES: Final = 8
"""Addresses of the library functions."""
INSTANCE_KERNELS: Final = 16
"""Handles of the kernels that run on a device."""
INSTANCE_SLOTS: Final = 24
"""The workspaces begin here."""

SLOT_COUNT: Final = 16
"""Workspaces kept; a caller beyond that gets one for the time of its call."""
SLOT_BUSY: Final = 0
SLOT_ARENA: Final = 8
SLOT_ARENA_BYTES: Final = 16
SLOT_CLOCK: Final = 24
SLOT_PLANS: Final = 32

PLAN_COUNT: Final = 8
"""Shapes whose plan a workspace remembers."""
PLAN_USED: Final = 0
"""When the plan was last used; 0 means that there is none."""
PLAN_TOTAL: Final = 8
"""Bytes of the arena."""
PLAN_KEYS: Final = 16
"""The symbols' values, then the offsets."""

# ---------------------------------------------------------------- what the providers stand on

SYSTEM_ALLOCATE: Final = 0
"""``aligned_alloc`` of the C library."""
SYSTEM_FREE: Final = 8
SYSTEM_CLOCK: Final = 16
"""``clock_gettime``."""
SYSTEM_THREAD: Final = 24
"""``pthread_self``."""
SYSTEM_REGION: Final = 32
"""``GOMP_parallel`` of an OpenMP runtime, or null."""
SYSTEM_RANK: Final = 40
"""``omp_get_thread_num``."""
SYSTEM_TEAM: Final = 48
"""``omp_get_num_threads``."""
SYSTEM_BUSY: Final = 56
"""1 while a parallel region runs."""
SYSTEM_OWNER: Final = 64
"""The thread that opened the last region."""
SYSTEM_LAST: Final = 72
"""When it was closed, in nanoseconds."""
SYSTEM_POOL: Final = 80
"""Address of the pool of workers, or null."""
SYSTEM_SIZE: Final = 88

# ---------------------------------------------------------------- a pool of workers
# What several threads write at the same time lies in cache lines of its own.

POOL_WORK: Final = 0
"""One word that every claim of work changes at once; see :mod:`.support.pool`."""
POOL_BUSY: Final = 64
"""1 while a parallel region runs."""
POOL_BODY: Final = 128
"""The region: what is called, its environment, where it stops, iterations a chunk, chunks."""
POOL_ENVIRONMENT: Final = 136
POOL_STOP: Final = 144
POOL_CHUNK: Final = 152
POOL_CHUNKS: Final = 160
POOL_CODE: Final = 168
"""The first code of the region that is not 0."""
POOL_SEATS: Final = 176
"""Workers that may join the region."""
POOL_CORE: Final = 184
"""Where the region's caller runs, or -1."""
POOL_SLEEPERS: Final = 192
"""Workers that sleep, or are about to."""
POOL_CLOSING: Final = 200
"""1 once every worker is to end."""
POOL_GONE: Final = 208
"""Workers that have ended."""
POOL_SIZE: Final = 216
"""Workers that were started."""
POOL_MOST: Final = 224
"""Workers that may be started."""
POOL_LIMIT: Final = 232
"""Threads of a region where no table says how many."""
POOL_CREATE: Final = 256
"""Functions of the system: ``pthread_create``, of mutexes, conditions, signals and time."""
POOL_LOCK: Final = 264
POOL_TRY_LOCK: Final = 272
POOL_UNLOCK: Final = 280
POOL_WAIT: Final = 288
POOL_SIGNAL: Final = 296
POOL_MASK: Final = 304
"""``pthread_sigmask``, and its number for blocking."""
POOL_BLOCK: Final = 312
POOL_TIME: Final = 320
"""``clock_gettime``, and its number of a clock that only goes forward."""
POOL_CLOCK: Final = 328
POOL_HERE: Final = 336
"""``sched_getcpu``, or null."""
POOL_SLEEP_MUTEX: Final = 384
"""The mutex and the condition that idle workers sleep on."""
POOL_SLEEP_CONDITION: Final = 512
POOL_DONE_MUTEX: Final = 640
"""The mutex and the condition that a caller sleeps on until the last chunk is done."""
POOL_DONE_CONDITION: Final = 768
POOL_SIGNALS: Final = 896
"""The set of signals that workers leave to the threads of the program."""
POOL_HANDLES: Final = 1024
"""What ``pthread_join`` takes, of each worker."""
POOL_WORKERS: Final = 255
"""The most workers there can be."""
POOL_BYTES: Final = POOL_HANDLES + 8 * POOL_WORKERS

# ---------------------------------------------------------------- a kernel started on a device

RECORD_HANDLE: Final = 0
RECORD_GRID: Final = 8
"""Blocks along x, y and z."""
RECORD_BLOCK: Final = 32
"""Threads of a block along x, y and z."""
RECORD_SHARED: Final = 56
"""Bytes of shared memory beyond those that the kernel declares."""
RECORD_SIZE: Final = 64

# ---------------------------------------------------------------- a device with its own memory

DEVICE_TYPE: Final = 0
"""DLPack's number of the kind of device."""
DEVICE_ORDINAL: Final = 8
"""Which of its kind."""
DEVICE_HOST_ALLOC: Final = 16
"""``alloc`` and ``free`` as in the table, of memory that the host may touch."""
DEVICE_HOST_FREE: Final = 24
DEVICE_COPY: Final = 32
"""``i32(context, ptr target, ptr source, i64 bytes)`` between any two memories."""
DEVICE_DRIVER_LAUNCH: Final = 40
"""``cuLaunchKernel`` of the driver."""
DEVICE_DRIVER_COPY: Final = 48
"""``cuMemcpy``."""
DEVICE_DRIVER_ENTER: Final = 56
"""``cuCtxSetCurrent``."""
DEVICE_DRIVER_WAIT: Final = 64
"""``cuStreamSynchronize``."""
DEVICE_CONTEXT: Final = 72
"""What is entered."""
DEVICE_STREAM: Final = 80
"""Where kernels are queued; null is the legacy default stream."""
DEVICE_SIZE: Final = 88

ALIGNMENT: Final = 64
"""Of arenas and results, in bytes."""
