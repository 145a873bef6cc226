"""Tests of versions of kernels: replaced symbols change no result, in particular no init."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import module, parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.kernels import symbols_of
from tilewright.schedules.substitution import specialization_problems, with_kept_inits, with_symbols


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
def test_a_constant_condition_on_the_reduction_keeps_the_init(text):
    """The version has a loop around a condition that is false, and the init is separate."""
    version, _ = version_of(text.replace("ceildiv(N, 4)", "ceildiv(N, 4) + 1"), N=0)
    for m in (0, 1, 3, 6):
        x = np.zeros((m, 0), np.float32)
        np.testing.assert_array_equal(call_prim(version, [x])[0], np.zeros(m))
        np.testing.assert_array_equal(compile(module(version))(x), np.zeros(m))


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


CONDITIONS = {
    "becomes one on results": "2 * i + r < 2 * m",
    "is false": "r + 3 < k",
    "is true": "r < k + m",
    "of a band": "i + r >= 1 and i + r < n + 1",
    "with a product": "r * k < k - 2",
}
ROWS = """
n, k, m = symbols("n k m", lower=0)

@prim_func
def scaled(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    for i in range(n):
        for j in range(k):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0

@prim_func
def rows(m: Int, x: Buffer[(n, k), f32], y: Out[(n,), f32]):
    for i in range(n):
        for r in range(k):
            with block("y"):
                vi, vr = spatial(i), reduce(k, r)
                guard(CONDITION)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vr]

@graph_func
def main(s: Tensor[(m,), f32], x: Tensor[(n, SIZE), f32]):
    t: Tensor[(n, SIZE), f32] = call_tir(scaled, x)
    y: Tensor[(n,), f32] = call_tir(rows, t, scalars=(m,))
    return y
"""


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_kernels_that_are_fused_for_constant_sizes_keep_their_inits(condition, size):
    text = ROWS.replace("CONDITION", condition).replace("SIZE", str(size))
    source = parse(text)
    sch = Schedule(source)
    sch.fuse_ops()
    (fused,) = sch.fuse_tir()
    compiled = compile(source)
    for n, m in product((0, 1, 4), (0, 1, 2)):
        x = np.arange(n * size, dtype=np.float32).reshape(n, size) + 1
        (expected,) = call_prim(source.prim("rows"), [x * 2], {"m": m})
        scalars = {v.name: m for v in sch.module.prim(fused.function).scalar_params}
        (found,) = call_prim(sch.module.prim(fused.function), [x], scalars)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(compiled(np.ones(m, np.float32), x), expected)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_a_version_keeps_inits_that_do_not_depend_on_conditions(condition, size):
    func = parse(ROWS.replace("CONDITION", condition).replace("SIZE", "k")).prim("rows")
    (k,) = [v for v in symbols_of(func) if v.name == "k"]
    version = with_symbols(func, "version", {k: size})
    for n, m in product((0, 1, 4), (0, 1, 2)):
        x = np.arange(n * size, dtype=np.float32).reshape(n, size) + 1
        (expected,) = call_prim(func, [x], {"m": m})
        np.testing.assert_array_equal(call_prim(version, [x], {"m": m})[0], expected)


def test_an_init_that_does_not_change_stays_in_its_block():
    func = parse(ROWS.replace("CONDITION", "r <= i").replace("SIZE", "k")).prim("rows")
    for symbol in symbols_of(func):
        assert with_kept_inits(func, {symbol: 3}) is func
        assert with_kept_inits(func, {symbol: symbol}) is func
    version = with_symbols(func, "version", {v: 1 for v in symbols_of(func) if v.name == "k"})
    assert [s.name for s in walk(version.body) if isinstance(s, Block)] == ["y_init", "y"]


FLAT = """
n, k = symbols("n k", lower=0)

@prim_func
def flat(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    for p in range(n * k):
        with block("y"):
            vi, vj = spatial(n, p // k), spatial(k, p % k)
            y[vi, vj] = x[vi, vj] + 1.0

@prim_func
def nested(x: Buffer[(n, k), f32], y: Out[(n, k), f32]):
    for i in range(n):
        for j in range(k):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0

@graph_func
def main(x: Tensor[(n, SIZE), f32]):
    t: Tensor[(n, SIZE), f32] = call_tir(flat, x)
    y: Tensor[(n, SIZE), f32] = call_tir(nested, t)
    return y
"""


@pytest.mark.parametrize("size", [0, 1, 3])
def test_kernels_that_are_fused_for_an_empty_dimension_do_not_divide_by_zero(size):
    sch = Schedule(parse(FLAT.replace("SIZE", str(size))))
    sch.fuse_ops(bindings=("t", "y"))
    sch.fuse_tir()
    assert violations(sch.module) == ()
    run = compile(sch.module)
    for n in (0, 2):
        x = np.ones((n, size), np.float32)
        np.testing.assert_array_equal(run(x), (x + 1) * 2)
