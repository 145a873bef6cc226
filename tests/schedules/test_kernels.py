"""Tests of kernels: equal functions are added once, and versions for constant symbols."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nodes import Block, For, Store
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Module
from tilewright.ir.script import module, parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, kernels
from tilewright.schedules.kernels import (
    KernelTable,
    add_origins,
    specialization_problems,
    symbols_of,
    with_symbols,
)

COPY = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
"""


def test_equal_functions_are_added_once_with_the_origins_of_all():
    function = parse(COPY).prim("f")
    table = KernelTable(Module())
    names = [table.add(add_origins(function, frozenset({f"layer{k}"}))) for k in range(3)]
    other = parse(COPY.replace("x[vi]\n", "x[vi] + 1.0\n")).prim("f")
    assert names == ["f"] * 3
    assert table.add(other) == "f_1"
    module = table.module()
    assert list(module.functions) == ["f", "f_1"]
    expected = {"layer0", "layer1", "layer2"}
    assert module.prim("f").origins == expected
    for statement in walk(module.prim("f").body):
        if isinstance(statement, For | Block | Store):
            assert statement.origins == expected


def test_functions_of_the_module_get_the_origins_of_equal_ones():
    function = parse(COPY).prim("f")
    table = KernelTable(Module().with_functions(function))
    assert table.add(add_origins(replace(function, name="g"), frozenset({"layer"}))) == "f"
    assert table.module().prim("f").origins == {"layer"}


def test_without_new_origins_the_function_is_kept():
    function = parse(COPY).prim("f")
    table = KernelTable(Module().with_functions(function))
    table.add(replace(function, name="g"))
    assert table.module().prim("f") is function


def test_origins_are_united_once_per_kernel(monkeypatch):
    calls: list[int] = []
    merge = kernels.merge_origins
    monkeypatch.setattr(
        kernels, "merge_origins", lambda parts: (calls.append(len(parts)), merge(parts))[1]
    )
    function = parse(COPY).prim("f")
    table = KernelTable(Module())
    for k in range(200):
        table.add(add_origins(function, frozenset({f"layer{k}"})))
    table.module()
    assert sum(calls) <= 200 * 4


def version_of(text, **values):
    """Return the version of the last function for constant symbols, and the problems."""
    func = parse(text).prims[-1]
    terms = {v: values[v.name] for v in symbols_of(func) if v.name in values}
    problems = specialization_problems(func, terms)
    if problems:
        return None, problems
    version = with_symbols(func, "version", terms)
    again = parse(to_text(module(version))).prims[0]
    assert to_text(module(again)) == to_text(module(version))
    assert not violations(again)
    return again, ()


FUSED = """
n, k = symbols("n, k", lower=0)

@prim_func
def f(x: Buffer[(n, k), f32], y: InOut[(n, k), f32]):
    for p in range(max(0, n - 4) * max(0, k - 4)):
        with block("y"):
            vi, vj = spatial(n - 4, p // max(0, k - 4)), spatial(k - 4, p % max(0, k - 4))
            y[vi, vj] = max(x[vi, vj], x[vi + 4, vj])
"""


@pytest.mark.parametrize("k", [0, 1, 4, 5, 7])
def test_a_version_with_an_empty_loop_does_not_divide_by_zero(k):
    version, _ = version_of(FUSED, k=k)
    x = np.arange(6 * k, dtype=np.float32).reshape(6, k)
    y = np.full((6, k), 7, np.float32)
    (expected,) = call_prim(parse(FUSED).prims[0], [x, y.copy()])
    np.testing.assert_array_equal(call_prim(version, [x, y.copy()])[0], expected)
    np.testing.assert_array_equal(compile(module(version))(x, y.copy()), expected)


TERMS = """
M, N, L = symbols("M, N, L", lower=0)

@prim_func
def f(x: Buffer[(M, N, L), f32], y: Out[(M,), f32]):
    for i in range(M):
        for p in range(N * L):
            with block("sum"):
                vi, vk, vl = spatial(i), reduce(N, p // L), reduce(L, p % L)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk, vl]
"""

AS_GUARD = """
M, N = symbols("M, N", lower=0)

@prim_func
def f(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
    for i0 in range(ceildiv(M, 4)):
        for k0 in range(ceildiv(N, 4)):
            for i1 in range(4):
                for k1 in range(4):
                    with block("sum"):
                        vi, vk = spatial(M, i0 * 4 + i1), reduce(N, k0 * 4 + k1)
                        guard(i0 * 4 + i1 < M and k0 * 4 + k1 < N)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
"""
AS_BRANCH = """
M, N = symbols("M, N", lower=0)

@prim_func
def f(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
    for i0 in range(ceildiv(M, 4)):
        for k0 in range(ceildiv(N, 4)):
            for i1 in range(4):
                for k1 in range(4):
                    if i0 * 4 + i1 < M and k0 * 4 + k1 < N:
                        with block("sum"):
                            vi, vk = spatial(M, i0 * 4 + i1), reduce(N, k0 * 4 + k1)
                            with init(): y[vi] = 0.0
                            y[vi] += x[vi, vk]
"""


@pytest.mark.parametrize("text", [AS_GUARD, AS_BRANCH])
def test_a_version_without_terms_of_a_reduction_keeps_the_init(text):
    version, _ = version_of(text, N=0)
    for m in (0, 1, 3, 6):
        x = np.zeros((m, 0), np.float32)
        np.testing.assert_array_equal(call_prim(version, [x])[0], np.zeros(m))
        np.testing.assert_array_equal(compile(module(version))(x), np.zeros(m))


def test_a_version_with_an_empty_fused_reduction_keeps_the_init():
    version, _ = version_of(TERMS, L=0)
    x = np.zeros((3, 2, 0), np.float32)
    np.testing.assert_array_equal(call_prim(version, [x])[0], np.zeros(3))
    np.testing.assert_array_equal(compile(module(version))(x), np.zeros(3))


def test_a_version_keeps_the_loop_of_an_empty_reduction():
    text = TERMS.replace("[vi, vk,", "[vi, 0,").replace("vi, vk, vl =", "vi, vl =")
    func = parse(text.replace("reduce(N, p // L), ", ""), check=False).prims[0]
    (symbol,) = [v for v in symbols_of(func) if v.name == "L"]
    version = with_symbols(func, "version", {symbol: 0})
    x = np.zeros((3, 2, 0), np.float32)
    np.testing.assert_array_equal(call_prim(version, [x])[0], np.zeros(3))


@pytest.mark.parametrize("text", [AS_GUARD, AS_BRANCH])
def test_a_version_whose_constant_condition_would_skip_the_init_is_rejected(text):
    _, (problem,) = version_of(text.replace("ceildiv(N, 4)", "ceildiv(N, 4) + 1"), N=0)
    assert "excludes all terms of the reduction of block 'sum'" in problem
    assert "decompose_reduction" in problem


def test_a_version_that_divides_by_zero_is_rejected():
    text = """
m, n = symbols("m, n", lower=0)

@prim_func
def f(x: Buffer[(m,), f32], y: Out[(m,), f32]):
    for i in range(m // n):
        with block("y"):
            vi = spatial(m, i)
            y[vi] = x[vi]
"""
    func = parse(text, check=False).prims[0]
    (n,) = [v for v in symbols_of(func) if v.name == "n"]
    (problem,) = specialization_problems(func, {n: 0})
    assert problem.endswith("divides by 0")
    assert specialization_problems(func, {n: 1}) == ()


def test_a_new_symbol_does_not_have_the_name_of_a_loop():
    sch = Schedule(
        parse("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 1, 4), f32], w: Tensor[(1, 1, 2), f32]):
    a = pad(x, (1, 0, 0), (0, 0, 0))
    b = conv(a, w)
    return b
""")
    )
    sch.legalize()
    assert "n_1" in {s.var.name for s in walk(sch.module.prim("conv").body) if isinstance(s, For)}
    assert violations(sch.module) == ()
    assert to_text(parse(to_text(sch.module))) == to_text(sch.module)
