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
