"""The sizes of temporaries that are allocated in loops, and queries about their lifetimes."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import (
    accesses,
    conflicts,
    is_covered,
    is_private,
    private_copies,
    tree_of,
)
from tilewright.ir.analysis.allocations import largest_shape, loops_around, temporary_shapes
from tilewright.ir.analysis.cost import peak_bytes
from tilewright.ir.analysis.widths import wide_terms
from tilewright.ir.loop.memory_scopes import COMMON, MEMORY_SCOPES, OF_BLOCK, PRIVATE, scope_named
from tilewright.ir.script import parse

ROWS = """
m, n = symbols("m n", lower=0)

@prim_func
def rows(x: Buffer[(n, m), f32], p: Buffer[(n,), i32], y: Out[(n, m), f32]):
    {outside}
    for i in range(n):
        with checked(p[i], 0, m + 1) as size:
            {inside}
            for k in range(size):
                with block("t"):
                    vi, vk = spatial(n, i), spatial(m + 1, k)
                    t[vk] = x[vi, vk]
            for j in range(m):
                with block("y"):
                    wi, wj, ws = spatial(n, i), spatial(m, j), spatial(m + 1, size)
                    y[wi, wj] = where(wj < ws, t[wj], 0.0)
"""


def rows(shape: str = "(size,)", *, inside: bool = True):
    line = f"t = alloc({shape}, f32)"
    text = ROWS.format(outside="" if inside else line, inside=line if inside else "")
    return tree_of(parse(text).prim("rows"))


SIZES = [
    ("(size,)", "m"),
    ("(i + 1,)", "n"),
    ("(size - i,)", "m"),
    ("(min(size, 8),)", "min(8, m)"),
    ("(size * n,)", "m * n"),
    ("(size // 2 + 1,)", "m // 2 + 1"),
]


@pytest.mark.parametrize(("shape", "largest"), SIZES, ids=[s for s, _ in SIZES])
def test_the_largest_size_is_a_term_over_symbols(shape: str, largest: str):
    tree = rows(shape)
    assert [str(size) for size in largest_shape(tree, tree.temporaries[0])] == [largest]


def test_the_loops_around_an_allocation():
    inside, outside = rows(), rows("(m,)", inside=False)
    assert [x.var.name for x in loops_around(inside, inside.temporaries[0])] == ["i"]
    assert loops_around(outside, outside.temporaries[0]) == ()
    assert [b.name for b, _ in temporary_shapes(inside.function)] == ["t"]


def test_iterations_do_not_share_their_own_temporaries():
    inside, outside = rows(), rows("(m,)", inside=False)
    for tree, independent in ((inside, True), (outside, False)):
        (loop,) = (x for x in tree.loops.values() if x.var.name == "i")
        (buffer,) = tree.temporaries
        assert (not list(conflicts(tree, loop))) == independent
        assert (not list(conflicts(tree, loop, lanes=True))) == independent
        assert is_private(tree, loop, buffer) == independent
        assert private_copies(tree, loop, PRIVATE) == ()


def test_a_block_has_no_accesses_to_its_own_temporaries():
    text = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            t = alloc((2,), f32)
            t[0] = x[vi]
            t[1] = t[0] * 2.0
            y[vi] = t[1]
"""
    tree = tree_of(parse(text).prim("f"))
    (block,) = tree.outermost_blocks()
    assert {a.buffer.name for a in accesses(block)} == {"x", "y"}
    assert [r.buffer.name for r in (*block.reads, *block.writes)] == ["x", "y"]
    (loop,) = tree.loops.values()
    assert not list(conflicts(tree, loop))
    assert str(peak_bytes(tree.function)) == "8"


def test_a_temporary_that_each_iteration_writes_first_is_covered():
    text = ROWS.format(outside="t = alloc((m,), f32)", inside="").replace("where(wj < ws, ", "(")
    text = (
        text.replace(", 0.0)", ")").replace("range(size)", "range(m)").replace("m + 1, k", "m, k")
    )
    tree = tree_of(parse(text).prim("rows"))
    (loop,) = (x for x in tree.loops.values() if x.var.name == "i")
    assert is_covered(tree, loop, tree.temporaries[0])
    assert private_copies(tree, loop, frozenset(MEMORY_SCOPES)) == tree.temporaries


def test_a_size_that_may_overflow_is_checked():
    assert not wide_terms(rows().function)
    assert wide_terms(rows("(i * n * n * n + 1,)").function)


def test_memory_scopes():
    assert {*PRIVATE, *COMMON} == set(MEMORY_SCOPES)
    assert scope_named("shared").name in OF_BLOCK
    assert not scope_named("fragment").addressable
    assert scope_named("local").domain == "thread"
