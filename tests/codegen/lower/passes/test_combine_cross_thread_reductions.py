"""Reductions over threads: partial results per thread, then one combine step."""

from __future__ import annotations

import pytest

from tilewright.codegen.errors import KernelStatementError

from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    rejected,
    same_results,
    text_of,
    unchanged,
)

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
