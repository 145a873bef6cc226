"""Accesses of packed elements as accesses of bytes, since a store changes a whole byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..loop.nodes import Buffer
from ..symbolic import Expr, Facts, as_expr, const_value, eq, is_proved, product
from .accesses import Access


def byte_accesses(found: Sequence[Access], facts: Facts) -> Iterator[tuple[Access, ...]]:
    """Yield accesses of one packed buffer with indices such that unequal ones are unequal bytes.

    If rows fill whole bytes, the last index becomes that of the byte. The first indices are enough
    if the rest of the dimensions fills whole bytes. Without a proof of either, or for a buffer with
    strides, nothing is yielded: elements with unequal indices may share a byte.

    Parameters
    ----------
    found : sequence of Access
        The accesses of one buffer.
    facts : Facts
        The facts that hold at the accesses.
    """
    if not found or found[0].buffer.strides is not None:
        return
    buffer = found[0].buffer
    per = buffer.dtype.per_byte
    if buffer.rank == 1 or (buffer.rank and _fills_bytes(buffer.shape[-1:], buffer, facts)):
        yield tuple(replace(a, indices=(*a.indices[:-1], a.indices[-1] // per)) for a in found)
    for count in range(buffer.rank - 1, 0, -1):
        if _fills_bytes(buffer.shape[count:], buffer, facts):
            yield tuple(replace(a, indices=a.indices[:count]) for a in found)


def _fills_bytes(dims: tuple[Expr, ...], buffer: Buffer, facts: Facts) -> bool:
    """Return whether the elements of some dimensions provably fill whole bytes."""
    rest = product(dims) % buffer.dtype.per_byte
    return const_value(rest) == 0 or is_proved(eq(rest, as_expr(0)), facts)
