"""Offsets of temporaries in one memory, of which those with disjoint live ranges share bytes.

The sizes may be terms whose values are known at run time, while the offsets are fixed at compile
time. So a temporary takes the bytes of others that are no longer live if its size is provably not
larger: an equal term, a smaller constant, or a few attempts of the prover. The end of the memory is
lowered when the last temporaries in it are no longer live, whatever their sizes are: temporaries of
nested scopes take no more than their maximum of live bytes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from ....ir.symbolic import Expr, Facts, as_expr, const_value, is_proved, maximum

MOST_TERMS: Final = 32
"""The largest number of terms in the maximum that is the size of the memory."""

MOST_PROOFS: Final = 4
"""The largest number of blocks of other symbolic sizes that are compared with a temporary."""

_ZERO: Final = as_expr(0)


@dataclass(frozen=True, slots=True)
class Request:
    """A temporary: its size in bytes, and its first and last position, both inclusive."""

    size: Expr
    first: int
    last: int


def shared_offsets(requests: Sequence[Request], facts: Facts) -> tuple[list[Expr], Expr]:
    """Return the offset of each temporary, and the size of the memory.

    Parameters
    ----------
    requests : sequence of Request
        The temporaries. The sizes are multiples of the alignment.
    facts : Facts
        The facts about the symbols in the sizes.

    Notes
    -----
    ``n`` temporaries take time ``O(n log n)``.

    Examples
    --------
    >>> from ....ir.symbolic import var
    >>> n = var("n", lower=1)
    >>> requests = [Request(n * 64, 0, 9), Request(n * 128, 1, 4), Request(n * 256, 5, 8)]
    >>> shared_offsets(requests, Facts())
    ([0, n * 64, n * 64], n * 320)
    """
    order = sorted(range(len(requests)), key=lambda k: (requests[k].first, -requests[k].last))
    memory, offsets = _Memory(facts), [_ZERO] * len(requests)
    live: list[tuple[int, int, _Block]] = []
    for k in order:
        request = requests[k]
        while live and live[0][0] < request.first:
            memory.release(heappop(live)[2])
        block = memory.take(request.size)
        offsets[k] = block.offset
        heappush(live, (request.last, k, block))
    return offsets, memory.size


@dataclass(slots=True, eq=False)
class _Block:
    """A range of bytes, and the blocks before and after it."""

    offset: Expr
    size: Expr
    before: _Block | None = None
    after: _Block | None = None
    free: bool = False
    serial: int = 0


class _Memory:
    """The blocks of a memory in the order of their offsets; the last one is never free."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._tail: _Block | None = None
        self._ends: dict[Expr, None] = {}
        self._constant: list[tuple[int, int, _Block]] = []
        self._symbolic: dict[Expr, dict[_Block, None]] = {}
        self._serial = 0

    @property
    def size(self) -> Expr:
        """The size of the memory: the maximum of its ends so far."""
        self._record()
        return maximum(*self._ends) if self._ends else _ZERO

    def take(self, size: Expr) -> _Block:
        """Return a block of at least a size."""
        found = self._reused(size)
        if found is not None:
            return found
        tail = self._tail
        block = _Block(_ZERO if tail is None else tail.offset + tail.size, size, tail)
        if tail is not None:
            tail.after = block
        self._tail = block
        return block

    def release(self, block: _Block) -> None:
        """Make a block free, joined with the free blocks around it."""
        before, after = block.before, block.after
        if before is not None and before.free:
            self._forget(before)
            self._join(before, block)
            block = before
        if after is not None and after.free:
            self._forget(after)
            self._join(block, after)
        block.free = True
        if block is not self._tail:
            self._list(block)
        elif self._may_end():
            self._record()
            self._tail = block.before
            if self._tail is not None:
                self._tail.after = None
        else:
            self._list(block)

    def _may_end(self) -> bool:
        """Return whether the size may have another term."""
        return len(self._ends) < MOST_TERMS

    def _record(self) -> None:
        if self._tail is not None:
            self._ends[self._tail.offset + self._tail.size] = None

    def _join(self, block: _Block, after: _Block) -> None:
        block.size += after.size
        block.after = after.after
        if after.after is not None:
            after.after.before = block
        if self._tail is after:
            self._tail = block

    def _list(self, block: _Block) -> None:
        size = const_value(block.size)
        if size is None:
            self._symbolic.setdefault(block.size, {})[block] = None
        else:
            self._serial += 1
            block.serial = self._serial
            insort(self._constant, (size, self._serial, block), key=_order)

    def _forget(self, block: _Block) -> None:
        size = const_value(block.size)
        if size is None:
            self._drop(block)
        else:
            del self._constant[bisect_left(self._constant, (size, block.serial), key=_order)]

    def _drop(self, block: _Block) -> None:
        same = self._symbolic[block.size]
        del same[block]
        if not same:
            del self._symbolic[block.size]

    def _reused(self, size: Expr) -> _Block | None:
        """Return a free block that is provably large enough, the smallest constant one."""
        count = const_value(size)
        if count is None:
            return self._symbolic_block(size)
        at = bisect_left(self._constant, (count, 0), key=_order)
        if at == len(self._constant):
            return None
        block = self._constant.pop(at)[2]
        block.free = False
        rest = (const_value(block.size) or 0) - count
        if rest:
            self._split(block, size, as_expr(rest))
        return block

    def _split(self, block: _Block, size: Expr, rest: Expr) -> None:
        after = _Block(block.offset + size, rest, block, block.after, free=True)
        if block.after is not None:
            block.after.before = after
        block.size, block.after = size, after
        if self._tail is block:
            self._tail = after
        self._list(after)

    def _symbolic_block(self, size: Expr) -> _Block | None:
        sizes = [size] if size in self._symbolic else list(self._symbolic)[-MOST_PROOFS:]
        for other in sizes:
            if other is size or is_proved(size <= other, self._facts):
                block = next(reversed(self._symbolic[other]))
                self._drop(block)
                block.free = False
                return block
        return None


def _order(item: tuple[int, int, _Block]) -> tuple[int, int]:
    return item[:2]
