"""Tests of specialize: accepted calls can choose the version."""

import numpy as np
import pytest

from tilewright.ir.graph.nodes import CallTIR, IfElse
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.graph.fuse_tir import FuseTir
from tilewright.schedules.primitives.specialize.specialize import Specialize

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


def test_requirements_of_specialize():
    schedule = lowered(CHAIN)
    rejected(
        schedule,
        Specialize(MAIN, "b", 1, 1),
        Specialize.Requires.LOOP_LEVEL,
        "not a loop-level function",
    )
    rejected(
        schedule,
        Specialize(RELU, "q", 1, 1),
        Specialize.Requires.SYMBOL_EXISTS,
        "no symbol 'q'; symbols of 'relu' are b, s",
    )
    rejected(
        schedule, Specialize(RELU, "b", 0, 0), Specialize.Requires.PROPER_RANGE, "no value of 'b'"
    )
    rejected(
        schedule,
        Specialize(RELU, "b", 1, None),
        Specialize.Requires.PROPER_RANGE,
        "includes every value of 'b'",
    )


def test_calls_that_cannot_choose_are_rejected():
    rejected(
        launched(),
        Specialize(RELU, "b", 1, 1),
        Specialize.Requires.CHOOSING_CALLS,
        "'run_relu' in 'main' launches 'relu'",
    )
    rejected(
        grouped(),
        Specialize(FunctionRef("add"), "b", 1, 1),
        Specialize.Requires.CHOOSING_CALLS,
        "in a group of fuse_ops",
    )
    schedule, version = with_version()
    rejected(
        schedule,
        Specialize(version, "s", 1, 1),
        Specialize.Requires.CHOOSING_CALLS,
        "as a version of another kernel",
    )


def test_calls_in_branches_choose():
    schedule = lowered(BRANCHES)
    relu = schedule.specialize(RELU, symbol="b", lower=2, upper=2)
    multiply = schedule.specialize(MULTIPLY, symbol="s", lower=3, upper=3)
    bindings = {b.value.name: b.right for b in schedule.module.graph().bindings}
    assert versions_of(bindings["r"]) == [relu.function]
    branches = next(r for r in bindings.values() if isinstance(r, IfElse))
    inner = [b.right for x in (branches.then, branches.otherwise) for b in x.bindings]
    calls = {r.function: versions_of(r) for r in inner if isinstance(r, CallTIR)}
    assert calls == {"relu": [relu.function], "multiply": [multiply.function]}
    for flag in (True, False):
        assert same(schedule, X, np.array(flag))
        assert same(schedule, X[:1, :2], np.array(flag))


def test_fuse_ops_skips_calls_with_versions():
    schedule, version = with_version()
    t, u = (binding(schedule, name) for name in "tu")
    rejected(
        schedule,
        FuseOps(MAIN, (t, u)),
        FuseOps.Requires.NO_VERSIONS,
        f"'t' has versions: {version.function}",
    )
    schedule.fuse_ops(MAIN)
    schedule.fuse_tir(MAIN)
    calls = {b.right.function: versions_of(b.right) for b in schedule.module.graph().bindings}
    assert calls == {"relu": [version.function], "fused_negative_add": []}
    assert same(schedule, X)


def test_fuse_tir_rejects_calls_with_versions():
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
    version = schedule.specialize(FunctionRef("one"), symbol="n", lower=1, upper=1)
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
        start,
        FuseTir(MAIN),
        FuseTir.Requires.NO_VERSIONS,
        f"'t' in group 'group' has versions: {version.function}",
    )


REACH = """
k, n = symbols("k n", lower=1)

@prim_func
def total(k: Int, n: Int, x: Buffer[(n + 2, k + 3), f32], y: InOut[(n + 2,), f32]):
    for i in range(n):
        for r in range(k):
            with block("y"):
                vi, vk = spatial(n + 2, i), reduce(k + 3, r)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""


def test_a_version_for_a_range_of_an_integer_parameter_keeps_the_parameter():
    sch = Schedule(parse(REACH))
    version = sch.specialize("total", symbol="n", upper=3)
    assert violations(sch.module) == ()
    assert [v.name for v in sch.module.prim(version.function).scalar_params] == ["k", "n"]
    fixed = sch.specialize("total", symbol="k", lower=4, upper=4)
    assert [v.name for v in sch.module.prim(fixed.function).scalar_params] == ["n"]


def test_a_version_without_values_that_satisfy_the_facts_is_rejected():
    sch = Schedule(parse(REACH))
    sch.assume("total", symbol="n", multiple_of=4)
    rejected(
        sch,
        Specialize(FunctionRef("total"), "n", 1, 1),
        Specialize.Requires.PROPER_RANGE,
        "no value for which n % 4 == 0 holds",
    )


def test_a_version_whose_facts_contradict_each_other_is_rejected():
    sch = Schedule(parse(REACH.replace("lower=1", "lower=0")))
    sch.assume("total", symbol="n", multiple_of=4)
    sch.assume("total", symbol="n", lower=2)
    rejected(
        sch,
        Specialize(FunctionRef("total"), "n", upper=3),
        Specialize.Requires.PROPER_RANGE,
        "no value for which n >= 2 holds (assumed: n >= 2): in the version, it contradicts n == 0",
    )
    version = sch.specialize("total", symbol="n", upper=7)
    assert parse(to_text(sch.module)).prim(version.function).facts.consistent


FUSED = """
n, k = symbols("n k", lower=0)

@prim_func(scheduled=True)
def copy(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    for a in thread(ceildiv(n * k, 256), "blockIdx.x"):
        for b in thread(256, "threadIdx.x"):
            with block("y"):
                vi, vj = spatial(n, (a * 256 + b) // k), spatial(k, (a * 256 + b) % k)
                guard(a * 256 + b < n * k and (a * 256 + b) % k % 2 == 0)
                y[vi, vj] = x[vi, vj]
"""


def test_a_symbol_of_a_single_value_is_a_constant_of_the_version():
    sch = Schedule(parse(FUSED))
    name = sch.specialize("copy", symbol="k", upper=0).function
    version = sch.module.prim(name)
    assert version.buffer_params[0].shape[1] == 0
    assert violations(sch.module) == ()
    assert violations(parse(to_text(sch.module))) == ()


def test_a_version_keeps_the_divisor_of_its_symbol():
    sch = Schedule(parse(REACH.replace("lower=1", "lower=1, multiple_of=4")))
    name = sch.specialize("total", symbol="n", multiple_of=6).function
    (n,) = [v for v in sch.module.prim(name).scalar_params if v.name == "n"]
    assert n.multiple_of == 12


EMPTY = """
n, k = symbols("n k", lower=0)

@prim_func
def copy(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    for i in range(n):
        for j in range(k):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
"""


def fuse_loops(sch, block):
    sch.parallel(sch.split(sch.fuse(*sch.get_loops(block)), (None, 16))[0])


def split_loops(sch, block):
    for loop in sch.get_loops(block):
        sch.split(loop, (None, 4))


def restrict_by_a_version(sch):
    return sch.specialize("copy", symbol="k", upper=0).function


def restrict_by_a_fact(sch):
    sch.assume("copy", symbol="k", upper=0)
    return "copy"


@pytest.mark.parametrize("transform", [fuse_loops, split_loops])
@pytest.mark.parametrize("restrict", [restrict_by_a_version, restrict_by_a_fact])
@pytest.mark.parametrize("first", [True, False])
def test_loops_without_iterations_can_be_transformed(transform, restrict, first):
    sch = Schedule(parse(EMPTY))
    if first:
        name = restrict(sch)
        transform(sch, sch.get_block("y", function=name))
    else:
        transform(sch, sch.get_block("y"))
        restrict(sch)
    assert violations(sch.module) == ()
    assert violations(parse(to_text(sch.module))) == ()


QUOTIENT = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(4, n), i32], z: InOut[(5,), i32]):
    for q in range(n * 4):
        with block("z"):
            vi, vr = spatial(5, q // 4), reduce(4, q % 4)
            with init():
                z[vi] = 5
            z[vi] += x[vr, 0]
"""


@pytest.mark.parametrize("upper", [0, 1])
def test_a_loop_without_iterations_still_keeps_the_init_of_a_constant_result_from_running(upper):
    sch = Schedule(parse(QUOTIENT))
    name = sch.specialize("f", symbol="n", upper=upper).function
    text = str(sch.module).partition(name)[2]
    assert "spatial(5, 0)" in text
    for n in range(upper + 1):
        x, z = np.ones((4, n), np.int32), np.full(5, 7, np.int32)
        expected = call_prim(sch.module.prim("f"), (x, z.copy()))[-1]
        assert call_prim(sch.module.prim(name), (x, z.copy()))[-1].tolist() == expected.tolist()


@pytest.mark.parametrize("upper", [0, 1])
def test_a_loop_that_no_longer_iterates_the_reduction_does_not_repeat_the_init(upper):
    sch = Schedule(parse(QUOTIENT.replace("q // 4), reduce(4, q % 4)", "1), reduce(n, q // 4)")))
    name = sch.specialize("f", symbol="n", upper=upper).function
    for n in range(upper + 1):
        x, z = np.ones((4, n), np.int32), np.full(5, 7, np.int32)
        expected = call_prim(sch.module.prim("f"), (x, z.copy()))[-1]
        assert call_prim(sch.module.prim(name), (x, z.copy()))[-1].tolist() == expected.tolist()
