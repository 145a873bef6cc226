"""Blocks realized as branches and stores on loop variables."""

from __future__ import annotations

import pytest

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk

from tests.codegen.lower.passes.running import CPU, after, both, comparison, program, same_results

NAME = "realize_blocks"

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def two(x: Buffer[(n,), i32], y: Out[(n,), i32], a: Buffer[(4, 4), i32], b: Out[(4,), i32]):
    for i0 in range(ceildiv(n, 4)):
        for i1 in range(4):
            with block("copy"):
                vi = spatial(n, i0 * 4 + i1)
                guard(i0 * 4 + i1 < n)
                y[vi] = x[vi]
    for k in range(4):
        for j in range(4 - k):
            with block("sum"):
                vj, vk = spatial(4, j), reduce(k)
                with init(): b[vj] = 0
                b[vj] += a[vj, vk]
"""
"""A block with a predicate, and one with an init."""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, PROGRAM, CPU))


@pytest.mark.parametrize("n", [1, 4, 6])
def test_results(n):
    same_results(*both(NAME, PROGRAM, CPU), n=n)


def test_blocks_keep_their_uids_and_lose_their_iteration_variables():
    first, second = both(NAME, PROGRAM, CPU)
    old, new = ([s for s in walk(f.body) if isinstance(s, Block)] for f in (first, second))
    assert [b.uid for b in old] == list(dict.fromkeys(b.uid for b in new))
    assert not any(b.iters or b.reads or b.writes or b.init for b in new)


def test_an_init_is_decomposed_before():
    with pytest.raises(TypeError, match="init of block 'sum' is not decomposed"):
        after(NAME, program(PROGRAM), CPU)
