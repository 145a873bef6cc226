"""Scans along the lanes of a vector."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis.lane_scans import scans_lanes
from tilewright.ir.analysis.tree import tree_of
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

SCAN = """
@prim_func
def f(x: Buffer[(4, 32), f32], y: Out[(4, 32), f32]):
    for i in range(4):
        for j in range(32):
            with block("sums"):
                vi, vj = spatial(i), ordered(j)
                y[vi, vj] = scan(add, x[vi, vj])
"""


def scanned(text: str) -> list[str]:
    tree = tree_of(parse(text).prims[0])
    return [loop.var.name for loop in tree.loops.values() if scans_lanes(tree, loop)]


def test_the_loop_of_the_steps_is_one_of_lanes():
    assert scanned(SCAN) == ["j"]
    assert scanned(SCAN.replace("ordered(j)", "ordered(32, j // 2)")) == []


@pytest.mark.parametrize(
    "guard", [("j < i", ["j"]), ("j + i < 20", ["j"]), ("j > i", []), ("j % 2 < 1", [])]
)
def test_lanes_that_run_are_the_first_ones(guard):
    claim, expected = guard
    text = SCAN.replace("y[vi, vj] =", f"guard({claim})\n                y[vi, vj] =")
    assert scanned(text.replace("y: Out", "y: InOut")) == expected


def test_recurrences_without_a_reducer_are_not_scans_of_lanes():
    plain = SCAN.replace("scan(add, x[vi, vj])", "where(vj >= 1, y[vi, vj - 1], 0.0) + x[vi, vj]")
    assert scanned(plain) == []


def test_a_vectorized_scan_may_contain_loops_of_one_iteration():
    sch = Schedule(parse(SCAN))
    sch.vectorize(sch.get_loops("sums")[-1])
    sch.add_unit_loop("sums")
    assert str(parse(str(sch.module))) == str(sch.module)
