"""Blocks that write elements of one buffer in different iterations of a loop."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import conflicts, tree_of
from tilewright.ir.analysis.disjoint_writes import writes_disjoint
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError

OWN = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        with block("rows"):
            vi = spatial(i)
            t = alloc((8,), f32)
            for j in range(8):
                with block("t"):
                    vj = spatial(j)
                    t[vj] = x[vi, vj]
            for k in range(8):
                with block("y"):
                    vk = spatial(k)
                    y[vi, vk] = t[7 - vk]
"""


def test_nothing_is_known_of_a_buffer_that_the_block_allocates():
    tree = tree_of(parse(OWN, check=False).prims[0])
    loop, block = next(iter(tree.loops.values())), tree.outermost_blocks()[0]
    shown = {b.name: writes_disjoint(tree, loop, block, b) for b in tree.buffers.values()}
    assert shown == {"x": False, "y": True, "t": False}


TWO_BOXES = """
n, m = symbols("n m", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: InOut[(k,), f32], z: InOut[(n, m), f32]):
    for i in range({count}):
        for a in range({first[0]}):
            for c in range({first[1]}):
                with block("first"):
                    vi, va, vc = spatial(i), spatial(a), spatial(c)
                    {target} = 1.0
        for p in range({second[0]}):
            for q in range({second[1]}):
                with block("second"):
                    vi, va, vc = spatial(i), spatial(p), spatial(q)
                    {target} = 2.0
"""


def two_boxes(target, first, second, count):
    text = TWO_BOXES.format(target=target, first=first, second=second, count=count)
    text = text.replace("(k,)", "(64,)")
    found = tree_of(parse(text, check=False).prims[0])
    loop = next(iter(found.loops.values()))
    return [(c.buffer.name, c.block.name) for c in conflicts(found, loop)]


def test_blocks_of_different_extents_that_write_an_element_in_different_iterations():
    """Each block alone writes different elements: 4 is written for i = 0 and for i = 1."""
    index = "y[vi * 2 + va * 4 + vc * 5]"
    assert two_boxes(index, (2, 3), (3, 2), 2) == [("y", "second")]
    assert two_boxes(index, (3, 2), (2, 3), 2) == [("y", "second")]
    assert two_boxes(index, (2, 3), (2, 3), 2) == []


@pytest.mark.parametrize("sizes", [((2, 3), (2, 2)), ((1, 3), (2, 3)), ((2, 2), (2, 4))])
def test_blocks_of_which_one_writes_all_elements_of_the_other_do_not_conflict(sizes):
    assert two_boxes("y[vi * 16 + va * 4 + vc]", *sizes, 4) == []


def test_blocks_that_write_different_parts_of_disjoint_boxes_do_not_conflict():
    assert two_boxes("y[vi * 16 + va * 4 + vc]", (2, 3), (3, 2), 4) == []
    assert two_boxes("z[vi, va * 8 + vc]", ("m // 8", 4), ("m // 16", 8), "n") == []
    assert two_boxes("y[(va % 4) * 4 + vc * 16 + vi]", (2, 4), (8, 4), 4) == []


EMPTY_SUM = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(8, n), f32], y: Out[(8,), DTYPE]):
    for i in KIND(8):
        for k in range(EXTENT):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init():
                    y[INDEX] = 0
                y[INDEX] += VALUE
"""


def empty_sum(kind, extent, index, dtype="f32"):
    text = EMPTY_SUM.replace("KIND", kind).replace("EXTENT", extent).replace("INDEX", index)
    return text.replace("VALUE", "u4(x[vi, vk])" if dtype == "u4" else "x[vi, vk]").replace(
        "DTYPE", dtype
    )


@pytest.mark.parametrize(
    ("extent", "index", "dtype"),
    [
        ("0", "vi // 2", "f32"),
        ("0", "vi", "u4"),
        ("n", "vi * min(n, 1)", "f32"),
        ("n", "vi // (2 - min(n, 1))", "f32"),
    ],
)
def test_the_init_of_an_empty_reduction_writes_elements(extent, index, dtype):
    """The loop over k runs no iteration for some sizes; facts about it do not hold for the init."""
    tree = tree_of(parse(empty_sum("range", extent, index, dtype), check=False).prims[0])
    assert [c.buffer.name for c in conflicts(tree, next(iter(tree.loops.values())))] == ["y"]
    with pytest.raises(IllFormedProgramError, match="L23"):
        parse(empty_sum("parallel", extent, index, dtype))


@pytest.mark.parametrize("extent", ["0", "n", "8"])
def test_inits_of_different_elements_do_not_conflict(extent):
    parse(empty_sum("parallel", extent, "vi"))
    parse(empty_sum("vectorized", extent, "7 - vi"))


@pytest.mark.parametrize(
    ("first", "second", "disjoint"),
    [
        ("vi, 0", "vi, 1", True),
        ("vi, vj", "vi, 1 - vj", True),
        ("vi, 0", "0, vi", False),
        ("vi, 0", "7 - vi, 1", False),
        ("vi // 2, 0", "vi // 2, 1", False),
    ],
)
def test_two_stores_of_a_block_write_the_elements_of_its_iteration(first, second, disjoint):
    """Only indices that both stores have are regarded."""
    text = f"""
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8, 8), f32]):
    for i in range(8):
        for j in range(2):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[{first}], y[{second}] = x[vi], x[vi]
"""
    function = parse(text, check=False).prims[0]
    tree = tree_of(function)
    loop = next(iter(tree.loops.values()))
    (block,) = tree.blocks.values()
    assert writes_disjoint(tree, loop, block, function.params[1].buffer) is disjoint
