"""Split of a vectorized loop of constant extent into vectors that the CPU supports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.dtype import DType
from ....ir.loop import nodes as loop
from ....ir.loop.visit import loads, stores
from ....target.cpus import Cpu

WIDEST = 4
"""The maximum number of registers per vector value."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A vector of ``lanes`` lanes from ``start`` on, of which the first ``active`` run."""

    start: int
    lanes: int
    active: int


def element_types(nest: loop.For) -> frozenset[DType]:
    """Return the dtypes that the body of a loop reads and writes."""
    buffers = [s.buffer for s in stores(nest.body)] + [r.buffer for r in loads(nest.body)]
    return frozenset(b.dtype for b in buffers)


def chunks(nest: loop.For, count: int, cpu: Cpu) -> Iterator[Chunk]:
    """Yield vectors of power-of-two width that cover ``count`` lanes, the widest first.

    A rest that is not a power of two becomes one masked vector if the CPU has masked accesses.

    Examples
    --------
    A loop of 40 single-precision elements with registers of 16 yields 32 lanes, then 8.
    """
    types = element_types(nest)
    native = cpu.lanes(max((t.bits for t in types), default=32))
    start = 0
    while count - start >= native:
        lanes = native
        while lanes * 2 <= min(count - start, WIDEST * native):
            lanes *= 2
        yield Chunk(start, lanes, lanes)
        start += lanes
    rest = count - start
    if rest & (rest - 1) and maskable(types, cpu):
        yield Chunk(start, 1 << rest.bit_length(), rest)
        return
    while rest:
        lanes = 1 << (rest.bit_length() - 1)
        yield Chunk(start, lanes, lanes)
        start, rest = start + lanes, rest - lanes


def maskable(types: frozenset[DType], cpu: Cpu) -> bool:
    """Return whether the CPU has masked loads and stores of these types."""
    return cpu.vector_bits == 512 or all(t.bits in (32, 64) for t in types)
