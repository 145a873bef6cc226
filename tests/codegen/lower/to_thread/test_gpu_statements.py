"""Statements of a GPU thread."""

from __future__ import annotations

import numpy as np

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.script import parse
from tilewright.ir.thread.nodes import AtomicUpdate
from tilewright.ir.thread.visit import walk
from tilewright.target.target import Target

from tests.codegen.gpu.running import launch


def test_a_vectorized_loop_of_atomic_updates_is_unrolled():
    """An atomic update changes one element, and the block is inside of the loop."""
    text = """
@prim_func
def columns(x: Buffer[(64, 4), f32], y: InOut[(4,), f32]):
    for i in thread(64, "blockIdx.x"):
        for j in vectorized(4):
            with block("sum"):
                vi, vj = reduce(i), spatial(j)
                y[vj] += x[vi, vj]
"""
    body = lower_kernel(parse(text).prims[0], Target("simt")).function.body
    updates = [s for s in walk(body) if isinstance(s, AtomicUpdate)]
    assert [s.value.type.lanes for s in updates] == [1, 1, 1, 1]
    assert [str(s.address.offset) for s in updates] == ["0", "4", "8", "12"]


def test_a_vector_whose_condition_an_unrolled_loop_refutes_does_not_run():
    """The condition is false for the second copy, whatever the lane is."""
    text = """
n = symbols("n", lower=1)

@prim_func
def rows(x: Buffer[(1, n), f32], y: InOut[(1, n), f32]):
    for i in thread(1, "threadIdx.x"):
        for j_0 in range(ceildiv(n, 4)):
            for r in unrolled(2):
                for j_1 in vectorized(4):
                    with block("rows"):
                        vi, vj = spatial(1, r), spatial(n, j_0 * 4 + j_1)
                        guard(j_0 * 4 + j_1 < n and r <= 0)
                        y[vi, vj] = x[vi, vj] + 1.0
"""
    kernel = lower_kernel(parse(text).prims[0], Target("simt"))
    for n in (1, 4, 8):
        x, y = np.ones((1, n), np.float32), np.zeros((1, n), np.float32)
        assert not launch(kernel, [x, y], {"n": n}).errors
        assert y.tolist() == [[2.0] * n]
