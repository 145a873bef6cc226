"""Vectors of elements at a constant distance: shuffles of contiguous vectors.

The elements of a *period* of ``step`` elements are adjacent in memory; lane ``k`` of a vector
accesses an element of period ``k``. A vector of several registers is processed per register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...ir.dtype import bool_
from ...ir.symbolic import Expr, var
from ...ir.thread.index_width import prefix_length
from ...ir.thread.nodes import Binary, Const, Predicate, Shuffle, Value
from ...ir.thread.types import VectorType


@dataclass(frozen=True, slots=True)
class Piece:
    """A contiguous access of one register: the elements from ``start`` on of all periods."""

    start: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Periods:
    """The periods of a strided access.

    Parameters
    ----------
    lanes : int
        The number of lanes, and of periods.
    step : int
        The number of elements of a period.
    span : int
        The number of leading elements of a period that may be accessed in the last period.
    register : int
        The number of elements of a vector register.
    """

    lanes: int
    step: int
    span: int
    register: int

    @property
    def width(self) -> int:
        """The number of lanes that are processed together."""
        return min(self.lanes, self.register)

    def pieces(self, group: int, *, masked: bool) -> tuple[Piece, ...]:
        """Return the contiguous accesses that cover the lanes of one register.

        The last one ends at the last element that may be accessed; a mask ends it, too.
        """
        first, count = group * self.width * self.step, self.width
        total = self.width * self.step
        if not masked and group == self.lanes // self.width - 1:
            total -= self.step - self.span
        starts = (min(k, max(total - count, 0)) for k in range(0, total, count))
        return tuple(Piece(first + k, count) for k in starts)


def deinterleaved(
    periods: Periods, residue: int, load: Callable[[Piece], Value], *, masked: bool
) -> Value:
    """Return element ``residue`` of each period, one per lane, from contiguous loads."""
    groups: list[Value] = []
    count = periods.width
    for group in range(periods.lanes // count):
        pieces = periods.pieces(group, masked=masked)
        first = group * count * periods.step
        wanted = [first + k * periods.step + residue for k in range(count)]
        homes = [min((e - first) // count, len(pieces) - 1) for e in wanted]
        used = [k for k in range(len(pieces)) if k in homes]
        vectors = {k: load(pieces[k]) for k in used}
        chosen = [(k, e - pieces[k].start) for k, e in zip(homes, wanted, strict=True)]
        groups.append(_picked(vectors, chosen, count))
    return concatenated(groups, count)


def interleaved(periods: Periods, values: Mapping[int, Value]) -> Iterator[tuple[Piece, Value]]:
    """Yield contiguous vectors that contain the values of the residues of each period.

    A vector that contains none of them is left out: a period may be longer than a register.
    """
    count, step = periods.width, periods.step
    for group in range(periods.lanes // count):
        parts = {r: part_of(v, group * count, count, periods.lanes) for r, v in values.items()}
        for piece in periods.pieces(group, masked=True):
            elements = range(
                piece.start - group * count * step, piece.start - group * count * step + piece.lanes
            )
            chosen = [(e % step, e // step) for e in elements]
            if any(residue in values for residue, _ in chosen):
                yield piece, _picked(parts, chosen, count)


def _picked(vectors: Mapping[int, Value], chosen: Sequence[tuple[int, int]], count: int) -> Value:
    """Return a vector of lanes of several vectors; a lane of a missing one is unspecified.

    At least one lane is of a vector that exists.
    """
    keys = [k for k in vectors if any(k == home for home, _ in chosen)]
    (first, *others) = keys
    made: Value = vectors[first]
    placed = {first}
    if not others:
        return Shuffle(made, made, tuple(lane if k == first else 0 for k, lane in chosen))
    for position, key in enumerate(others):
        lanes = tuple(
            count + lane if home == key else (lane if position == 0 else k) if home in placed else 0
            for k, (home, lane) in enumerate(chosen)
        )
        made = Shuffle(made, vectors[key], lanes)
        placed.add(key)
    return made


def part_of(value: Value, start: int, count: int, lanes: int) -> Value:
    """Return adjacent lanes of a vector."""
    if count == lanes:
        return value
    return Shuffle(value, value, tuple(range(start, start + count)))


def concatenated(parts: Sequence[Value], count: int) -> Value:
    """Return the concatenation of a power of two of vectors of ``count`` lanes."""
    while len(parts) > 1:
        count *= 2
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [Shuffle(a, b, tuple(range(count))) for a, b in pairs]
    return parts[0]


def reversed_lanes(value: Value, lanes: int) -> Value:
    """Return a vector in reverse order."""
    return Shuffle(value, value, tuple(reversed(range(lanes))))


def piece_mask(mask: Value, periods: Periods, piece: Piece, residues: frozenset[int]) -> Value:
    """Return the mask of a contiguous access: that of the lane, for some residues of a period.

    If the residues are all up to the span of the last period, the mask of leading lanes includes
    the elements between the accessed ones.
    """
    match mask:
        case Predicate(condition=claim, lane=lane) if lane is not None:
            length = prefix_length(claim, lane)
            if length is not None and residues == frozenset(range(periods.span)):
                return _prefix(length, periods, piece)
        case Binary(op="and", left=left, right=right):
            both = (piece_mask(m, periods, piece, residues) for m in (left, right))
            return Binary("and", *both)
        case _:
            pass
    elements = range(piece.start, piece.start + piece.lanes)
    step, none = periods.step, Const(value=False, type=VectorType(bool_, periods.lanes))
    picked = (e // step if e % step in residues else periods.lanes for e in elements)
    return Shuffle(mask, none, tuple(picked))


def _prefix(length: Expr, periods: Periods, piece: Piece) -> Predicate:
    """Return the mask of the elements from the first period to the span of the last."""
    lane = var("element", lower=0, upper=piece.lanes - 1)
    count = length * periods.step - (periods.step - periods.span)
    return Predicate(lane + piece.start < count, lane, piece.lanes)
