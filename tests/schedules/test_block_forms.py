"""Forms of blocks: equal for other names, sizes and dtypes; different for other operations."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import tree_of
from tilewright.ir.script import parse
from tilewright.schedules.block_forms import block_form, occurrence, with_form

TEXT = """
@prim_func
def f(x: Buffer[({n},), {t}], y: Out[({n},), {t}]):
    for {i} in range({n}):
        y[{i}] = {e}
"""


def form(e: str, i: str = "i", n: int = 8, t: str = "f32") -> str:
    func = parse(TEXT.format(e=e, i=i, n=n, t=t)).prim("f")
    (block,) = tree_of(func).blocks.values()
    return block_form(block)


def test_names_sizes_and_dtypes_are_ignored() -> None:
    assert form("x[i] + 1.0") == form("x[q] + 2.0", "q", 9, "f64") == "spatial: add(load, number)"


@pytest.mark.parametrize("e", ["x[i] * 1.0", "x[i]", "1.0 + x[i]", "max(x[i] + 1.0, 0.0)"])
def test_operations_differ(e: str) -> None:
    assert form(e) != form("x[i] + 1.0")


def test_blocks_of_one_form_are_counted() -> None:
    text = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    t = alloc((8,), f32)
    for i in range(8):
        t[i] = x[i] + 1.0
    for j in range(8):
        y[j] = t[j] + 2.0
"""
    tree = tree_of(parse(text).prim("f"))
    first, second = tree.blocks.values()
    assert (occurrence(tree, first), occurrence(tree, second)) == (0, 1)
    assert with_form(tree, block_form(first), 1) is second
    assert with_form(tree, block_form(first), 2) is None
    assert with_form(tree, "spatial: load", 0) is None
