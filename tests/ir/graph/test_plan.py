"""Memory planning: tensors with disjoint live ranges share storage."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import MalformedProgramError
from tilewright.ir.dtype import DType, f32, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import (
    AllocStorage,
    CallTIR,
    GraphFunc,
    Kill,
    LaunchKernel,
    MakeTuple,
    TensorInfo,
    TupleInfo,
    Value,
    ViewTensor,
)
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Cast
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import Expr, as_expr, var
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule

from tests.ir.graph.state_programs import PROGRAMS


def tensor(*dims: Expr | int, dtype: DType = f32) -> TensorInfo:
    return TensorInfo(tuple(as_expr(d) for d in dims), dtype)


def copy(name: str, source: DType = f32, target: DType = f32) -> object:
    n, b = var("n"), Builder(name)
    x, y = b.param("x", (n,), source), b.param("y", (n,), target, "out")
    b.compute(y, lambda i: Cast(target, b.load(x, i)))
    return b.finish()


def module(*functions: object) -> Module:
    return Module().with_functions(*functions)  # type: ignore[arg-type]


def chain(infos: list[TensorInfo], kernels: list[str]) -> GraphFunc:
    g = GraphBuilder("main")
    value = g.param("x", infos[0])
    for k, (info, kernel) in enumerate(zip(infos[1:], kernels, strict=True)):
        value = g.bind(f"h{k}", info, CallTIR(kernel, (value,), (info,)))
    return g.finish((value,))


def rights(func: GraphFunc, kind: type) -> list[object]:
    return [b.right for b in func.bindings if isinstance(b.right, kind)]


def test_a_chain_of_equal_tensors_needs_two_storages_and_the_result() -> None:
    n = var("n")
    planned = plan_memory(module(copy("same")), chain([tensor(n)] * 7, ["same"] * 6))
    assert planned.stage == "memory"
    assert len(rights(planned, LaunchKernel)) == 6
    assert len(rights(planned, AllocStorage)) == 3
    kills = [r.value.name for r in rights(planned, Kill) if isinstance(r, Kill)]
    assert kills == ["h1_storage", "h0_storage"]


def test_storages_are_shared_across_dtypes() -> None:
    n, g = var("n"), GraphBuilder("main")
    wide = tensor(2 * n)
    a = g.param("a", wide)
    long = tensor(n, dtype=i64)
    h0 = g.bind("h0", wide, CallTIR("same", (a,), (wide,)))
    h1 = g.bind("h1", wide, CallTIR("same", (h0,), (wide,)))
    h2 = g.bind("h2", long, CallTIR("halve", (h1,), (long,)))
    out = g.bind("out", wide, CallTIR("double", (h2,), (wide,)))
    m, b = var("m"), Builder("halve")
    x, y = b.param("x", (2 * m,), f32), b.param("y", (m,), i64, "out")
    b.compute(y, lambda i: Cast(i64, b.load(x, i)))
    k, c = var("k"), Builder("double")
    p, q = c.param("x", (k,), i64), c.param("y", (2 * k,), f32, "out")
    c.compute(q, lambda i: Cast(f32, c.load(p, i // 2)))
    planned = plan_memory(module(copy("same"), b.finish(), c.finish()), g.finish((out,)))
    assert len(rights(planned, AllocStorage)) == 3


def test_a_storage_is_reused_if_its_size_is_proved_sufficient_and_not_excessive() -> None:
    n = var("n", lower=4)

    def storages(*sizes: Expr | int) -> int:
        infos = [tensor(s) for s in (n, *sizes, n)]
        func = chain(infos, ["same"] * (len(sizes) + 1))
        return len(rights(plan_memory(module(copy("same")), func), AllocStorage))

    assert storages(n, n, n - 1) == 3
    assert storages(n, n, 3 * n) == 4
    assert storages(3 * n, n, n - 1) == 4
    assert storages(n, n, var("m")) == 4


def test_tuples_and_views_use_the_original_storage() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(2 * n))
    h = g.bind("h", tensor(2 * n), CallTIR("same", (x,), (tensor(2 * n),)))
    flat = g.emit("reshape", h, (n, 2))
    pair = g.bind("pair", TupleInfo((tensor(n, 2), tensor(2 * n))), MakeTuple((flat, x)))
    again = g.emit("reshape", g.item(pair, 0), (2 * n,))
    out = g.bind("out", tensor(2 * n), CallTIR("same", (again,), (tensor(2 * n),)))
    planned = plan_memory(module(copy("same")), g.finish((out,)))
    launches = [r for r in rights(planned, LaunchKernel) if isinstance(r, LaunchKernel)]
    views = {b.value: b.right for b in planned.bindings if isinstance(b.right, ViewTensor)}
    source = launches[1].args[0]
    while isinstance(source, Value) and source in views:
        source = views[source].storage
    assert isinstance(source, Value)
    assert source.name == "h_storage"
    killed = [b.right.value.name for b in planned.bindings if isinstance(b.right, Kill)]
    assert killed == ["h_storage"]


def test_planning_twice_changes_nothing() -> None:
    n = var("n")
    planned = plan_memory(module(copy("same")), chain([tensor(n)] * 3, ["same"] * 2))
    assert plan_memory(module(copy("same")), planned) is planned


def test_operators_that_are_not_lowered_are_rejected() -> None:
    n, g = var("n"), GraphBuilder("main")
    y = g.emit("exp", g.param("x", tensor(n)))
    with pytest.raises(MalformedProgramError, match="operator 'exp' is not lowered"):
        plan_memory(module(), g.finish((y,)))


def test_calls_that_do_not_match_their_callee_are_rejected() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    y = g.bind("y", tensor(n), CallTIR("same", (x, x), (tensor(n),)))
    with pytest.raises(MalformedProgramError, match="2 arguments and 1 outputs do not match"):
        plan_memory(module(copy("same")), g.finish((y,)))


def test_a_function_that_was_planned_before_its_caller_writes_copies() -> None:
    program = parse(PROGRAMS["a called function"])
    planned = program.with_functions(plan_memory(program, program.graph("step")))
    both = planned.with_functions(plan_memory(planned, planned.graph()))
    assert "its function was planned before its caller" in str(both.graph())
    for k in range(2):
        old, new = np.full(8, k, np.float32), np.full(8, k, np.float32)
        x = np.arange(8, dtype=np.float32)
        (a,), (b,) = run_graph(program, [old, x]), run_graph(both, [new, x])
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(old, new)


MEASURED = """
    t = unique(x)
    a = t[0]
    y = match_cast(a, Tensor[(z,), f32])
    s = sum(y, axes=(0,))
    return s
"""

REPEATED = """
    @loop(z, count=3)
    def y(c: Tensor[(n,), f32] = x):
        i = shape_to_tensor((z,))
        f = cast(i, dtype="f32")
        d = add(c, f)
        return d
    s = sum(y, axes=(0,))
    return s
"""


@pytest.mark.parametrize("body", [MEASURED, REPEATED], ids=["a match_cast", "a loop"])
def test_an_inlined_function_has_symbols_and_facts_of_its_own(body) -> None:
    module = parse(f"""
n, z = symbols("n z", lower=0)

@graph_func
def inner(x: Tensor[(n,), f32]):{body}
@graph_func
def main(x: Tensor[(n,), f32]):
    u: Tensor[(), f32] = call(inner, x)
    v: Tensor[(), f32] = call(inner, x)
    y = add(u, v)
    return y
""")
    sch = Schedule(module)
    sch.default_schedule()
    assert violations(sch.module) == ()
    assert to_text(parse(to_text(sch.module))) == to_text(sch.module)
    x = np.array([1, 2, 2], np.float32)
    np.testing.assert_array_equal(run_graph(sch.module, [x]), run_graph(module, [x]))
