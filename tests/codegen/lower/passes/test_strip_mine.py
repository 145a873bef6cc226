"""Vectorized loops split into vectors of constant width."""

from __future__ import annotations

import pytest

from tests.codegen.lower.passes.running import (
    CPU,
    GPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "strip_mine"

DOUBLE = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(n, {extent}), {dtype}], y: Out[(n, {extent}), {dtype}]):
    for i in range(n):
        for j in {kind}({extent}):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + x[vi, vj]
"""
SYMBOLIC = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in vectorized(n):
        with block("double"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""


def of(extent, dtype="f32", kind="vectorized"):
    """Return a program with an inner loop over ``extent`` elements."""
    return DOUBLE.format(extent=extent, dtype=dtype, kind=kind)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SYMBOLIC, CPU))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 33])
def test_results(n):
    same_results(*both(NAME, SYMBOLIC, CPU), n=n)


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("f64", 4), ("f32", 8), ("f16", 16), ("i16", 16), ("i8", 32)]
)
def test_a_strip_is_one_register(dtype, lanes):
    _, second = both(NAME, of("n", dtype), CPU)
    assert f"for j_1 in vectorized({lanes}):" in text_of(second)


def test_a_strip_of_a_gpu_thread_is_its_widest_access():
    text = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(8, n), f32], y: Out[(8, n), f32]):
    for i in thread(8, "threadIdx.x"):
        for j in vectorized(n):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""
    first, second = both(NAME, text, GPU)
    assert "for j_1 in vectorized(4):" in text_of(second)
    same_results(first, second, n=6)


@pytest.mark.parametrize("extent", [1, 8, 128])
def test_a_short_loop_of_constant_extent_is_not_changed(extent):
    assert unchanged(NAME, of(extent), CPU)


@pytest.mark.parametrize(("extent", "guarded"), [(160, False), (1000, True)])
def test_a_long_loop_of_constant_extent_has_strips_of_four_registers(extent, guarded):
    first, second = both(NAME, of(extent), CPU)
    assert "for j_1 in vectorized(32):" in text_of(second)
    assert (f"if j * 32 + j_1 < {extent}:" in text_of(second)) == guarded
    same_results(first, second, n=1)


@pytest.mark.parametrize("kind", ["range", "parallel", "unrolled"])
def test_other_loops_are_not_changed(kind):
    assert unchanged(NAME, of("n", kind=kind), CPU)
