"""Conditions under which an operand is evaluated."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import tree_of
from tilewright.ir.analysis.evaluated import evaluated_where
from tilewright.ir.loop.nodes import Load
from tilewright.ir.loop.visit import stores
from tilewright.ir.script import parse

TEXT = """
@prim_func
def f(x: Buffer[(8,), f32], t: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = {value}
"""

CASES = {
    "t[vi] + 1.0": "True",
    "where(vi < 4, t[vi], 0.0)": "vi < 4",
    "where(vi < 4, 0.0, t[vi])": "vi >= 4",
    "where(vi < 4, t[vi], t[vi] * 2.0)": "True",
    "where(vi < 4, where(vi > 1, t[vi], 0.0), 1.0)": "vi >= 2 and vi < 4",
    "where(vi < 4, t[vi], 0.0) + where(vi > 2, t[vi], 0.0)": "None",
    "where(x[vi] > 0.0, t[vi], 0.0)": "None",
    "where(x[vi] > 0.0, t[vi], 0.0) + t[vi]": "True",
    "where(t[vi] > 0.0, t[vi], 0.0)": "True",
}


@pytest.mark.parametrize("value", CASES)
def test_conditions(value):
    (block,) = tree_of(parse(TEXT.format(value=value)).prim("f")).outermost_blocks()
    (store,) = stores(block.body)
    found = evaluated_where([store.value], lambda e: isinstance(e, Load) and e.buffer.name == "t")
    assert str(found) == CASES[value]
