"""Loops in LLVM text: the remainder of a vector loop, with masks, is not unrolled."""

from __future__ import annotations

import pytest

from tilewright.codegen.build.worker_pool import CompileJob, WorkerPool
from tilewright.codegen.llvm import emit_located, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

ROWS_THEN_SCAN = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    s = alloc((n,), f32)
    for i in range(n):
        for j in range(m):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): s[vi] = 0.0
                s[vi] += x[vi, vj]
    for k in range(n):
        for l in range(k + 1):
            with block("scan"):
                vk, vl = spatial(k), reduce(l)
                with init(): y[vk] = 0.0
                y[vk] += s[vl]
"""

TRIANGLES = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, n), f32], y: InOut[(n, n), f32]):
    for i in range(n):
        for j in range(i + 1):
            for r in range(j + 1):
                with block("y"):
                    vi, vj, vr = spatial(i), spatial(n, j), reduce(n, r)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vr]
"""

COPY = """
@prim_func
def f(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
    for i in range(64):
        for j in range(64):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + 1.0
"""

NOT_UNROLLED = "llvm.loop.unroll.disable"


def scheduled(text: str, features: tuple[str, ...] = ()):
    """Return the lowered kernel of a program with the default schedule, and its target."""
    target = Target("cpu", features=features)
    sch = Schedule(parse(text))  # vectors of 512 bits
    sch.schedule_kernel("f")
    return [lower_kernel(sch.module.prims[0], target).function], target


@pytest.fixture(scope="module")
def pool():
    workers = WorkerPool(1)
    yield workers
    workers.close()


def test_only_loops_over_masked_vectors_are_not_unrolled(pool):
    assert NOT_UNROLLED not in emit_module(*scheduled(COPY))
    text = emit_module(*scheduled(TRIANGLES))
    assert text.count(NOT_UNROLLED) == 1
    assert 0 < text.count(", !llvm.loop !") < text.count("head")
    located, _ = emit_located(*scheduled(TRIANGLES))
    assert NOT_UNROLLED in located
    assert pool.run(CompileJob("f", located, Target("cpu")))


@pytest.mark.parametrize("features", [(), ("avx512",)], ids=["base", "avx512"])
@pytest.mark.parametrize("text", [ROWS_THEN_SCAN, TRIANGLES], ids=["scan", "triangles"])
def test_kernels_of_several_nests_with_remainders_are_optimized(text, features, pool):
    """A warning, which is an error here, would report that LLVM failed to optimize the kernel."""
    functions, target = scheduled(text, features)
    assert pool.run(CompileJob("f", emit_module(functions, target), target))
