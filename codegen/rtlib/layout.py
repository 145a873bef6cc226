"""Layouts of the structures that the run-time library shares with its callers.

All offsets are in bytes; all words have 8 bytes.
"""

from __future__ import annotations

from typing import Final

from ...ir.thread import runtime_table

# The call record.

CALL_TABLE: Final = 0
"""The runtime table of the process."""
CALL_SITE: Final = 8
"""The number of the failed check; 0 if no check failed."""
CALL_NUMBERS: Final = 16
"""Four values observed by the failed check."""
CALL_CODE: Final = 48
"""The code, text, and two numbers reported with function ``ERROR`` of the runtime table."""
CALL_TEXT: Final = 56
CALL_A: Final = 64
CALL_B: Final = 72
CALL_SINK: Final = 80
"""The address of the profile, or null: per launch, count, nanoseconds, and start time."""
CALL_STOP: Final = 88
"""Not 0 if the call must end early; every iteration of a loop of the graph reads it."""
CALL_MODE: Final = 96
"""The sum of the flags :data:`EXACT`, :data:`QUERY`, and :data:`GIVEN`."""
CALL_WORKSPACE: Final = 104
"""The address and the size of the workspace of the caller."""
CALL_WORKSPACE_BYTES: Final = 112
CALL_RESERVED: Final = 120
"""The bytes at the start of the workspace that precede the arena."""
CALL_NEEDED: Final = 128
"""Output: the bytes that the workspace of the caller must have."""
CALL_OWN_TABLE: Final = 136
"""A copy of the runtime table for this call; its context is this record."""
CALL_OPERANDS: Final = CALL_OWN_TABLE + runtime_table.SIZE
"""Two words per argument (form, payload), then one word per result (its managed tensor)."""

EXACT: Final = 1
"""The arena is in the workspace of the caller, by a plan without room for growth."""
QUERY: Final = 2
"""The call ends before kernels run, with the needed bytes and the shapes of the results."""
GIVEN: Final = 4
"""The words of results are the addresses of blocks of the caller, or null."""

LIMITED: Final = 1
"""The value of ``CALL_A`` if the limit of the workspaces is exceeded."""
SHORT: Final = 2
"""The value of ``CALL_A`` if the workspace of the caller is too small."""

MEMORY_LIMIT: Final = 0
"""The limit of the workspaces in bytes; 0 means no limit."""
MEMORY_USED: Final = 8
"""The bytes of the workspaces in use or kept for later calls."""

FORM_NUMPY: Final = 0
"""The payload is the address of a NumPy array interface structure."""
FORM_DLPACK: Final = 1
"""The payload is the address of a DLPack tensor."""
FORM_INTEGER: Final = 2
"""The payload is an integer."""
FORM_EXTENSION: Final = 3
"""The payload is the address of a NumPy array interface structure of an array of ``ml_dtypes``.

The interface has no codes for these dtypes: the dtype code is in the form, as a multiple of
``FORM_DTYPE``.
"""
FORM_DTYPE: Final = 1 << 16

# The view of an argument.

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
PROBLEM_DATA: Final = 7

HOST: Final = 1
"""The DLPack device type of host memory."""
CUDA: Final = 2
"""The DLPack device type of CUDA memory."""
WEBGPU: Final = 15
"""The DLPack device type of buffers of WebGPU, whose addresses are numbers of the runtime."""
DEVICE_TYPES: Final = {"cuda": CUDA, "webgpu": WEBGPU}
"""The device types of targets with separate memory."""

# The instance record: one function of an executable.

INSTANCE_CONSTANTS: Final = 0
"""The addresses of the data of the constants."""
INSTANCE_LIBRARIES: Final = 8
"""The addresses of the library functions."""
INSTANCE_KERNELS: Final = 16
"""The handles of the device kernels."""
INSTANCE_SLOTS: Final = 24
"""The start of the workspaces."""

SLOT_COUNT: Final = 16
"""The number of workspaces; further concurrent calls allocate temporary ones."""
SLOT_BUSY: Final = 0
SLOT_ARENA: Final = 8
SLOT_ARENA_BYTES: Final = 16
SLOT_CLOCK: Final = 24
SLOT_PLANNED: Final = 32
"""The number of plans that were computed."""
SLOT_REUSED: Final = 40
"""The number of shapes for which the plan of other sizes was reused."""
SLOT_NEEDED: Final = 48
"""The number of bytes that planning needed and did not get."""
SLOT_STALE: Final = 56
"""1 if the arena was freed, so that it may be too small for the plans of the recent shapes."""
SLOT_MODE: Final = 64
"""The flags of the calls whose plans the workspace remembers: 0, or :data:`EXACT`."""
SLOT_SHAPES: Final = 72
"""The recent shapes, then the plans, the sizes of the storages, and temporary memory."""

SHAPE_COUNT: Final = 8
"""The number of shapes whose plan a workspace remembers."""
SHAPE_USED: Final = 0
"""The logical time of the last use; 0 means that there is no shape."""
SHAPE_PLAN: Final = 8
"""The address of the plan."""
SHAPE_KEYS: Final = 16
"""The values of the symbols."""

PLAN_COUNT: Final = 8
"""The number of memory plans that a workspace caches."""
PLAN_USED: Final = 0
"""The logical time of the last use; 0 means that there is no plan."""
PLAN_TOTAL: Final = 8
"""The size of the arena in bytes."""
PLAN_PEAK: Final = 16
"""The maximum of live bytes for storages as large as the capacities."""
PLAN_OFFSETS: Final = 24
"""The offsets of the storages, then their capacities."""

# The table of the storages of a function, which is constant.

TABLE_KEYS: Final = 0
"""The number of symbols."""
TABLE_STORAGES: Final = 8
"""The number of storages."""
TABLE_SHAPE_BYTES: Final = 16
TABLE_PLAN_BYTES: Final = 24
TABLE_PLANS: Final = 32
"""The offsets of the plans, the sizes, and the temporary memory in a workspace."""
TABLE_SIZES: Final = 40
TABLE_SCRATCH: Final = 48
TABLE_SWEEP_BYTES: Final = 56
"""The size of the temporary memory for more than ``SMALL_COUNT`` storages."""
TABLE_RANGES: Final = 64
"""The live ranges, then the storages in the order of their first steps, and of their last steps."""

SMALL_COUNT: Final = 1024
"""The number of storages up to which :func:`.planner.pack` places them."""

SWEEP_CLASSES: Final = 448
"""The number of lists of free blocks, one per class of sizes."""
SWEEP_UNUSED: Final = 8 * SWEEP_CLASSES
"""The list of unused block records, and the last block of the arena."""
SWEEP_TAIL: Final = SWEEP_UNUSED + 8
SWEEP_HEADS: Final = SWEEP_UNUSED + 16
"""The size of the heads of the lists."""
SWEEP_NODE: Final = 56
"""The size of the record of a block: offset, size, neighbors, list, and whether it is free."""

# The answer of a query for the plan of a call.

QUERY_PLANNED: Final = 0
"""The number of plans computed by all workspaces."""
QUERY_REUSED: Final = 8
QUERY_KIND: Final = 16
"""The kind of the plan that a call uses: exact, of larger sizes, or with room for growth."""
QUERY_TOTAL: Final = 24
"""The size of its arena in bytes."""
QUERY_SIZE: Final = 32

KIND_EXACT: Final = 0
KIND_DOMINATING: Final = 1
KIND_GROWING: Final = 2

# The system record of the providers.

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
"""The thread that may open OpenMP regions."""
SYSTEM_LAST: Final = 72
"""The end of the last OpenMP region in nanoseconds."""
SYSTEM_POOL: Final = 80
"""The address of the thread pool, or null."""
SYSTEM_ADVISE: Final = 88
"""``madvise`` of Linux, or null."""
SYSTEM_SIZE: Final = 96

# The thread pool. Words written concurrently by several threads are in separate cache lines.

POOL_WORK: Final = 0
"""The state of the region in one word, updated atomically; see :mod:`.pool`."""
POOL_BUSY: Final = 64
"""1 while a parallel region runs."""
POOL_BODY: Final = 128
"""The region: body, environment, number of iterations, iterations per chunk, and chunks."""
POOL_ENVIRONMENT: Final = 136
POOL_STOP: Final = 144
POOL_CHUNK: Final = 152
POOL_CHUNKS: Final = 160
POOL_CODE: Final = 168
"""The first nonzero error code of the region."""
POOL_SEATS: Final = 176
"""The number of workers that may join the region."""
POOL_CORE: Final = 184
"""The core of the region's caller, or -1 if unknown."""
POOL_SLEEPERS: Final = 192
"""The number of workers that sleep or are about to sleep."""
POOL_CLOSING: Final = 200
"""1 if the workers must exit."""
POOL_EXITED: Final = 208
"""The number of workers that have exited."""
POOL_SIZE: Final = 216
"""The number of started workers."""
POOL_MOST: Final = 224
"""The maximal number of workers."""
POOL_LIMIT: Final = 232
"""The maximal number of threads per region for :func:`.pool.pool_parallel`."""
POOL_CREATE: Final = 256
"""System functions: ``pthread_create``, and functions for mutexes, conditions, and time."""
POOL_LOCK: Final = 264
POOL_TRY_LOCK: Final = 272
POOL_UNLOCK: Final = 280
POOL_WAIT: Final = 288
POOL_SIGNAL: Final = 296
POOL_MASK: Final = 304
"""``pthread_sigmask`` and its constant ``SIG_BLOCK``."""
POOL_BLOCK: Final = 312
POOL_TIME: Final = 320
"""``clock_gettime`` and its constant ``CLOCK_MONOTONIC``."""
POOL_CLOCK: Final = 328
POOL_GET_CPU: Final = 336
"""``sched_getcpu``, or null."""
POOL_SLEEP_MUTEX: Final = 384
"""The mutex and the condition variable on which idle workers sleep."""
POOL_SLEEP_CONDITION: Final = 512
POOL_DONE_MUTEX: Final = 640
"""The mutex and the condition variable on which a caller waits for the last chunk."""
POOL_DONE_CONDITION: Final = 768
POOL_SIGNALS: Final = 896
"""The set of signals that workers block, so that threads of the program handle them."""
POOL_HANDLES: Final = 1024
"""The thread handle of each worker for ``pthread_join``."""
POOL_WORKERS: Final = 255
"""The capacity of the pool in workers."""
POOL_BYTES: Final = POOL_HANDLES + 8 * POOL_WORKERS

# The launch record of a device kernel.

RECORD_HANDLE: Final = 0
RECORD_GRID: Final = 8
"""The grid size in thread blocks along x, y, and z."""
RECORD_BLOCK: Final = 32
"""The block size in threads along x, y, and z."""
RECORD_SHARED: Final = 56
"""The size of the dynamic shared memory in bytes."""
RECORD_STREAM: Final = 64
"""The number of the stream."""
RECORD_CLUSTER: Final = 72
"""The cluster size in thread blocks along x, y, and z; 0 means no clusters."""
RECORD_ATTRIBUTES: Final = 96
"""The address of further launch attributes of the device, or null."""
RECORD_SIZE: Final = 104

# The device record: a device with separate memory.

DEVICE_TYPE: Final = 0
"""The DLPack device type."""
DEVICE_ORDINAL: Final = 8
"""The ordinal among the devices of its type."""
DEVICE_HOST_ALLOC: Final = 16
"""Functions like ``ALLOC`` and ``FREE`` of the runtime table, for host-accessible memory."""
DEVICE_HOST_FREE: Final = 24
DEVICE_DRIVER_COPY_ASYNC: Final = 32
"""``cuMemcpyAsync``."""
DEVICE_DRIVER_LAUNCH: Final = 40
"""``cuLaunchKernel`` of the CUDA driver."""
DEVICE_DRIVER_COPY: Final = 48
"""``cuMemcpy``."""
DEVICE_DRIVER_ENTER: Final = 56
"""``cuCtxSetCurrent``."""
DEVICE_DRIVER_WAIT: Final = 64
"""``cuStreamSynchronize``."""
DEVICE_CONTEXT: Final = 72
"""The CUDA context of the device."""
DEVICE_STREAMS: Final = 80
"""The address of the streams: the handle of each, and the event that others wait for.

A null handle is the legacy default stream.
"""
DEVICE_STREAM_COUNT: Final = 88
DEVICE_DRIVER_RECORD: Final = 96
"""``cuEventRecord``."""
DEVICE_DRIVER_AWAIT: Final = 104
"""``cuStreamWaitEvent``."""
DEVICE_SIZE: Final = 112
STREAM_BYTES: Final = 16
STREAM_EVENT: Final = 8
DEVICE_TYPE_UNIT: Final = 1 << 32
"""The factor of the device type in the number of a device."""

ALIGNMENT: Final = 64
"""The alignment of arenas and results in bytes."""
