"""Counts of accesses that differ by an offset are those of each access."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.simt import traffic
from tilewright.codegen.simt.provenance import StatementSite
from tilewright.codegen.simt.traffic import Traffic, bank_cycles, sectors

SITE = StatementSite(0, "store")


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_repeated_patterns_are_counted_as_each_access(space, size, monkeypatch):
    monkeypatch.setattr(traffic, "KNOWN", 5)
    rng = np.random.default_rng(size)
    patterns = [rng.integers(0, 512, 64) * size for _ in range(4)]
    masks = [None, rng.random(64) < 0.5]
    found, expected = Traffic(), np.zeros(3, np.int64)
    for _ in range(200):
        addresses = patterns[rng.integers(4)] + rng.integers(0, 64) * size
        on = masks[rng.integers(2)]
        found.count(SITE, space, "read", "x", (addresses, on, size))
        counts = (bank_cycles if space == "shared" else sectors)(addresses, on, size)
        expected[: len(counts)] += counts
    (counter,) = found.counters.values()
    if space == "shared":
        assert (counter.requests, counter.cycles) == tuple(expected[:2])
    else:
        assert (counter.requests, counter.sectors, counter.needed) == tuple(expected)
