"""Rows on GPUs: rows that fit in the shared memory of a thread block, and longer ones."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter import call_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.launch.shared_memory import element_width
from tilewright.target.gpus import limits_of
from tilewright.target.target import Target

SOFTMAX = """
@prim_func
def softmax(x: Buffer[(2, {n}), {t}], y: Out[(2, {n}), {t}]):
    top = alloc((2,), {t})
    e = alloc((2, {n}), {t})
    s = alloc((2,), {t})
    for i in range(2):
        for j in range({n}):
            with block("top"):
                vi, vj = spatial(i), reduce(j)
                with init(): top[vi] = -60000.0
                top[vi] = max(top[vi], x[vi, vj])
    for i1 in range(2):
        for j1 in range({n}):
            with block("e"):
                wi, wj = spatial(i1), spatial(j1)
                e[wi, wj] = exp(x[wi, wj] - top[wi])
    for i2 in range(2):
        for j2 in range({n}):
            with block("s"):
                ui, uj = spatial(i2), reduce(j2)
                with init(): s[ui] = 0.0
                s[ui] += e[ui, uj]
    for i3 in range(2):
        for j3 in range({n}):
            with block("y"):
                zi, zj = spatial(i3), spatial(j3)
                y[zi, zj] = e[zi, zj] / s[zi]
"""

SUMS = """
@prim_func
def sums(x: Buffer[(2, {n}), f32], y: Out[(2,), f32]):
    t = alloc((2, {n}), f32)
    for i in range(2):
        for j in range({n}):
            for r in range(3):
                with block("t"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): t[vi, vj] = 0.0
                    t[vi, vj] += x[vi, (vj + vr) % {n}]
    for i1 in range(2):
        for k in range({n}):
            with block("y"):
                wi, wk = spatial(i1), reduce(k)
                with init(): y[wi] = 0.0
                y[wi] += t[wi, wk]
"""


def scheduled(text: str, target: Target) -> Schedule:
    """Return a schedule by the default rule, whose launch has no problem."""
    schedule = Schedule(parse(text), target)
    (naive,) = schedule.module.prims
    schedule.schedule_kernel(naive.name)
    assert not schedule.state.launchable(target, naive.name)
    return schedule


@pytest.mark.parametrize(("dtype", "longest"), [("f32", 3584), ("f16", 3584)])
def test_rows_that_exceed_the_memory_of_a_workgroup_are_computed_again(dtype, longest):
    assert limits_of(Target("webgpu")).shared == 16 * 1024
    for n, kept in ((64, True), (longest, True), (longest + 1, False), (5000, False)):
        schedule = scheduled(SOFTMAX.format(n=n, t=dtype), Target("webgpu"))
        assert [group.op for group in schedule.trace.groups][1] == "schedule_gpu_rows"
        names = [b.name for b in schedule.state.tree("softmax").temporaries]
        assert ("e" in names) == kept


def test_a_longer_row_fits_on_cuda():
    for n, kept in ((3585, True), (4096, True), (4097, False)):
        schedule = scheduled(SOFTMAX.format(n=n, t="f32"), Target("cuda", arch="sm_80"))
        names = [b.name for b in schedule.state.tree("softmax").temporaries]
        assert ("e" in names) == kept


@pytest.mark.parametrize("n", [64, 3600])
def test_results_are_those_of_the_program(n):
    text = SOFTMAX.format(n=n, t="f32")
    (naive,) = parse(text).prims
    x = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
    made = scheduled(text, Target("webgpu")).module.prim("softmax")
    (found,), (wanted,) = call_prim(made, (x,), {}), call_prim(naive, (x,), {})
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_long_row_of_sums_is_left_to_another_rule():
    """A reduction is not inlined, so its row cannot be computed again."""
    short = scheduled(SUMS.format(n=3000), Target("webgpu"))
    long = scheduled(SUMS.format(n=3600), Target("webgpu"))
    assert "schedule_gpu_rows" in [group.op for group in short.trace.groups]
    assert "schedule_gpu_rows" not in [group.op for group in long.trace.groups]


@pytest.mark.parametrize(
    ("dtype", "cuda", "webgpu"),
    [("i4", 1, 4), ("u8", 1, 4), ("f16", 2, 4), ("f32", 4, 4), ("i64", 8, 8)],
)
def test_an_element_of_a_shader_has_whole_words(dtype, cuda, webgpu):
    from tilewright.ir.dtype import dtype as named

    assert element_width(named(dtype), Target("cuda")) == cuda
    assert element_width(named(dtype), Target("webgpu")) == webgpu
