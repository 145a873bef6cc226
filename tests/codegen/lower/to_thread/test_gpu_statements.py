"""Statements that a GPU kernel does not support."""

from __future__ import annotations

import pytest

from tilewright.codegen.errors import KernelStatementError
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.script import parse
from tilewright.target.target import Target

COPY = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    for i in parallel(n):
        for a in thread(64, "threadIdx.x"):
            with block("copy"):
                vi, va = spatial(i), spatial(a)
                y[vi, va] = x[vi, va]
"""


def test_a_parallel_loop():
    with pytest.raises(KernelStatementError, match="loop 'i' is a parallel loop"):
        lower_kernel(parse(COPY).prims[0], Target("simt"))
