"""Facts that hold at a statement."""

from __future__ import annotations

from tilewright.ir.analysis import PatternKind, pattern_kind, tree_of, with_regions
from tilewright.ir.script import parse
from tilewright.ir.symbolic import is_proved

GATHER = """
n = symbols("n", lower=1)

@prim_func
def gather(ids: Buffer[(n,), i64], table: Buffer[(9, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with checked(ids[vi], 0, 9) as row:
                    y[vi, vj] = table[row, vj]
"""


def test_a_let_bound_value_is_in_its_range():
    found = tree_of(parse(GATHER).prims[0])
    (block,) = found.outermost_blocks()
    store = block.body.body
    row = block.body.var
    assert is_proved(row < 9, found.facts(store))
    assert not is_proved(row < 8, found.facts(store))
    (region,) = [r for r in with_regions(block).reads if r.buffer.name == "table"]
    assert [str(r.extent) for r in region.ranges] == ["9", "1"]
    assert pattern_kind(found.function) is PatternKind.INJECTIVE
