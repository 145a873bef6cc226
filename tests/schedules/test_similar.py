"""The steps of one kernel on all similar kernels, with a report."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedules import FunctionRef, Schedule, TraceError

MODEL = """
@graph_func
def main(x: Tensor[(32, 48), f32], w: Tensor[(48, 64), f32], v: Tensor[(64, 64), f32]):
    a = matmul(x, w)
    b = relu(a)
    c = matmul(b, v)
    d = softmax(c, axis=1)
    return d
"""


def lowered() -> Schedule:
    sch = Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx512",)))
    sch.lower_graph("main")
    return sch


def test_kernels_of_the_same_form_accept_the_steps() -> None:
    sch = lowered()
    assert [f.name for f in sch.module.prims] == ["matmul_1", "softmax", "fused_matmul_relu"]
    sch.schedule_kernel("matmul_1")
    versions = len(sch.history)
    found = sch.apply_to_similar("matmul_1")
    assert found.accepted == ("fused_matmul_relu",)
    assert len(sch.history) == versions + 1
    rejected = next(k for k in found.kernels if not k.accepted)
    assert (rejected.function, rejected.steps) == ("softmax", 0)
    assert "no block has the form 'spatial, spatial, reduce: add(load, mul(load, load))'" in (
        rejected.reason
    )
    assert str(found).splitlines()[0].split() == ["kernel", "accepted", "steps", "reason"]
    assert sch.verify(runs=1).ok
    kinds = [
        [x.kind for x in sch.state.tree(name).loops.values() if x.kind != "serial"]
        for name in ("matmul_1", "fused_matmul_relu")
    ]
    assert kinds[0] == kinds[1] != []
    again = Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx512",)))
    assert again.replay(sch.trace).complete
    assert str(again) == str(sch)


def test_a_kernel_of_another_form_is_not_changed() -> None:
    sch = lowered()
    row, column, _ = sch.get_loops(sch.get_block("matmul", "matmul_1"))
    sch.split(row, factors=(None, 8))
    sch.unroll(sch.split(column, factors=(None, 8))[1])
    before = sch.module.prim("softmax")
    found = sch.apply_to_similar(FunctionRef("matmul_1"), to=[FunctionRef("softmax")])
    assert found.accepted == ()
    assert sch.module.prim("softmax") is before


def test_the_failing_step_is_reported() -> None:
    text = """
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    for i in range(64):
        y[i] = x[i] + 1.0

@prim_func
def g(x: Buffer[(1000,), f32], y: Out[(1000,), f32]):
    for i in range(1000):
        y[i] = x[i] + 2.0
"""
    sch = Schedule(tw.parse(text))
    (i,) = sch.get_loops(sch.get_block("y", "f"))
    sch.unroll(i)
    before = sch.module.prim("g")
    (kernel,) = sch.apply_to_similar("f").kernels
    assert (kernel.function, kernel.accepted, kernel.steps) == ("g", False, 3)
    assert "unroll: " in kernel.reason
    assert "1000" in kernel.reason
    assert sch.module.prim("g") is before


def test_scheduled_kernels_are_reported() -> None:
    sch = lowered()
    sch.schedule_kernel("matmul_1")
    sch.schedule_kernel("fused_matmul_relu")
    found = sch.apply_to_similar("matmul_1", to=["fused_matmul_relu"])
    assert [k.reason for k in found.kernels] == ["the kernel is scheduled already"]


def test_wrong_names_and_a_kernel_without_steps() -> None:
    sch = lowered()
    with pytest.raises(TraceError, match="no step of the trace changes function 'softmax'"):
        sch.apply_to_similar("softmax")
    with pytest.raises(TraceError, match="no function 'sofmax'"):
        sch.apply_to_similar("sofmax")
    sch.schedule_kernel("matmul_1")
    with pytest.raises(TraceError, match="no function 'relu'"):
        sch.apply_to_similar("matmul_1", to=["relu"])
