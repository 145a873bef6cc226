"""Updates in place by commutative operators."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import reduction_update, tree_of, update_of
from tilewright.ir.script import parse

TEXT = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    for i in range(8):
        with block("b"):
            v = spatial(i)
            y[v] = {value}
"""


def block_of(value):
    """Return the block that stores a value to ``y[v]``."""
    return tree_of(parse(TEXT.format(value=value)).prim("f")).outermost_blocks()[0]


@pytest.mark.parametrize(
    ("value", "op", "declared"),
    [
        ("y[v] + x[v]", "add", True),
        ("x[v] + y[v]", "add", False),
        ("max(y[v], x[v])", "max", True),
        ("y[v] * x[7 - v]", "mul", True),
        ("y[v] - x[v]", None, False),
        ("y[7 - v] + x[v]", None, False),
        ("y[v] + y[v]", None, False),
        ("y[v] + x[v] * y[7 - v]", None, False),
        ("x[v]", None, False),
        ("y[v] + x[v] + 1.0", None, False),
    ],
)
def test_updates(value, op, declared):
    """The written element is returned on the left; a block declares it there."""
    block = block_of(value)
    found = update_of(block.body)
    assert (found and found[0]) == op
    if found is not None:
        assert found[1].left.indices == block.body.indices
        assert found[1].right != found[1].left
    assert (reduction_update(block) is not None) == declared
