"""GPU kernels: naive programs with symbolic sizes, and the steps that schedule them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tilewright.ir.script import parse
from tilewright.schedules import Schedule

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.schedules.handles import BlockRef

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

TENSOR_MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def hgemm(A: Buffer[(M, K), f16], B: Buffer[(K, N), f16], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0
                    C[vi, vj] += f32(A[vi, vk]) * f32(B[vk, vj])
"""

HALF_MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def hgemm(A: Buffer[(M, K), f16], B: Buffer[(K, N), f16], C: Out[(M, N), f16]):
    S = alloc((M, N), f32)
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): S[vi, vj] = 0
                    S[vi, vj] += f32(A[vi, vk]) * f32(B[vk, vj])
    for i1 in range(M):
        for j1 in range(N):
            with block("narrow"):
                wi, wj = spatial(i1), spatial(j1)
                C[wi, wj] = f16(S[wi, wj])
"""

HALF_SUMS = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def hgemm(A: Buffer[(M, K), f16], B: Buffer[(K, N), f16], C: Out[(M, N), f16]):
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
    """Fuse two elementwise blocks; every thread computes four consecutive elements."""
    sch = Schedule(parse(ELEMENTWISE))
    sch.compute_inline(sch.get_block("biased"))
    i, j = sch.get_loops(sch.get_block("silu"))
    blocks, threads, lanes = sch.split(sch.fuse((i, j)), factors=(None, 256, 4))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    sch.vectorize(lanes)
    return sch


def softmax(threads: int = 256) -> Schedule:
    """One thread block per row, whose threads share the maximum, the sum, and the row."""
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
    """64x64 of C per thread block, 4x4 per thread in registers, A and B in shared memory.

    The blocks that pad A and B also copy to shared memory, and the block that crops C stores it.
    """
    sch = Schedule(parse(MATMUL))
    mm = sch.get_block("mm")
    pad_a, pad_b, crop = sch.pad_einsum(mm, (64, 64, 16))
    i, j, k = sch.get_loops(mm)
    block_i, own_i, thread_i = sch.split(i, factors=(None, 4, 16))
    block_j, own_j, thread_j = sch.split(j, factors=(None, 4, 16))
    tile_k, k = sch.split(k, factors=(None, 16))
    sch.reorder((block_i, block_j, tile_k, thread_i, thread_j, k, own_i, own_j))
    sch.set_scope(sch.get_buffer("C_pad"), "local")
    sch.reverse_compute_at(crop, block_j)
    for pad, name in ((pad_a, "A_pad"), (pad_b, "B_pad")):
        sch.set_scope(sch.get_buffer(name), "shared")
        sch.compute_at(pad, tile_k)
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    for pad in (pad_a, pad_b):
        cooperate(sch, pad, (16, 16), lanes=4)
    row, column = sch.get_loops(crop)[2:]
    crop_i, crop_thread_i = sch.split(row, factors=(4, 16))
    crop_j, crop_thread_j = sch.split(column, factors=(4, 16))
    sch.reorder((crop_thread_i, crop_thread_j, crop_i, crop_j))
    for loop in (thread_i, crop_thread_i):
        sch.bind(loop, "threadIdx.y")
    for loop in (thread_j, crop_thread_j):
        sch.bind(loop, "threadIdx.x")
    for loop in (k, own_i, own_j, crop_i, crop_j):
        sch.unroll(loop)
    return sch


def tensor_matmul(text: str = TENSOR_MATMUL, sums: str = "f32") -> Schedule:
    """64x64 of C per thread block of four warps, each 32x32 in fragments, with padded A and B.

    The blocks that pad A and B also copy to shared memory, and the block that crops C stores it;
    in between, all sizes are multiples of the tiles.
    """
    sch = Schedule(parse(text))
    mm = sch.get_block("mm")
    pad_a, pad_b, crop = sch.pad_einsum(mm, (64, 64, 64))
    if "narrow" in text:
        sch.compute_inline(crop)
        crop = sch.get_block("narrow")
    summed = sch.state.block(mm).writes[0].buffer.name
    i, j, k = sch.get_loops(mm)
    block_i, warp_i, tile_i, i = sch.split(i, factors=(None, 2, 2, 16))
    block_j, warp_j, tile_j, j = sch.split(j, factors=(None, 2, 4, 8))
    outer_k, tile_k, k = sch.split(k, factors=(None, 4, 16))
    sch.reorder((block_i, block_j, outer_k, warp_i, warp_j, tile_k, tile_i, tile_j, i, j, k))
    sch.set_scope(sch.get_buffer(summed), "fragment")
    for pad, name in ((pad_a, "A_pad"), (pad_b, "B_pad")):
        sch.set_scope(sch.get_buffer(name), "shared")
        sch.compute_at(pad, outer_k)
        sch.storage_align(sch.get_buffer(name), axis=0, factor=32, offset=8)
    sch.reverse_compute_at(crop, block_j)
    stage = sch.cache_read(crop, sch.get_buffer(summed), "shared")
    fragments = [
        sch.cache_read(mm, sch.get_buffer(name), "fragment") for name in ("A_pad", "B_pad")
    ]
    for fragment in fragments:
        sch.compute_at(fragment, tile_k)
    start = sch.decompose_reduction(mm, outer_k)
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    sch.storage_align(sch.get_buffer(f"{summed}_shared"), axis=0, factor=32, offset=8)
    row, column = sch.get_loops(stage)[2:]
    stage_loops = (*sch.split(row, factors=(2, 2, 16)), *sch.split(column, factors=(2, 4, 8)))
    sch.reorder(tuple(stage_loops[n] for n in (0, 3, 1, 4, 2, 5)))
    for fragment in fragments:
        row, column = sch.get_loops(fragment)[-2:]
        row, i = sch.split(row, factors=(None, 16))
        column, j = sch.split(column, factors=(None, 16))
        sch.reorder((row, column, i, j))
    for block, depth, name in (
        (start, 2, f"cuda.fill.{sums}.16x8"),
        (fragments[0], 2, "cuda.ldmatrix.a.16x16"),
        (fragments[1], 2, "cuda.ldmatrix.b.16x16"),
        (mm, 3, f"cuda.mma.m16n8k16.{sums}.f16"),
        (stage, 2, f"cuda.store.{sums}.16x8.shared"),
    ):
        loops = sch.get_loops(block)
        sch.tensorize(loops[-depth], name)
        for tile in loops[-depth - 2 : -depth]:
            sch.unroll(tile)
        if block in (start, stage):
            sch.bind(loops[2], "threadIdx.z")
            sch.bind(loops[3], "threadIdx.y")
    sch.bind(warp_i, "threadIdx.z")
    sch.bind(warp_j, "threadIdx.y")
    sch.unroll(tile_k)
    cooperate(sch, pad_a, (2, 2, 32), lanes=8)
    cooperate(sch, pad_b, (2, 2, 32), lanes=8)
    cooperate(sch, crop, (2, 2, 32), lanes=4)
    return sch


def half_matmul() -> Schedule:
    """The tensor-core matmul with a result in half precision, rounded once."""
    return tensor_matmul(HALF_MATMUL)


def half_sums() -> Schedule:
    """The tensor-core matmul with sums in half precision."""
    return tensor_matmul(HALF_SUMS, "f16")


def cooperate(sch: Schedule, fetch: BlockRef, threads: tuple[int, ...], lanes: int) -> None:
    """Distribute the copy of a tile to the threads of a block, with vectors of ``lanes``."""
    tile = sch.fuse(sch.get_loops(fetch)[-2:])
    _, *numbers, vector = sch.split(tile, factors=(None, *threads, lanes))
    for loop, axis in zip(reversed(numbers), ("x", "y", "z"), strict=False):
        sch.bind(loop, f"threadIdx.{axis}")
    sch.vectorize(vector)


@cache
def scheduled(name: str) -> PrimFunc:
    """Return the scheduled function of a kernel, cached."""
    return function(globals()[name]())


def function(schedule: Schedule) -> PrimFunc:
    """Return the one loop-level function of a schedule."""
    return next(iter(schedule.module.prims))


PROGRAMS = {
    "elementwise": ELEMENTWISE,
    "softmax": SOFTMAX,
    "matmul": MATMUL,
    "tensor_matmul": TENSOR_MATMUL,
    "half_matmul": HALF_MATMUL,
    "half_sums": HALF_SUMS,
}
"""The naive program of each kernel, by the name of the function that schedules it."""
