"""Regions that blocks access, recomputed from their bodies."""

from __future__ import annotations

from tilewright.ir.analysis import tree_of, with_regions
from tilewright.ir.script import parse

from tests.schedules.helpers import MATMUL


def test_regions_are_recomputed():
    found = tree_of(parse(MATMUL).prims[0])
    (block,) = found.outermost_blocks()
    again = with_regions(block)
    assert [r.buffer.name for r in again.reads] == ["A", "B"]
    assert [r.buffer.name for r in again.writes] == ["C"]
