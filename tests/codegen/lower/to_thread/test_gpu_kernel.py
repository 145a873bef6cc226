"""Thread IR of small GPU kernels: launches, threads, memory, and barriers."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.symbolic import evaluate
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
"""A thread reads an element that another thread wrote."""

OWN = REVERSED.replace("63 - wb", "wb")
"""A thread reads the element that it wrote itself."""

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
"""All iterations of a loop use the same shared memory."""

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
"""The threads of two warps sum a row."""

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
"""Two virtual threads per thread, with one barrier."""

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
"""Four consecutive elements per access, if all of them are in bounds."""

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
"""Statements outside of thread loops: one thread writes shared memory, each its registers."""

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
"""One thread block with a temporary of symbolic size in global memory."""

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
    """All but ``scratch``, whose bounds contain a minimum printed in order of creation."""
    golden(f"{name}.txt", lowered(PROGRAMS[name]))


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("size", [1, 3, 130])
def test_results(name, size):
    func = program(PROGRAMS[name])
    agrees(func, func, {"n": size, "m": 3})


@pytest.mark.parametrize(("name", "count"), sorted(BARRIERS.items()))
def test_barriers_are_between_conflicting_accesses(name, count):
    function = lower_kernel(program(PROGRAMS[name]), SIMT).function
    assert sum(isinstance(s, Barrier) for s in walk(function.body)) == count


@pytest.mark.parametrize(("name", "count"), [("matmul", 2), ("tensor_matmul", 3), ("softmax", 2)])
def test_kernels_have_no_redundant_barriers(name, count):
    """Before and after the tiles of an iteration, after staging sums, after each row total."""
    function = lower_kernel(kernels.scheduled(name), SIMT).function
    barriers = [s for s in walk(function.body) if isinstance(s, Barrier)]
    assert len(barriers) == count


def test_scratch_is_a_parameter():
    artifact = lower_kernel(program(SCRATCH), SIMT)
    assert str(artifact.scratch) == "ceildiv(n, 32) * 128"
    assert [getattr(p, "name", "") for p in artifact.function.params] == ["x", "y", "n", "scratch"]


ALIGNED_ROWS = """
n = symbols("n", lower=0)

@prim_func
def aligned_rows(x: Buffer[(n, 8, 4), f32], y: Out[(n, 8, 4), f32]):
    for k in thread(8, "threadIdx.x"):
        t = alloc((n, 1, 4), f32)
        for i in range(n):
            for j in range(4):
                with block("t", storage_align=(1, 32, 30)):
                    vi, vk, vj = spatial(i), spatial(k), spatial(j)
                    t[vi, 0, vj] = x[vi, vk, vj] + 1.0
        for i1 in range(n):
            for j1 in range(4):
                with block("y"):
                    vi, vk, vj = spatial(i1), spatial(k), spatial(j1)
                    y[vi, vk, vj] = t[vi, 0, vj] * 2.0
"""


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_temporary_with_aligned_rows_has_no_negative_size(size):
    func = program(ALIGNED_ROWS)
    artifact = lower_kernel(func, SIMT)
    [temporary] = artifact.temporaries
    bytes_of = evaluate(temporary.size, dict.fromkeys(artifact.symbols, size))
    assert bytes_of >= (0 if size == 0 else ((size - 1) * 30 + 4) * 4)
    agrees(func, func, {"n": size})


@pytest.mark.parametrize("kind", ["cpu", "simt"])
def test_thread_bound_loops_are_serial_on_a_cpu(kind):
    """The same passes run for both; a CPU runs the threads one after the other."""
    from tilewright.target.target import Target

    function = lower_kernel(program(LANES), Target(kind)).function
    assert (function.launch is None) == (kind == "cpu")
