"""Producers and consumers of blocks."""

from __future__ import annotations

from tilewright.ir.analysis import consumers, producers, tree_of
from tilewright.ir.script import parse

from tests.schedules.helpers import CHAIN


def test_producers_and_consumers():
    found = tree_of(parse(CHAIN).prims[0])
    first, second, third = found.outermost_blocks()
    assert producers(found, second) == (first,)
    assert consumers(found, second) == (third,)
