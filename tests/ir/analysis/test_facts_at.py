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


def test_the_loops_of_a_reduction_prove_nothing_about_its_init():
    """The init runs even if they have no iterations, and their ranges contradict each other."""
    found = tree_of(
        parse("""
m = symbols("m", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(8, m), f32], y: Out[(8,), f32]):
    for i in range(4):
        for k in range(m):
            for idle in range(0):
                with block("rows"):
                    vi, vk = spatial(i), reduce(k)
                    with init():
                        for j in range(2):
                            with block("start"):
                                wi = spatial(8, vi * 2 + j)
                                y[wi] = 0.0
                    for l in range(2):
                        with block("add"):
                            ui, uk = spatial(8, vi * 2 + l), reduce(m, vk)
                            y[ui] += x[ui, uk]
""").prims[0]
    )
    start, add = (b for b in found.blocks.values() if b.name in ("start", "add"))
    (m,) = found.symbols()
    assert is_proved(m >= 1, found.facts(add))
    assert not is_proved(m >= 1, found.facts(start))
    assert not is_proved(m < 0, found.facts(start))
