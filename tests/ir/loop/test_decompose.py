"""Decomposition of reduction blocks, including empty reduction domains."""

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.decompose import decomposed
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse

SUM = """
M, N = symbols("M, N", lower=0)

@prim_func
def total(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
    for i in range(M):
        for k in range(N):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""

OUTSIDE = SUM.replace(
    "for i in range(M):\n        for k in range(N):",
    "for k in range(N):\n        for i in range(M):",
)

FUSED = """
M = symbols("M", lower=0)

@prim_func
def total(x: Buffer[(M, 4), f32], y: Out[(M,), f32]):
    for f in range(M * 4):
        with block("sum"):
            vi, vk = spatial(M, f // 4), reduce(4, f % 4)
            with init(): y[vi] = 0.0
            y[vi] += x[vi, vk]
"""

GUARDED = """
M, N = symbols("M, N", lower=0)

@prim_func
def total(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
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

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8, 8), f32], y: Out[(8,), f32]):
    for k in range(8):
        for i in range(k + 1):
            with block("sum"):
                vi, vk = spatial(8, i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""


def the_function(text):
    return parse(text).prims[0]


@pytest.mark.parametrize("text", [SUM, OUTSIDE, FUSED, GUARDED])
def test_no_block_keeps_its_init(text):
    function = the_function(text)
    new = decomposed(function)
    assert all(s.init is None for s in walk(new.body) if isinstance(s, Block))
    assert decomposed(new) is new
    uids = [s.uid for s in walk(new.body) if hasattr(s, "uid")]
    assert len(uids) == len(set(uids))


def test_an_init_that_cannot_be_separated_is_kept():
    function = the_function(TRIANGLE)
    assert any(s.init is not None for s in walk(decomposed(function).body) if isinstance(s, Block))
    x = np.triu(np.ones((8, 8), np.float32))
    (y,) = call_prim(function, [x])
    assert y.shape == (8,)


@pytest.mark.parametrize("text", [SUM, OUTSIDE, GUARDED])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (5, 7)])
def test_an_empty_sum_is_zero(text, shape):
    function = the_function(text)
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    (y,) = call_prim(function, [x])
    np.testing.assert_array_equal(y, x.sum(axis=1))


@pytest.mark.parametrize("text", [SUM, OUTSIDE, GUARDED])
def test_an_empty_sum_is_zero_compiled(text):
    exe = compile(parse(text))
    for shape in [(3, 0), (5, 7)]:
        x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(exe["total"](x), x.sum(axis=1))


BRANCHES = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(6, n), f32], y: InOut[(6,), f32]):
    for i in range(6):
        if i < 4:
            for k in range(n):
                if k >= 2:
                    with block("then"):
                        vi, vk = spatial(6, i), reduce(n, k)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
        else:
            for k2 in range(n):
                if i == 5 and k2 == 1:
                    y[0] = y[0]
                else:
                    with block("otherwise"):
                        wi, wk = spatial(6, i), reduce(n, k2)
                        with init(): y[wi] = 10.0
                        y[wi] += x[wi, wk]
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_branches_on_the_reduction_do_not_keep_the_init_from_running(n):
    x = np.arange(6 * n, dtype=np.float32).reshape(6, n)
    y = np.full(6, 7.0, np.float32)
    (y,) = call_prim(parse(BRANCHES).prims[0], [x, y])
    want = [*x[:4, 2:].sum(1), 10 + x[4].sum(), 10 + x[5].sum() - (x[5, 1] if n > 1 else 0)]
    np.testing.assert_array_equal(y, np.asarray(want, np.float32))


POLYNOMIALS = """
@prim_func
def f(a: Buffer[(7,), f32], b: Buffer[(3,), f32], y: Out[(9,), f32]):
    for {first} in range({m}):
        for {second} in range({n}):
            with block("sum"):
                vi, vk = spatial(9, i + k), reduce(3, k)
                with init(): y[vi] = 0.0
                y[vi] += a[vi - vk] * b[vk]
"""


@pytest.mark.parametrize("order", [("i", 7, "k", 3), ("k", 3, "i", 7)])
def test_results_with_terms_in_several_iterations_are_initialized_before_all_of_them(order):
    first, m, second, n = order
    text = POLYNOMIALS.format(first=first, m=m, second=second, n=n)
    a, b = np.arange(1, 8, dtype=np.float32), np.asarray([1, 10, 100], np.float32)
    (y,) = call_prim(parse(text).prims[0], [a, b])
    np.testing.assert_array_equal(y, np.convolve(a, b))
