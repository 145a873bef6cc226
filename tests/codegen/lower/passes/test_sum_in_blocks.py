"""Partial sums of long reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright.codegen.lower.passes.sum_in_blocks import CONTRACTION_TERMS, SUM_TERMS
from tilewright.ir.script import parse
from tilewright.target.target import Target

from tests.codegen.lower.passes.running import (
    CPU,
    GPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "sum_in_blocks"

SUM = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def total(x: Buffer[(n,), f32], y: Out[(), f32]):
    acc = alloc((), f32, scope="local")
    with block("zero"):
        acc[()] = 0.0
    for k in range(n):
        with block("sum"):
            vk = reduce(k)
            acc[()] += x[vk]
    with block("out"):
        y[()] = acc[()]
"""

PRODUCT = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def product(x: Buffer[(n, 2), f32], w: Buffer[(n, 8), f32], y: Out[(2, 8), f32]):
    tile = alloc((2, 8), f32, scope="local")
    for i0 in unrolled(2):
        for j0 in vectorized(8):
            with block("zero"):
                v0, v1 = spatial(i0), spatial(j0)
                tile[v0, v1] = 0.0
    for k in range(n):
        for i in unrolled(2):
            for j in vectorized(8):
                with block("sum"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    tile[vi, vj] += x[vk, vi] * w[vk, vj]
    for i1 in unrolled(2):
        for j1 in vectorized(8):
            with block("out"):
                v2, v3 = spatial(i1), spatial(j1)
                y[v2, v3] = tile[v2, v3]
"""

PLANE = SUM.replace("(n,)", "(n, n)").replace(
    """        with block("sum"):
            vk = reduce(k)
            acc[()] += x[vk]""",
    """        for j in range(n):
            with block("sum"):
                vk, vj = reduce(k), reduce(j)
                acc[()] += x[vk, vj]""",
)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SUM, CPU) + comparison(NAME, PRODUCT, CPU))


@pytest.mark.parametrize("n", [0, 1, SUM_TERMS, SUM_TERMS + 1, 1100])
def test_results_of_sums(n):
    same_results(*both(NAME, SUM, CPU), n=n)


def test_each_thread_of_a_gpu_adds_in_blocks():
    text = SUM.replace("    for k in", '    for t in thread(1, "threadIdx.x"):\n      for k in')
    first, second = both(
        NAME, text.replace('        with block("sum', '        with block("sum'), GPU
    )
    assert "acc_block1" in text_of(second)
    same_results(first, second, n=100)


@pytest.mark.parametrize("n", [0, 1, 33, 40])
def test_results_of_nested_sums(n):
    first, second = both(NAME, PLANE, CPU)
    assert "acc_block" in text_of(second)
    same_results(first, second, n=n)


@pytest.mark.parametrize("extent", ["0", "n - 1 - n"])
@pytest.mark.parametrize("n", [1, 33])
def test_a_sum_with_an_inner_loop_without_iterations(extent, n):
    first, second = both(NAME, PLANE.replace("for j in range(n)", f"for j in range({extent})"), CPU)
    same_results(first, second, n=n)


@pytest.mark.parametrize("n", [0, 1, CONTRACTION_TERMS + 1])
def test_results_of_contractions(n):
    same_results(*both(NAME, PRODUCT, CPU), n=n)


def test_a_sum_of_constant_length_has_as_many_levels_as_it_needs():
    for count, levels in ((SUM_TERMS, 0), (SUM_TERMS + 1, 1), (SUM_TERMS**2 + 1, 2)):
        text = SUM.replace("range(n)", f"range({count})").replace("(n,)", f"({count},)")
        first, second = both(NAME, text, CPU)
        assert len(second.buffers) - len(first.buffers) == levels


def test_squares_are_not_a_contraction():
    second = both(NAME, SUM.replace("+= x[vk]", "+= x[vk] * x[vk]"), CPU)[1]
    assert f"n > {SUM_TERMS}" in text_of(second) or f"{SUM_TERMS} < n" in text_of(second)


UNCHANGED = {
    "visible accumulator": SUM.replace("acc[()] += x[vk]", "y[()] += x[vk]"),
    "global temporary": SUM.replace(', scope="local"', ""),
    "maximum": SUM.replace("acc[()] += x[vk]", "acc[()] = max(acc[()], x[vk])"),
    "integers": SUM.replace("f32", "i32").replace("0.0", "0"),
    "another store": SUM.replace("(n,), f32], y", "(n,), f32], z: Out[(n,), f32], y").replace(
        "            acc[()] += x[vk]",
        '            acc[()] += x[vk]\n        with block("z"):\n'
        "            vz = spatial(k)\n            z[vz] = x[vz]",
    ),
    "short": SUM.replace("range(n)", "range(32)").replace("(n,)", "(32,)"),
    "one element per term": SUM.replace("alloc(()", "alloc((n,)").replace("acc[()]", "acc[0]")
    .replace("acc[0] += x[vk]", "acc[vk] += x[vk]").replace("vk = reduce", "vk = spatial"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "limit"), [(SUM, SUM_TERMS), (PRODUCT, CONTRACTION_TERMS)])
def test_a_length_that_a_fact_bounds(text, limit):
    """The functions of a model state the ranges of their sizes."""
    short = text.replace("    ", f"    fact(n <= {limit})\n    ", 1)
    long = text.replace("    ", f"    fact(n <= {limit + 1})\n    ", 1)
    assert unchanged(NAME, short, CPU)
    assert not unchanged(NAME, long, CPU)


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_other_loops_are_not_changed(text):
    assert unchanged(NAME, text, CPU)


LANES = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def columns(x: Buffer[(n, 8), f32], y: Out[(8,), f32]):
    acc = alloc((8,), f32, scope="local")
    for j0 in vectorized(8):
        with block("zero"):
            v0 = spatial(j0)
            acc[v0] = 0.0
    for j in vectorized(8):
        for k in range(n):
            with block("sum"):
                vj, vk = spatial(j), reduce(k)
                acc[vj] += x[vk, vj]
    for j1 in vectorized(8):
        with block("out"):
            v1 = spatial(j1)
            y[v1] = acc[v1]
"""


@pytest.mark.parametrize("n", [1, 2, SUM_TERMS + 1, SUM_TERMS**2 + 1])
def test_each_lane_of_a_vectorized_loop_around_a_sum_has_its_own_partial_sum(n):
    """The interpreter runs the lanes one after the other, native code runs them at once."""
    first, second = both(NAME, LANES, CPU)
    assert 'acc_block1 = alloc((8,), f32, scope="local")' in text_of(second)
    same_results(first, second, n=n)
    x = np.random.default_rng(0).integers(-9, 9, (n, 8)).astype(np.float32)
    run: Any = tilewright.compile(parse(LANES), target=Target("cpu", threads=1))
    assert np.array_equal(np.asarray(run(x)), x.sum(axis=0))


def compiled(body: str, shape: str, result: str, threads: int = 2) -> Any:
    text = f"""
n = symbols("n", lower=0)
@graph_func
def main(x: Tensor[{shape}, f32]):
    y: Tensor[{result}, f32] = {body}
    return y
"""
    return tilewright.compile(parse(text), target=Target("cpu", threads=threads))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7, 123.456])
def test_many_equal_terms(value):
    x = np.full(10**7, value, np.float32)
    exact = float(np.float32(value))
    assert abs(compiled("sum(x)", "(n,)", "()")(x) / (exact * 1e7) - 1) < 1e-6
    assert abs(compiled("mean(x)", "(n,)", "()")(x) / exact - 1) < 1e-6
    columns = np.asarray(compiled("sum(x, axes=(0,))", "(n, 4)", "(4,)")(x.reshape(-1, 4)))
    assert np.abs(columns / (exact * 2.5e6) - 1).max() < 1e-6
    weights = np.asarray(compiled("softmax(x)", "(n,)", "(n,)")(x))
    assert abs(weights[0] * 1e7 - 1) < 1e-6


def test_a_hundred_million_equal_terms():
    text = """
@graph_func
def main(x: Tensor[(10000,), f32]):
    w: Tensor[(10000, 10000), f32] = broadcast_to(x, (10000, 10000))
    y: Tensor[(), f32] = sum(w)
    return y
"""
    run: Any = tilewright.compile(parse(text), target="cpu")
    for value in (0.1, 1 / 3, 123.456):
        exact = float(np.float32(value))
        assert abs(run(np.full(10**4, value, np.float32)) / (exact * 1e8) - 1) < 1e-6


@pytest.mark.parametrize("length", [CONTRACTION_TERMS, 100_000])
def test_the_error_of_equal_products(length):
    """The sum of equal terms has the largest error, because all roundings have the same sign."""
    text = f"""
@graph_func
def main(x: Tensor[(3, {length}), f32], w: Tensor[({length}, 20), f32]):
    y: Tensor[(3, 20), f32] = matmul(x, w)
    return y
"""
    run: Any = tilewright.compile(parse(text), target=Target("cpu", threads=1))
    for value in (0.1, 1 / 3, 0.7, 123.456):
        x = np.full((3, length), value, np.float32)
        exact = length * float(np.float32(value))
        found = np.asarray(run(x, np.ones((length, 20), np.float32)))
        assert np.abs(found / exact - 1).max() < 3e-5


def test_results_do_not_depend_on_the_number_of_threads():
    x = np.random.default_rng(3).normal(size=(70, 4001)).astype(np.float32)
    for body, result in (("sum(x, axes=(1,))", "(70,)"), ("sum(x)", "()"), ("mean(x, axes=(0,))",
                         "(n,)"), ("softmax(x)", "(70, n)")):  # fmt: skip
        found = [np.asarray(compiled(body, "(70, n)", result, t)(x)) for t in (1, 2, 7)]
        for other in found[1:]:
            np.testing.assert_array_equal(other.view(np.uint32), found[0].view(np.uint32))
