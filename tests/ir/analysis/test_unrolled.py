"""Tests of the number of copies in unrolled loops."""

from __future__ import annotations

from tilewright.ir.analysis.unrolled import copied_stores, most_copied, product_text
from tilewright.ir.script import parse

NESTED = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32], z: Out[(n,), f32]):
    for i in range(n):
        for j in unrolled(8):
            for k in unrolled(3):
                y[i, j] = x[i, j]
            for m in unrolled(1000):
                y[i, j] = x[i, j]
        z[i] = 0.0
"""


def test_unrolled_loops_multiply_and_other_loops_do_not():
    function = parse(NESTED).prim("f")
    assert copied_stores(function.body) == 8 * 3 + 8 + 1  # a loop of 1,000 iterations is not copied
    assert [loop.var.name for loop in most_copied(function.body)] == ["j", "k"]
    assert product_text(most_copied(function.body)) == "8 * 3 = 24"
