"""Temporaries of parallel loops as problems of a launch on a CPU, and for lowering."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.kernel_errors import MemoryScopeError
from tilewright.ir.script import parse
from tilewright.schedules import State
from tilewright.schedules.launch.worker_buffers import may_share_buffers
from tilewright.schedules.launchable import Launchable
from tilewright.target.target import Target

CPU = Target("cpu", features=("avx2",))

SHARED = """
@prim_func(scheduled=True)
def f(x: Buffer[(64, 8), f32], y: Out[(64, 8), f32]):
    t = alloc((64, 8), f32)
    for i in KIND(64):
        for j in range(COUNT):
            t[ROW, j] = x[i, j]
        for k in range(8):
            y[i, k] = t[ROW, 7 - k]
"""
"""A temporary that iterations write in part, each in its own row or all in one."""

UNBOUNDED = """
n, m = symbols("n m", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n,), i32], y: Out[(n,), i32], s: Buffer[(m,), i32]):
    for i in range(n):
        t = alloc(((i * 7) % (m + i) + 1,), i32)
        for j in range((i * 7) % (m + i) + 1):
            t[j] = x[i]
        y[i] = t[0]
"""


@pytest.mark.parametrize(
    ("kind", "count", "row", "legal"),
    [
        ("range", "7", "0", True),
        ("parallel", "7", "0", False),
        ("parallel", "7", "i // 2", False),
        ("parallel", "7", "i % 32", False),
        ("parallel", "7", "i", True),
        ("parallel", "7", "63 - i", True),
        ("parallel", "8", "0", True),
    ],
)
def test_temporaries_that_workers_share_are_problems_of_a_launch(kind, count, row, legal):
    text = SHARED.replace("KIND", kind).replace("COUNT", count).replace("ROW", row)
    func = parse(text, check=False).prim("f")
    problems = State.start(parse(text, check=False)).launchable(CPU)
    assert may_share_buffers(func) is (kind == "parallel")
    if legal:
        assert not problems
        lower_kernel(func, CPU)
        return
    (problem,) = problems
    assert problem.requirement is Launchable.MEMORY_SCOPE
    assert {where.name for where in problem.where} == {"t", "i"}
    with pytest.raises(MemoryScopeError, match="iterations of parallel loop 'i' share") as caught:
        lower_kernel(func, CPU)
    assert caught.value.message == problem.message


def test_a_temporary_of_unknown_size_is_a_problem_of_a_launch():
    func = parse(UNBOUNDED).prim("f")
    assert may_share_buffers(func)
    (problem,) = State.start(parse(UNBOUNDED)).launchable(CPU)
    assert problem.requirement is Launchable.MEMORY_SCOPE
    with pytest.raises(MemoryScopeError, match="the largest size of temporary 't' is unknown"):
        lower_kernel(func, CPU)


TILED = """
n, k = symbols("n k", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    t = alloc((ceildiv(n, 8), k, 8), f32)
    for i in parallel(ceildiv(n, 32)):
        for a in range(2):
            for b in range(k):
                with block("first"):
                    va, vb = spatial(n, i * 32 + a), spatial(k, b)
                    guard(i * 32 + a < n)
                    t[va // 8, vb, va % 8] = x[va, vb]
        for c in range(COUNT):
            for d in range(k):
                with block("others"):
                    vc, vd = spatial(n, i * 32 + c + 2), spatial(k, d)
                    guard(i * 32 + c + 2 < n)
                    t[vc // 8, vd, vc % 8] = x[vc, vd]
        for e in range(32):
            for g in range(k):
                with block("use"):
                    ve, vg = spatial(n, i * 32 + e), spatial(k, g)
                    guard(i * 32 + e < n)
                    y[ve, vg] = t[ve // 8, vg, ve % 8]
"""
"""A packed temporary that two blocks write; ``COUNT`` beyond 30 are rows of the next worker."""


@pytest.mark.parametrize(("count", "legal"), [(30, True), (31, False)])
def test_parts_of_a_tiled_temporary_after_a_loop_is_partitioned(count, legal):
    module = parse(TILED.replace("COUNT", str(count)), check=False)
    problems = State.start(module).launchable(CPU)
    assert [p.requirement for p in problems] == ([] if legal else [Launchable.MEMORY_SCOPE])
    if legal:
        run = tw.compile(module, CPU)
        for shape in ((0, 3), (1, 1), (33, 2), (100, 5)):
            x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
            np.testing.assert_array_equal(run(x), x)
