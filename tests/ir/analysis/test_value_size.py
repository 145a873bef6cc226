"""Tests of the sizes of expressions."""

from __future__ import annotations

from tilewright.ir.analysis import tree_of
from tilewright.ir.analysis.value_size import (
    LOAD,
    REPEATED,
    ValueSize,
    inlined_size,
    loads_of,
    result_size,
    value_size,
)
from tilewright.ir.loop.visit import stores
from tilewright.ir.script import parse

SQUARES = """
@prim_func
def squares(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    t = alloc((8,), f32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi] + x[vi] + 1.0
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj] * t[vj]
"""


def test_a_shared_operand_counts_once_per_use():
    function = parse(SQUARES).prim("squares")
    first, second = stores(function.body)
    assert value_size(first.value) == ValueSize(5, 3)
    assert value_size(second.value) == ValueSize(3, 2)
    assert value_size(second.value, {first.buffer: ValueSize(5, 3)}) == ValueSize(11, 4)


def test_temporaries_of_a_function_count_as_inlined():
    function = parse(SQUARES).prim("squares")
    (x, _) = function.buffer_params
    assert result_size(function, {}) == ValueSize(11, 4)
    assert result_size(function, {x: ValueSize(10, 5)}) == ValueSize(26, 7)
    assert result_size(function, {x: LOAD}) == ValueSize(11, 4)


def test_loads_are_counted_per_buffer():
    function = parse(SQUARES).prim("squares")
    (x, _), (t,) = function.buffer_params, function.buffers
    assert loads_of(function.body) == {x: 2, t: 2}


def test_a_small_value_may_be_computed_twice_and_a_large_one_may_not():
    tree = tree_of(parse(SQUARES).prim("squares"))
    first, _ = tree.outermost_blocks()
    assert inlined_size(tree, first) == (ValueSize(11, 4), False)
    terms = " + ".join(["x[vi]"] * REPEATED)
    large = parse(SQUARES.replace("x[vi] + x[vi] + 1.0", terms)).prim("squares")
    tree = tree_of(large)
    first, _ = tree.outermost_blocks()
    assert inlined_size(tree, first) == (ValueSize(2 * REPEATED + 2, REPEATED), False)
    distinct = SQUARES.replace("t[vj] * t[vj]", "t[vj] * t[7 - vj]").replace(
        "x[vi] + x[vi] + 1.0", terms
    )
    tree = tree_of(parse(distinct).prim("squares"))
    first, _ = tree.outermost_blocks()
    assert inlined_size(tree, first)[1]
