"""Reductions over threads: partial results per thread, then one combine step."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.errors import KernelStatementError
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse

from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    rejected,
    same_results,
    text_of,
    unchanged,
)
from tests.codegen.simt.launching import Launcher

NAME = "combine_cross_thread_reductions"

SUMS = """
n = symbols("n", lower=1)

@prim_func
def sums(x: Buffer[(n, 64), i32], y: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        for k in thread(64, "threadIdx.x"):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
TAIL = """
m, n = symbols("m n", lower=1)

@prim_func
def largest(x: Buffer[(m, n), i32], y: Out[(m,), i32]):
    for i in thread(m, "blockIdx.x"):
        for k0 in range(ceildiv(n, 8)):
            for k1 in thread(8, "threadIdx.x"):
                with block("largest"):
                    vi, vk = spatial(i), reduce(n, k0 * 8 + k1)
                    guard(k0 * 8 + k1 < n)
                    with init(): y[vi] = -7
                    y[vi] = max(y[vi], x[vi, vk])
"""
"""Several elements per thread, a tail, and an init that is not the identity of max."""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SUMS, GPU))


@pytest.mark.parametrize("n", [1, 3])
def test_results(n):
    same_results(*both(NAME, SUMS, GPU), n=n)


@pytest.mark.parametrize("n", [1, 8, 13])
def test_a_tail(n):
    same_results(*both(NAME, TAIL, GPU), m=2, n=n)


def test_an_init_that_is_not_the_identity_counts_once():
    first, second = both(NAME, SUMS.replace("= 0", "= 7"), GPU)
    assert "y[i] = 7 + y_part[i]" in text_of(second)
    same_results(first, second, n=2)


def test_the_annotation_names_operation_buffer_and_axes():
    text = SUMS.replace("64", "8").replace(
        "for k in thread(8", 'for j in thread(4, "threadIdx.y"):\n         for k in thread(8'
    )
    text = text.replace("(n, 8)", "(n, 32)").replace("reduce(k)", "reduce(32, j * 8 + k)")
    first, second = both(NAME, text, GPU)
    assert 'across=("add", "y_part", "threadIdx.x", "threadIdx.y")' in text_of(second)
    same_results(first, second, n=2)


@pytest.mark.parametrize(
    ("kind", "axis"), [("range(64)", "threadIdx.x"), ('thread(64, "vthread")', "threadIdx.x")]
)
def test_a_reduction_within_each_thread_is_not_changed(kind, axis):
    text = SUMS.replace('thread(64, "threadIdx.x")', kind).replace("blockIdx.x", axis)
    assert unchanged(NAME, text.replace("thread(n,", "thread(4,").replace("(n,", "(4,"), GPU)


def test_an_update_that_is_not_commutative():
    text = SUMS.replace("y[vi] += x[vi, vk]", "y[vi] = x[vi, vk] - y[vi]")
    error = rejected(NAME, text, GPU, KernelStatementError, "'sum'", "C = C op value")
    assert error.where == "block 'sum' of function 'sums'"


def test_a_spatial_loop_whose_extent_depends_on_the_threads():
    text = """
@prim_func
def triangle(x: Buffer[(4, 4), i32], y: Out[(4,), i32]):
    for k in thread(4, "threadIdx.x"):
        for i in range(4 - k):
            with block("sum"):
                vi, vk = spatial(4, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
    rejected(NAME, text, GPU, KernelStatementError, "block 'sum'", "depend on its reduction loops")


PRODUCT = """
n = symbols("n", lower=1)

@prim_func
def product(b: Buffer[(5,), i32], y: InOut[(n + 4,), i32], n: Int):
    for i in range(n):
        for r in thread(5, "threadIdx.x"):
            with block("product"):
                vo, vk = spatial(n + 4, i + r), reduce(r)
                y[vo] += b[vk]
"""
"""Each thread updates another element; several iterations of i update one element."""
ROWS = """
@prim_func
def rows(x: Buffer[(64,), i32], y: Out[(8,), i32]):
    for f in thread(64, "threadIdx.x"):
        with block("sum"):
            vi, vk = spatial(8, f // 8), reduce(8, f % 8)
            with init(): y[vi] = 0
            y[vi] += x[vi * 8 + vk]
"""


@pytest.mark.parametrize("init", [False, True], ids=["in place", "init"])
def test_threads_that_update_different_elements_are_not_combined(init):
    """The results of the iterations of i are ordered by barriers."""
    text = PRODUCT
    if init:
        text = text.replace("y[vo] +=", "with init(): y[vo] = 0\n                y[vo] +=")
    assert unchanged(NAME, text, GPU)
    launcher = Launcher(parse(text).prims[0])
    b, y = np.arange(1, 6, dtype=np.int32), np.arange(8, dtype=np.int32)
    expected = y.copy()
    run_prim(launcher.source, [b, expected], {"n": 4})
    report = launcher.run([b, y], {"n": 4})
    np.testing.assert_array_equal(y, expected)
    assert report.findings == ()


def test_threads_that_share_elements_of_a_reduction_with_an_init_are_rejected():
    rejected(NAME, ROWS, GPU, KernelStatementError, "loop 'f'", "update the same element")
