"""Small kernels at thread level: what is written for launches, threads, memory and barriers."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.thread.nodes import Barrier
from tilewright.ir.thread.visit import walk

from tests.codegen.gpu import kernels
from tests.codegen.gpu.running import SIMT, agrees, lowered, program

REVERSED = """
n = symbols("n", lower=1)

@prim_func
def reversed(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((n, 64), i32, scope="shared")
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            with block("keep"):
                vi, va = spatial(i), spatial(a)
                s[vi, va] = x[vi, va]
        for b in thread(64, "threadIdx.x"):
            with block("turn"):
                wi, wb = spatial(i), spatial(b)
                y[wi, wb] = s[wi, 63 - wb]
"""
"""A thread reads what another one wrote."""

OWN = REVERSED.replace("63 - wb", "wb")
"""A thread reads what it wrote itself."""

ROUNDS = """
n, m = symbols("n m", lower=1)

@prim_func
def rounds(x: Buffer[(n, m, 64), i32], y: Out[(n, m, 64), i32]):
    s = alloc((n, m, 64), i32, scope="shared")
    for i in thread(n, "blockIdx.x"):
        for r in range(m):
            for a in thread(64, "threadIdx.x"):
                with block("keep"):
                    vi, vr, va = spatial(i), spatial(r), spatial(a)
                    s[vi, vr, va] = x[vi, vr, va]
            for b in thread(64, "threadIdx.x"):
                with block("turn"):
                    wi, wr, wb = spatial(i), spatial(r), spatial(b)
                    y[wi, wr, wb] = s[wi, wr, 63 - wb]
"""
"""The memory of one round is that of the next."""

SUM = """
n = symbols("n", lower=1)

@prim_func
def total(x: Buffer[(n, 64), i32], y: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        for k in thread(64, "threadIdx.x"):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
"""Threads of two warps add up a row."""

VIRTUAL = """
n = symbols("n", lower=1)

@prim_func
def virtual(x: Buffer[(n, 128), i32], y: Out[(n, 128), i32]):
    s = alloc((n, 128), i32, scope="shared")
    t = alloc((n, 128), i32, scope="local")
    for i in thread(n, "blockIdx.x"):
        for v in thread(2, "vthread"):
            for a in thread(64, "threadIdx.x"):
                with block("keep"):
                    vi, va = spatial(i), spatial(128, v * 64 + a)
                    s[vi, va] = x[vi, va]
        for v1 in thread(2, "vthread"):
            for b in thread(64, "threadIdx.x"):
                with block("take"):
                    wi, wb = spatial(i), spatial(128, v1 * 64 + b)
                    t[wi, wb] = s[wi, 127 - wb]
                with block("double"):
                    ui, ub = spatial(i), spatial(128, v1 * 64 + b)
                    y[ui, ub] = t[ui, ub] * 2
"""
"""Two iterations side by side in a thread, with one barrier."""

LANES = """
n = symbols("n", lower=1)

@prim_func
def lanes(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in thread(ceildiv(n, 128), "blockIdx.x"):
        for a in thread(32, "threadIdx.x"):
            for v in vectorized(4):
                with block("copy"):
                    vi = spatial(n, i * 128 + a * 4 + v)
                    guard(i * 128 + a * 4 + v < n)
                    y[vi] = x[vi]
"""
"""Four neighbours at once where they all are there."""

SINGLE = """
n = symbols("n", lower=1)

@prim_func
def single(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((n,), i32, scope="shared")
    c = alloc((n,), i32, scope="local")
    for i in thread(n, "blockIdx.x"):
        with block("first"):
            vi = spatial(i)
            s[vi] = x[vi, 5]
        with block("each"):
            ui = spatial(i)
            c[ui] = s[ui] + 1
        for a in thread(64, "threadIdx.x"):
            with block("add"):
                wi, wa = spatial(i), spatial(a)
                y[wi, wa] = x[wi, wa] + c[wi]
"""
"""What is outside of the threads' loops: by one thread into shared memory, by each into its own."""

SCRATCH = """
n = symbols("n", lower=1)

@prim_func
def scratch(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n,), i32)
    for i in range(ceildiv(n, 32)):
        for a in thread(32, "threadIdx.x"):
            with block("double"):
                vi = spatial(n, i * 32 + a)
                guard(i * 32 + a < n)
                t[vi] = x[vi] * 2
    for j in range(ceildiv(n, 32)):
        for b in thread(32, "threadIdx.x"):
            with block("turn"):
                wi = spatial(n, j * 32 + b)
                guard(j * 32 + b < n)
                y[wi] = t[n - 1 - wi]
"""
"""One block keeps a temporary of unknown length in global memory."""

PROGRAMS = {
    "reversed": REVERSED,
    "own": OWN,
    "rounds": ROUNDS,
    "sum": SUM,
    "virtual": VIRTUAL,
    "lanes": LANES,
    "single": SINGLE,
    "scratch": SCRATCH,
}
BARRIERS = {
    "reversed": 1, "own": 0, "rounds": 2, "sum": 1, "virtual": 1, "lanes": 0, "single": 1,
    "scratch": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"scratch"}))
def test_thread_level_text(name, golden):
    """Without the one whose bounds are a minimum, which is written in the order of its making."""
    golden(f"{name}.txt", lowered(PROGRAMS[name]))


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("size", [1, 3, 130])
def test_results(name, size):
    func = program(PROGRAMS[name])
    agrees(func, func, {"n": size, "m": 3})


@pytest.mark.parametrize(("name", "count"), sorted(BARRIERS.items()))
def test_barriers_stand_where_threads_meet(name, count):
    function = lower_kernel(program(PROGRAMS[name]), SIMT).function
    assert sum(isinstance(s, Barrier) for s in walk(function.body)) == count


@pytest.mark.parametrize(("name", "count"), [("matmul", 2), ("tensor_matmul", 3), ("softmax", 2)])
def test_kernels_wait_no_more_than_they_have_to(name, count):
    """Before and after the tiles of a round; after sums are staged; after each total of a row."""
    function = lower_kernel(kernels.scheduled(name), SIMT).function
    barriers = [s for s in walk(function.body) if isinstance(s, Barrier)]
    assert len(barriers) == count


def test_scratch_is_told():
    artifact = lower_kernel(program(SCRATCH), SIMT)
    assert str(artifact.scratch) == "ceildiv(n, 32) * 128"
    assert [getattr(p, "name", "") for p in artifact.function.params] == ["x", "y", "n", "scratch"]


@pytest.mark.parametrize("kind", ["cpu", "simt"])
def test_a_bound_program_is_a_serial_one_on_a_processor(kind):
    """One list of passes for both: a processor runs the threads one after the other."""
    from tilewright.ir.target import Target

    function = lower_kernel(program(LANES), Target(kind)).function
    assert (function.launch is None) == (kind == "cpu")
