"""Steps that must be legal, so that no check becomes too strict, and the latency of steps."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tilewright.schedules import Primitive, Schedule, State, from_python
from tilewright.schedules.apply import apply, check
from tilewright.schedules.primitives.tensorize.blockize import Blockize
from tilewright.schedules.primitives.tensorize.pad_einsum import PadEinsum
from tilewright.schedules.primitives.tensorize.tensorize import Tensorize

from tests.benchmarks.steps import apply_steps
from tests.codegen.tensorized import FMA_AVX512
from tests.cpu_time import relative_ms, timed
from tests.schedules.helpers import CHAIN, MATMUL, schedule
from tests.schedules.random_steps import loop_level, random_step

BATCHED = """
b, n, m = symbols("b, n, m", lower=1)

@prim_func
def batched(A: Buffer[(b, n, 8), i32], B: Buffer[(b, 8, m), i32], C: Out[(b, n, m), i32]):
    t = alloc((b, n, m), i32)
    for e in range(b):
        for i in range(n):
            for j in range(m):
                for k in range(8):
                    with block("mm"):
                        ve, vi, vj, vk = spatial(e), spatial(i), spatial(j), reduce(k)
                        with init(): t[ve, vi, vj] = 0
                        t[ve, vi, vj] += A[ve, vi, vk] * B[ve, vk, vj]
    for e2 in range(b):
        for i2 in range(n):
            for j2 in range(m):
                with block("relu"):
                    we, wi, wj = spatial(e2), spatial(i2), spatial(j2)
                    C[we, wi, wj] = max(t[we, wi, wj], 0)
"""

SOFTMAX = """
M, N = symbols("M, N", lower=1)

@prim_func
def softmax(x: Buffer[(M, N), f32], y: Out[(M, N), f32]):
    top = alloc((M,), f32)
    e = alloc((M, N), f32)
    total = alloc((M,), f32)
    for i in range(M):
        for k in range(N):
            with block("max"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi] = -inf
                top[vi] = max(top[vi], x[vi, vk])
    for i1 in range(M):
        for j1 in range(N):
            with block("exp"):
                vi1, vj1 = spatial(i1), spatial(j1)
                e[vi1, vj1] = exp(x[vi1, vj1] - top[vi1])
    for i2 in range(M):
        for k2 in range(N):
            with block("sum"):
                vi2, vk2 = spatial(i2), reduce(k2)
                with init(): total[vi2] = 0.0
                total[vi2] += e[vi2, vk2]
    for i3 in range(M):
        for j3 in range(N):
            with block("divide"):
                vi3, vj3 = spatial(i3), spatial(j3)
                y[vi3, vj3] = e[vi3, vj3] / total[vi3]
"""

CASES = {
    "register tile, packed": (
        MATMUL,
        """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
i0, i1 = sch.split(i, (None, 14))
j0, j1 = sch.split(j, (None, 8))
sch.reorder((i0, j0, k, i1, j1))
copy = sch.cache_write(mm, "C", "local")
sch.reverse_compute_at(copy, j0)
init = sch.decompose_reduction(mm, k)
sch.vectorize(j1)
sch.unroll(i1)
pack = sch.cache_read(mm, "B", "global")
sch.transform_layout("B_global", lambda a, b: (b // 8, a, b % 8))
sch.parallel(i0)
""",
    ),
    "a tile that an instruction does": (FMA_AVX512.program, FMA_AVX512.steps),
    "epilogue in the tile of the product": (
        BATCHED,
        """
mm = sch.get_block("mm")
relu = sch.get_block("relu")
e, i, j = sch.get_loops(relu)
i0, i1 = sch.split(i, (None, 4))
j0, j1 = sch.split(j, (None, 16))
sch.reorder((i0, j0, i1, j1))
sch.compute_at(mm, j0)
sch.set_scope("t", "local")
be, bi0, bj0, bi, bj, bk = sch.get_loops(mm)
sch.reorder((bk, bi, bj))
init = sch.decompose_reduction(mm, bk)
sch.vectorize(bj)
sch.vectorize(j1)
both = sch.fuse((e, i0))
sch.parallel(both)
""",
    ),
    "a row of softmax at a time": (
        SOFTMAX,
        """
last = sch.get_block("divide")
i, j = sch.get_loops(last)
sch.compute_at("sum", i)
sch.compute_at("exp", i)
sch.compute_at("max", i)
j0, j1 = sch.split(j, (None, 8))
sch.vectorize(j1)
total = sch.get_block("sum")
ri, rk = sch.get_loops(total)
k0, k1 = sch.split(rk, (None, 8))
init = sch.decompose_reduction(total, k0)
sch.vectorize(k1)
sch.parallel(i)
""",
    ),
    "consumers first": (
        CHAIN,
        """
second = sch.get_block("second")
sch.compute_inline("first")
(j,) = sch.get_loops(second)
j0, j1 = sch.split(j, (None, 16))
sch.reverse_compute_at("third", j0)
sch.parallel(j0)
sch.vectorize(j1)
""",
    ),
    "all in one": (
        CHAIN,
        """
sch.reverse_compute_inline("third")
sch.reverse_compute_inline("second")
""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_accepted(name):
    program, steps = CASES[name]
    sch = schedule(program)
    sch.replay(from_python(steps)).completed()
    assert sch.verify(runs=2).required().compared


@timed
@pytest.mark.usefixtures("unverified_steps")
def test_steps_are_quick():
    """The median CPU time of a step is at most 1 ms, the 95th percentile at most 10 ms.

    Times are those of the reference machine (:mod:`tests.cpu_time`).
    """
    times: list[float] = []
    for seed in range(40):
        rng = random.Random(seed)
        state = schedule(MATMUL).state
        for _ in range(10):
            step = random_step(rng, state, rng.choice(loop_level()))
            if step is None or check(state, step):
                continue
            applied: list[State] = []
            times.append(relative_ms(partial(_apply, state, step, applied)))
            state = applied[0]
    assert len(times) > 100
    assert statistics.median(times) <= 1
    assert statistics.quantiles(times, n=20)[-1] <= 10


@timed
@pytest.mark.usefixtures("unverified_steps")
def test_steps_are_quick_in_a_function_of_200_loops():
    """The times include the trace, the history, and the index of the changed function."""
    times: list[float] = []

    def call(method: Callable[..., Any], *arguments: object) -> Any:
        results: list[Any] = []
        times.append(relative_ms(lambda: results.append(method(*arguments))))
        return results[0]

    apply_steps(200, call)
    assert len(times) > 200
    assert statistics.median(times) <= 1
    assert statistics.quantiles(times, n=20)[-1] <= 10


@timed
@pytest.mark.usefixtures("unverified_steps")
def test_tensorizing_is_quick():
    """Check and rewrite together take at most 10 ms at the 95th percentile."""
    times: dict[str, list[float]] = {"pad": [], "blockize": [], "tensorize": []}
    for _ in range(40):
        naive = FMA_AVX512.naive()
        padded = naive.branch()
        times["pad"].append(_timed(padded, PadEinsum(padded.get_block("mm"), (14, 32, 8))))
        mm = naive.get_block("mm")
        i, j, k = naive.get_loops(mm)
        i0, i1 = naive.split(i, (None, 14))
        j0, j1 = naive.split(j, (None, 32))
        naive.reorder((i0, j0, k, i1, j1))
        naive.decompose_reduction(mm, k)
        times["blockize"].append(_timed(naive.branch(), Blockize(i1)))
        times["tensorize"].append(_timed(naive, Tensorize(i1, "avx512.fma.f32.14x32")))
    medians = {step: statistics.median(found) for step, found in times.items()}
    assert medians["pad"] <= 5
    assert medians["blockize"] <= 2
    assert medians["tensorize"] <= 8
    assert statistics.quantiles([ms for found in times.values() for ms in found], n=20)[-1] <= 10


def _apply(state: State, step: Primitive, applied: list[State]) -> None:
    applied.append(apply(state, step).state)


def _timed(sch: Schedule, step: Primitive) -> float:
    return relative_ms(lambda: sch.apply(step))
