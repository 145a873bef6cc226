"""Operation counts, footprints and memory of loop-level functions."""

from __future__ import annotations

from tilewright.ir.analysis import flops, footprint, live_ranges, peak_bytes, tree_of
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate

from tests.schedules.helpers import CHAIN, MATMUL


def test_costs_of_a_matmul():
    function = parse(MATMUL).prims[0]
    M = next(iter(tree_of(function).symbols()))
    assert evaluate(flops(function), {M: 3}) == 2 * 3 * 16 * 24
    assert evaluate(footprint(function), {M: 3}) == 4 * (3 * 16 + 16 * 24 + 3 * 24)
    assert peak_bytes(function) == 0


def test_live_ranges_of_a_chain():
    function = parse(CHAIN).prims[0]
    (n,) = tree_of(function).symbols()
    named = {b.name: interval for b, interval in live_ranges(function).items()}
    assert named == {"t": (0, 1), "u": (1, 2)}
    assert evaluate(peak_bytes(function), {n: 10}) == 80
