"""Sharing of storages: tensors with disjoint live ranges use the same memory."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from ..symbolic import Const, Expr, Facts, Proved, ZeroDivisorError, evaluate, prove
from .live_ranges import LiveRange, LiveRanges
from .nodes import GraphFunc, Value

_SAMPLES = (64, 3, 1000)
_PROOF_MS = 5
_MOST_SIZES = 64
"""The number of sizes of free storages that are considered for one tensor."""
_MOST_PROOFS = 16
"""The number of unsuccessful proofs for one tensor."""


def samples_of(size: Expr) -> tuple[int, ...]:
    """Return the values of a size for sample values of all symbols; -1 if there is no value."""
    try:
        return tuple(evaluate(size, dict.fromkeys(size.free, n)) for n in _SAMPLES)
    except ZeroDivisorError:
        return (-1,) * len(_SAMPLES)


@dataclass
class _Size:
    """A size, its values for samples, and the free storages of this size by age."""

    size: Expr
    samples: tuple[int, ...]
    free: list[int] = field(default_factory=list[int])


class _Pool:
    """The storages so far: in use until a position, or free."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.storages: list[LiveRange] = []
        self.busy: list[tuple[int, int]] = []
        self.sizes: dict[Expr, _Size] = {}
        self.free: list[tuple[int, int]] = []  # the first sample and the number of each free size
        self.numbered: list[_Size] = []
        self.numbers: dict[Expr, int] = {}
        self.known: dict[tuple[Expr, Expr], bool] = {}

    def size(self, size: Expr) -> _Size:
        if size not in self.sizes:
            self.sizes[size] = _Size(size, samples_of(size))
            self.numbers[size] = len(self.numbered)
            self.numbered.append(self.sizes[size])
        return self.sizes[size]

    def release(self, position: int) -> None:
        """Free the storages whose last use is before a position."""
        while self.busy and self.busy[0][0] < position:
            _, number = heapq.heappop(self.busy)
            own = self.size(self.storages[number].size)
            if not own.free:
                insort(self.free, (own.samples[0], self.numbers[own.size]))
            heapq.heappush(own.free, number)

    def take(self, wanted: LiveRange) -> LiveRange | None:
        """Use the oldest free storage of a sufficient size; return None if there is none."""
        need, proofs = self.size(wanted.size), 0
        least = need.samples[0]
        start = bisect_left(self.free, (least, -1))
        stop = bisect_right(self.free, (max(least, 2 * least), len(self.numbered)))
        near = (self.numbered[k] for _, k in self.free[start : min(stop, start + _MOST_SIZES)])
        for have in sorted(near, key=lambda s: s.free[0]):
            pair = (need.size, have.size)
            if pair not in self.known and proofs < _MOST_PROOFS:
                self.known[pair] = self.fits(need, have)
                proofs += not self.known[pair]
            if self.known.get(pair):
                number = heapq.heappop(have.free)
                if not have.free:
                    self.free.remove((have.samples[0], self.numbers[have.size]))
                self.use(number, wanted.last)
                return self.storages[number]
        return None

    def add(self, storage: LiveRange) -> None:
        self.size(storage.size)
        self.storages.append(storage)
        self.use(len(self.storages) - 1, storage.last)

    def use(self, number: int, last: int) -> None:
        heapq.heappush(self.busy, (last, number))

    def fits(self, need: _Size, have: _Size) -> bool:
        """Return whether ``need <= have <= 2 * need`` is proved."""
        if need.size == have.size:
            return True
        pairs = zip(need.samples, have.samples, strict=True)
        if not all(0 <= n <= h <= 2 * n for n, h in pairs):
            return False  # evaluating samples is 1000 times faster than a proof
        if isinstance(need.size, Const) and isinstance(have.size, Const):
            return True
        claims = (need.size <= have.size, have.size <= 2 * need.size)
        return all(isinstance(prove(c, self.facts, budget_ms=_PROOF_MS), Proved) for c in claims)


def shared_storages(func: GraphFunc) -> dict[Value, Value]:
    """Map storages to earlier ones whose live ranges have ended and whose size is sufficient.

    A storage is reused for tensors whose size is proved to be at most its size and at least half of
    it. Storages of results, those inside branches, and those of different devices are not shared.
    """
    live = LiveRanges(func)
    kept = live.roots_of(func.results)
    pools: dict[str, _Pool] = {}
    shared: dict[Value, Value] = {}
    for own in sorted(live.ranges.values(), key=lambda x: x.first):
        if own.storage in kept or own.depth:
            continue
        pool = pools.setdefault(own.device, _Pool(func.facts))
        pool.release(own.first)
        found = pool.take(own)
        if found is None:
            pool.add(own)
        else:
            shared[own.storage] = found.storage
    return shared
