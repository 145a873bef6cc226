"""Tests of graph steps that change a kernel and adapt its callers."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.ir.verify import verify, violations
from tilewright.schedules import Schedule
from tilewright.schedules.handles import BindingRef, FunctionRef
from tilewright.schedules.primitives.graph.collapse_dims import CollapseDims
from tilewright.schedules.primitives.graph.dead_code import DeadCode
from tilewright.schedules.primitives.graph.fold_constants import FoldConstants
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.graph.fuse_tir import FuseTir
from tilewright.schedules.primitives.graph.hoist_block import HoistBlock
from tilewright.schedules.primitives.graph.legalize import Legalize
from tilewright.schedules.primitives.graph.lift_transforms import LiftTransforms

from tests.schedules.helpers import rejected

MAIN = FunctionRef("main")
RELU = FunctionRef("relu")
X = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)

CHAIN = """
b, s = symbols("b s", lower=1)

@graph_func
def main(x: Tensor[(b, s, 8), f32]):
    t = relu(x)
    u = negative(t)
    y = add(u, t)
    return y
"""

BRANCHES = """
b, s = symbols("b s", lower=1)

@graph_func
def main(x: Tensor[(b, s, 8), f32], p: Tensor[(), bool]):
    r = relu(x)
    t = negative(r)
    if p:
        u = relu(t)
        y: Tensor[(b, s, 8), f32] = u
    else:
        v = multiply(t, 2.0)
        y: Tensor[(b, s, 8), f32] = v
    z = add(y, x)
    return z
"""

LOOPED = """
b, s, k = symbols("b s k", lower=0)

@graph_func
def main(x: Tensor[(b, s, 8), f32]):
    @loop(k, count=b)
    def y(c: Tensor[(b, s, 8), f32] = x, e: Tensor[(s, 8), f32] = each(x)):
        unused = exp(c)
        half = full((), 0.5, dtype="f32")
        r = relu(c)
        t = multiply(r, half)
        u = add(t, e)
        return u
    return y
"""

PIECES = """
b, s = symbols("b s", lower=1)

@graph_func
def main(x: Tensor[(b, s, 8), f32]):
    y = split(x, (2, 6), axis=-1)
    a = y[0]
    c = y[1]
    return c, a
"""

COPIED = """
n, m = symbols("n m", lower=1)

@prim_func
def turned(x: Buffer[(n, m), f32], w: Buffer[(n, m), f32], y: Out[(m, n), f32]):
    t = alloc((m, n), f32)
    u = alloc((m, n), f32)
    for i in range(m):
        for j in range(n):
            with block("turn"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = w[vj, vi]
    for i1 in range(m):
        for j1 in range(n):
            with block("both"):
                vi1, vj1 = spatial(i1), spatial(j1)
                u[vi1, vj1] = t[vi1, vj1] * x[vj1, vi1]
    for i2 in range(m):
        for j2 in range(n):
            with block("last"):
                vi2, vj2 = spatial(i2), spatial(j2)
                y[vi2, vj2] = u[vi2, vj2] + 1.0

@graph_func
def main(x: Tensor[(n, m), f32], w: Tensor[(n, m), f32]):
    y: Tensor[(m, n), f32] = call_tir(turned, x, w)
    return y
"""


def lowered(text):
    schedule = Schedule(parse(text))
    schedule.legalize(MAIN)
    return schedule


def binding(schedule, name, function="main"):
    found = schedule.module.graph(function).bindings
    return next(BindingRef(function, b.value.uid) for b in found if b.value.name == name)


def same(schedule, *args):
    start = schedule.history[0].state.module
    verify(schedule.module)
    pairs = zip(run_graph(start, args), run_graph(schedule.module, args), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_all_results_of_a_kernel_keep_their_shapes():
    schedule = lowered(PIECES)
    schedule.collapse_dims(FunctionRef("split"))
    assert [b.rank for b in schedule.module.prim("split").buffer_params] == [2, 2, 2]
    assert same(schedule, X)


def test_fusion_keeps_a_kernel_called_in_a_branch():
    schedule = lowered(BRANCHES)
    schedule.fuse_ops(MAIN)
    schedule.fuse_tir(MAIN)
    assert {"relu", "fused_relu_negative"} <= set(schedule.module.functions)
    assert "negative" not in schedule.module.functions
    assert same(schedule, X, np.array(True))
    assert same(schedule, X, np.array(False))


def test_fusion_keeps_fused_kernels_called_in_a_branch():
    text = CHAIN.replace(
        "y = add(u, t)\n    return y", "y = add(u, t)\n    z = relu(y)\n    return z"
    )
    schedule = lowered(text)
    schedule.fuse_ops(MAIN, bindings=(binding(schedule, "u"), binding(schedule, "y")))
    schedule.fuse_tir(MAIN)
    assert {"relu", "fused_negative_add"} == set(schedule.module.functions) - {"main"}
    assert same(schedule, X)


def with_version():
    schedule = lowered(CHAIN)
    version = schedule.specialize(RELU, symbol="b", lower=2, upper=2)
    return schedule, version


def launched():
    schedule = lowered(CHAIN)
    schedule.plan_memory(MAIN)
    return schedule


def grouped():
    schedule = lowered(CHAIN)
    schedule.fuse_ops(MAIN, bindings=(binding(schedule, "u"), binding(schedule, "y")))
    return schedule


def test_collapse_dims_needs_plain_calls():
    schedule, version = with_version()
    rejected(schedule, CollapseDims(RELU), CollapseDims.Requires.PLAIN_CALLS, "with versions")
    rejected(
        schedule,
        CollapseDims(version),
        CollapseDims.Requires.PLAIN_CALLS,
        "as a version of another kernel",
    )
    rejected(
        launched(), CollapseDims(RELU), CollapseDims.Requires.PLAIN_CALLS, "in the memory stage"
    )
    rejected(
        grouped(),
        CollapseDims(FunctionRef("negative")),
        CollapseDims.Requires.PLAIN_CALLS,
        "in a group of fuse_ops",
    )


def test_calls_in_branches_and_loops_are_adapted():
    schedule = lowered(BRANCHES)
    schedule.collapse_dims(RELU)
    assert [b.rank for b in schedule.module.prim("relu").buffer_params] == [1, 1]
    assert all(same(schedule, X, np.array(p)) for p in (True, False))
    looped = lowered(LOOPED)
    looped.collapse_dims(RELU)
    assert same(looped, X)
    assert same(looped, X[:0])


def test_steps_see_the_bindings_of_loops():
    schedule = Schedule(parse(LOOPED))
    schedule.lower_graph(MAIN)
    names = [f.name for f in schedule.module.prims]
    assert "fused_relu_multiply_add" in names
    assert "relu" not in names
    assert same(schedule, X)
    assert same(schedule, X[:0])


def test_hoisting_splits_a_kernel_in_two():
    schedule = Schedule(parse(COPIED))
    made = schedule.hoist_block(schedule.get_block("turn", "turned"))
    assert made.function == "turned_t"
    assert len(schedule.module.graph().bindings) == 2
    assert same(schedule, X[0], X[1])


def test_a_hoisted_block_takes_symbols_of_other_arguments():
    text = """
n = symbols("n", lower=2)
m = symbols("m", lower=0, upper=9)

@prim_func
def part(x: Buffer[(n,), f32], w: Buffer[(m,), f32], y: Out[(m,), f32]):
    fact(m <= n, "the part", by="entry_check")
    t = alloc((n,), f32)
    for i in range(m):
        with block("t"):
            vi = spatial(n, i)
            t[vi] = x[vi] + 1.0
    for j in range(m):
        with block("y"):
            vj = spatial(j)
            y[vj] = t[vj] * w[vj]

@graph_func
def main(x: Tensor[(n,), f32], w: Tensor[(m,), f32]):
    y: Tensor[(m,), f32] = call_tir(part, x, w)
    return y
"""
    schedule = Schedule(parse(text))
    schedule.hoist_block(schedule.get_block("t", "part"))
    assert violations(schedule.module) == ()
    assert "def part_t(x: Buffer[(n,), f32], t: Out[(n,), f32], m: Int)" in str(schedule.module)
    for n, m in ((2, 0), (7, 1), (9, 9)):
        x, w = np.arange(n, dtype=np.float32), np.full(m, 2, np.float32)
        assert compile(schedule, "cpu")(x, w).tolist() == ((x[:m] + 1) * 2).tolist()


def test_requirements_of_hoist_block():
    schedule = Schedule(parse(COPIED))
    turn, both, last = (schedule.get_block(n, "turned") for n in ("turn", "both", "last"))
    rejected(
        schedule,
        HoistBlock(last),
        HoistBlock.Requires.WRITES_ONE_TEMPORARY,
        "expected exactly one temporary",
    )
    rejected(
        schedule,
        HoistBlock(both),
        HoistBlock.Requires.READS_INPUTS,
        "reads t; expected only inputs",
    )
    shared = schedule.branch()
    shared.compute_at(turn, shared.get_loops(both)[0])
    rejected(
        shared, HoistBlock(turn), HoistBlock.Requires.OWN_NEST, "is not in a top-level loop nest"
    )
    schedule.specialize(FunctionRef("turned"), symbol="n", lower=1, upper=1)
    rejected(schedule, HoistBlock(turn), HoistBlock.Requires.PLAIN_CALLS, "with versions")


def test_graph_steps_reject_kernels():
    schedule = lowered(CHAIN)
    message = "'relu' is a loop-level function; graph-level functions are main"
    rejected(schedule, Legalize(RELU), Legalize.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FoldConstants(RELU), FoldConstants.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, DeadCode(RELU), DeadCode.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, LiftTransforms(RELU), LiftTransforms.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FuseOps(RELU), FuseOps.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FuseTir(RELU), FuseTir.Requires.DATAFLOW_STAGE, message)
    rejected(
        schedule,
        CollapseDims(MAIN),
        CollapseDims.Requires.LOOP_LEVEL,
        "'main' is not a loop-level function",
    )


def test_graph_steps_reject_the_memory_stage():
    schedule = launched()
    message = "is in the memory stage; expected the dataflow stage"
    rejected(schedule, Legalize(MAIN), Legalize.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FoldConstants(MAIN), FoldConstants.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, DeadCode(MAIN), DeadCode.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, LiftTransforms(MAIN), LiftTransforms.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FuseOps(MAIN), FuseOps.Requires.DATAFLOW_STAGE, message)
    rejected(schedule, FuseTir(MAIN), FuseTir.Requires.DATAFLOW_STAGE, message)


def test_collapse_dims_rejects_a_scheduled_kernel():
    schedule = lowered(CHAIN)
    *_, last = schedule.get_loops(schedule.get_block("relu", "relu"))
    schedule.split(last, factors=(None, 4))
    rejected(
        schedule, CollapseDims(RELU), CollapseDims.Requires.UNSCHEDULED, "is already scheduled"
    )


def test_fuse_ops_rejects_a_group_of_one_call():
    schedule = lowered(CHAIN)
    rejected(
        schedule,
        FuseOps(MAIN, (binding(schedule, "u"),)),
        FuseOps.Requires.CALLS_OF_FUNCTIONS,
        "1 of the 1 chosen bindings call kernels",
    )


def test_fuse_ops_rejects_a_group():
    schedule = lowered(CHAIN)
    (group,) = schedule.fuse_ops(MAIN)
    message = f"{group.function!r} is a group of fuse_ops"
    rejected(schedule, FuseOps(group), FuseOps.Requires.NOT_A_GROUP, message)


def test_a_group_with_a_memory_plan_is_not_fused():
    schedule = lowered(CHAIN)
    (group,) = schedule.fuse_ops(MAIN)
    schedule.plan_memory(group)
    assert schedule.fuse_tir(MAIN) == ()
    schedule.default_schedule()
    assert same(schedule, X)


def test_a_program_with_nested_groups_compiles():
    text = """
n = symbols("n", lower=0)

@graph_func(primitive=True)
def inner(x: Tensor[(n, 8), f32]):
    u = negative(x)
    return u

@graph_func(primitive=True)
def outer(x: Tensor[(n, 8), f32]):
    v: Tensor[(n, 8), f32] = call(inner, x)
    w = exp(v)
    return w

@graph_func
def main(x: Tensor[(n, 8), f32]):
    y: Tensor[(n, 8), f32] = call(outer, x)
    z = relu(y)
    return z
"""
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_allclose(compile(parse(text))(x), np.exp(-x), rtol=1e-6)


def test_fuse_ops_rejects_paths_that_leave_the_group():
    schedule = lowered(CHAIN.replace("y = add(u, t)", "w = negative(u)\n    y = add(w, t)"))
    ends = (binding(schedule, "u"), binding(schedule, "y"))
    rejected(
        schedule,
        FuseOps(MAIN, ends),
        FuseOps.Requires.RESULTS_USED_INSIDE,
        "'u' is also used outside of the group, by w",
    )
    rejected(
        schedule,
        FuseOps(MAIN, ends),
        FuseOps.Requires.NO_REENTERING_PATH,
        "depends on the group through w",
    )


def test_requirements_of_fuse_tir():
    text = """
b, s = symbols("b s", lower=1)

@graph_func(primitive=True)
def group(x: Tensor[(b, s, 8), f32]):
    u = negative(x)
    v = relu(u)
    return v

@graph_func
def main(x: Tensor[(b, s, 8), f32]):
    y: Tensor[(b, s, 8), f32] = call(group, x)
    return y
"""
    schedule = Schedule(parse(text))
    problem = rejected(
        schedule,
        FuseTir(MAIN),
        FuseTir.Requires.CALLS_OF_KERNELS,
        "'u' in group 'group' is not a call of a kernel",
    )
    assert [f.title() for f in problem.fixes] == ["legalize(function=group)"]
    schedule.legalize(FunctionRef("group"))
    schedule.fuse_tir(MAIN)
    assert same(schedule, X)


def test_a_group_is_fused_by_its_caller():
    schedule = lowered(CHAIN)
    (group,) = schedule.fuse_ops(MAIN)
    problem = rejected(
        schedule,
        FuseTir(group),
        FuseTir.Requires.CALLER,
        f"{group.function!r} is a group of fuse_ops, which main calls",
    )
    assert [f.title() for f in problem.fixes] == ["fuse_tir(function=main)"]
    assert schedule.fuse_tir(MAIN)


@pytest.mark.parametrize("name", ["relu", "add"])
def test_a_fused_kernel_has_all_origins(name):
    schedule = lowered(CHAIN)
    origins = schedule.module.prim(name).origins
    assert origins
    schedule.fuse_ops(MAIN)
    (kernel,) = schedule.fuse_tir(MAIN)
    assert origins <= schedule.module.prim(kernel.function).origins


def test_fuse_tir_keeps_a_group_that_another_function_calls():
    module = parse("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    a = relu(x)
    y = negative(a)
    return y
""")
    schedule = Schedule(module)
    schedule.legalize()
    (group,) = schedule.fuse_ops()
    other = replace(schedule.module.graph("main"), name="other")
    schedule = Schedule(schedule.module.with_functions(other))
    (kernel,) = schedule.fuse_tir(MAIN)
    assert not violations(schedule.module)
    assert group.function in schedule.module.functions
    schedule.fuse_tir(FunctionRef("other"))
    assert not violations(schedule.module)
    assert group.function not in schedule.module.functions
    assert kernel.function in schedule.module.functions
    x = np.array([-1.0, 2.0], np.float32)
    for name in ("main", "other"):
        (found,) = run_graph(schedule.module, (x,), function=name)
        assert found.tolist() == [0.0, -2.0]
