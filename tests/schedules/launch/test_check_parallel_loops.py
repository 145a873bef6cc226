"""Rejection of parallel loops in kernels for GPUs."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import KernelStatementError

from tests.codegen.lower.passes.running import GPU, check_comparison, rejected

NAME = "check_parallel_loops"

COPY = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    for i in KIND(n):
        for a in thread(64, "threadIdx.x"):
            with block("copy"):
                vi, va = spatial(i), spatial(a)
                y[vi, va] = x[vi, va]
"""

EMPTY = """
@prim_func
def copy(x: Buffer[(32,), i32], y: Out[(32,), i32]):
    for i in thread(32, "threadIdx.x"):
        y[i] = x[i]
        for j in range(OUTER):
            for k in parallel(INNER):
                with block("copy"):
                    vi, vk = spatial(i), spatial(32, k)
                    guard(CONDITION)
                    y[vi] = x[vk]
"""
"""A parallel loop that is not executed, or is."""


def test_golden(golden):
    """A serial loop, and a parallel one."""
    good, bad = COPY.replace("KIND", "range"), COPY.replace("KIND", "parallel")
    golden(f"{NAME}.txt", check_comparison(NAME, (good, GPU), (bad, GPU), KernelStatementError))


@pytest.mark.parametrize(
    ("outer", "inner", "condition"),
    [(0, 2, "True"), (2, 0, "True"), (2, 2, "False"), (1, 1, "True")],
    ids=["empty loop around it", "empty loop", "guard", "one iteration"],
)
def test_a_parallel_loop_is_rejected_whether_it_is_executed_or_not(outer, inner, condition):
    text = EMPTY.replace("OUTER", str(outer)).replace("INNER", str(inner))
    text = text.replace("CONDITION", condition)
    error = rejected(NAME, text, GPU, KernelStatementError, "loop 'k' is a parallel loop")
    assert error.where == "function 'copy'"
    assert error.parts == ("k",)
