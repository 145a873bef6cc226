"""Conflicts between the iterations of a loop."""

from __future__ import annotations

from tilewright.ir.analysis import conflicts, tree_of
from tilewright.ir.script import parse

from tests.schedules.helpers import SAME, SCAN


def tree(text):
    return tree_of(parse(text).prims[0])


def test_conflicts_name_block_and_buffer():
    found = tree(SAME)
    outer, inner = found.loops.values()
    assert list(conflicts(found, outer)) == []
    (conflict,) = conflicts(found, inner)
    assert (conflict.block.name, conflict.buffer.name) == ("last", "y")
    scan = tree(SCAN)
    assert [c.buffer.name for c in conflicts(scan, *scan.loops.values())] == ["y"]
