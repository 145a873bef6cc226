"""Versions of a kernel: every call that the step accepts can choose them."""

import numpy as np

from tilewright.ir.graph.nodes import CallTIR, IfElse
from tilewright.ir.script import to_text
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.graph.fuse_tir import FuseTir
from tilewright.schedules.primitives.specialise.specialise import Specialise
from tilewright.schedules.refs import FunctionRef

from tests.schedules.helpers import rejected
from tests.schedules.primitives.graph.test_callers import (
    BRANCHES,
    CHAIN,
    MAIN,
    RELU,
    X,
    binding,
    grouped,
    launched,
    lowered,
    same,
    with_version,
)

MULTIPLY = FunctionRef("multiply")


def versions_of(call):
    return [v.function for v in call.versions]


def test_requirements_of_specialise():
    schedule = lowered(CHAIN)
    rejected(schedule, Specialise(MAIN, "b", 1, 1), 1, "a graph-level function")
    rejected(schedule, Specialise(RELU, "q", 1, 1), 2, "no symbol 'q'; symbols are b, s")
    rejected(schedule, Specialise(RELU, "b", 0, 0), 3, "no value of b")
    rejected(schedule, Specialise(RELU, "b", 1, None), 3, "covers every value of b")


def test_calls_that_could_not_choose_are_refused():
    rejected(launched(), Specialise(RELU, "b", 1, 1), 4, "'run_relu' in 'main' launches it")
    rejected(grouped(), Specialise(FunctionRef("add"), "b", 1, 1), 4, "waits for fuse_tir")
    schedule, version = with_version()
    rejected(schedule, Specialise(version, "s", 1, 1), 4, "as a version of another kernel")


def test_calls_in_branches_choose_too():
    schedule = lowered(BRANCHES)
    relu = schedule.specialise(RELU, symbol="b", lower=2, upper=2)
    multiply = schedule.specialise(MULTIPLY, symbol="s", lower=3, upper=3)
    bindings = {b.value.name: b.right for b in schedule.module.graph().bindings}
    assert versions_of(bindings["r"]) == [relu.function]
    branches = next(r for r in bindings.values() if isinstance(r, IfElse))
    inner = [b.right for x in (branches.then, branches.otherwise) for b in x.bindings]
    calls = {r.function: versions_of(r) for r in inner if isinstance(r, CallTIR)}
    assert calls == {"relu": [relu.function], "multiply": [multiply.function]}
    for flag in (True, False):
        assert same(schedule, X, np.array(flag))
        assert same(schedule, X[:1, :2], np.array(flag))


def test_fusing_leaves_out_calls_with_versions():
    schedule, version = with_version()
    t, u = (binding(schedule, name) for name in "tu")
    rejected(schedule, FuseOps(MAIN, (t, u)), 5, f"'t' chooses among versions: {version.function}")
    schedule.fuse_ops(MAIN)
    schedule.fuse_tir(MAIN)
    calls = {b.right.function: versions_of(b.right) for b in schedule.module.graph().bindings}
    assert calls == {"relu": [version.function], "fused_negative_add": []}
    assert same(schedule, X)


def test_groups_written_with_versions_are_not_joined():
    text = """
n = symbols("n", lower=1)

@prim_func
def one(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("one"):
            vi = spatial(i)
            y[vi] = x[vi] + 1.0

@graph_func
def main(x: Tensor[(n,), f32]):
    t: Tensor[(n,), f32] = call_tir(one, x)
    y: Tensor[(n,), f32] = call_tir(one, t)
    return y
"""
    schedule = lowered(text)
    version = schedule.specialise(FunctionRef("one"), symbol="n", lower=1, upper=1)
    written = (
        to_text(schedule.module)
        .replace("def main", "def group")
        .replace("@graph_func", "@graph_func(primitive=True)")
    )
    caller = """
@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = call(group, x)
    return y
"""
    start = lowered(f"{written}\n{caller}")
    rejected(
        start, FuseTir(MAIN), 3, f"'t' in group 'group' chooses among versions: {version.function}"
    )
