"""Four kernels for GPUs, each a naive program and the steps that make it one. All sizes symbolic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.script import parse
from tilewright.schedules import Schedule

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.schedules.refs import BlockRef

ELEMENTWISE = """
m, n = symbols("m n", lower=1)

@prim_func
def fused(x: Buffer[(m, n), f32], b: Buffer[(n,), f32], y: Out[(m, n), f32]):
    t = alloc((m, n), f32)
    for i in range(m):
        for j in range(n):
            with block("biased"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] + b[vj]
    for i1 in range(m):
        for j1 in range(n):
            with block("silu"):
                wi, wj = spatial(i1), spatial(j1)
                y[wi, wj] = t[wi, wj] * sigmoid(t[wi, wj])
"""

MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[(K, N), f32], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

SOFTMAX = """
rows, columns = symbols("rows columns", lower=1)

@prim_func
def softmax(x: Buffer[(rows, columns), f32], y: Out[(rows, columns), f32]):
    top = alloc((rows,), f32)
    total = alloc((rows,), f32)
    for i in range(rows):
        for k in range(columns):
            with block("top"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi] = -inf
                top[vi] = max(top[vi], x[vi, vk])
    for i1 in range(rows):
        for k1 in range(columns):
            with block("total"):
                wi, wk = spatial(i1), reduce(k1)
                with init(): total[wi] = 0
                total[wi] += exp(x[wi, wk] - top[wi])
    for i2 in range(rows):
        for j in range(columns):
            with block("divided"):
                ui, uj = spatial(i2), spatial(j)
                y[ui, uj] = exp(x[ui, uj] - top[ui]) / total[ui]
"""


def elementwise() -> Schedule:
    """Fuse two element-wise blocks; every thread computes four neighbours."""
    sch = Schedule(parse(ELEMENTWISE))
    sch.compute_inline(sch.get_block("biased"))
    i, j = sch.get_loops(sch.get_block("silu"))
    blocks, threads, lanes = sch.split(sch.fuse((i, j)), factors=(None, 256, 4))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    sch.vectorize(lanes)
    return sch


def softmax(threads: int = 256) -> Schedule:
    """One block a row: its threads share the maximum, the sum and the row."""
    sch = Schedule(parse(SOFTMAX))
    divided = sch.get_block("divided")
    row, _ = sch.get_loops(divided)
    for name in ("total", "top"):
        block = sch.get_block(name)
        buffer = sch.get_buffer(name)
        sch.compute_at(block, row)
        sch.set_scope(buffer, "local")
    for name in ("top", "total", "divided"):
        _, column = sch.get_loops(sch.get_block(name))
        _, lane = sch.split(column, factors=(None, threads))
        sch.bind(lane, "threadIdx.x")
    sch.bind(row, "blockIdx.x")
    return sch


def matmul() -> Schedule:
    """Blocks of 64x64 of C; tiles of A and B in shared memory; 4x4 of C in a thread's registers."""
    sch = Schedule(parse(MATMUL))
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    block_i, own_i, thread_i = sch.split(i, factors=(None, 4, 16))
    block_j, own_j, thread_j = sch.split(j, factors=(None, 4, 16))
    tile_k, k = sch.split(k, factors=(None, 16))
    sch.reorder((block_i, block_j, tile_k, thread_i, thread_j, k, own_i, own_j))
    out = sch.cache_write(mm, sch.get_buffer("C"), "local")
    sch.reverse_compute_at(out, block_j)
    fetches = [sch.cache_read(mm, sch.get_buffer(name), "shared") for name in ("A", "B")]
    for fetch in fetches:
        sch.compute_at(fetch, tile_k)
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    for fetch in fetches:
        cooperate(sch, fetch, (16, 16), lanes=4)
    row, column = sch.get_loops(out)[2:]
    out_i, out_thread_i = sch.split(row, factors=(4, 16))
    out_j, out_thread_j = sch.split(column, factors=(4, 16))
    sch.reorder((out_thread_i, out_thread_j, out_i, out_j))
    for loop in (thread_i, out_thread_i):
        sch.bind(loop, "threadIdx.y")
    for loop in (thread_j, out_thread_j):
        sch.bind(loop, "threadIdx.x")
    for loop in (k, own_i, own_j, out_i, out_j):
        sch.unroll(loop)
    return sch


def cooperate(sch: Schedule, fetch: BlockRef, threads: tuple[int, int], lanes: int) -> None:
    """Let the threads of a block share the copying of a tile, some neighbours each."""
    tile = sch.fuse(sch.get_loops(fetch)[-2:])
    _, y, x, vector = sch.split(tile, factors=(None, *threads, lanes))
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    sch.vectorize(vector)


def function(schedule: Schedule) -> PrimFunc:
    """Give the one loop-level function of a schedule."""
    return next(iter(schedule.module.prims))
