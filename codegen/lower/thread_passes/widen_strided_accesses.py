"""Contiguous accesses and shuffles in place of accesses at a small constant distance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ....ir.dtype import bool_
from ....ir.symbolic import const_value
from ....ir.symbolic.terms import linear_terms
from ....ir.thread.function import ThreadFunc
from ....ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Body,
    Const,
    Gather,
    If,
    Load,
    Loop,
    Parallel,
    Predicate,
    Reg,
    Return,
    Scatter,
    Stmt,
    Store,
    Value,
    While,
)
from ....ir.thread.rewrite import ValueRewriter
from ....ir.thread.types import VectorType
from ....ir.thread.visit import statement_values, walk, walk_values
from ....schedules.launch.lowering_pass import CPU, ThreadPass
from ....target.cpus import Cpu
from ....target.target import Target
from ..lane_shuffles import Periods, Piece, deinterleaved, interleaved, piece_mask, reversed_lanes
from ..vector_unit import vector_unit

MAX_STEP: Final = 4
"""The largest distance of elements for which contiguous accesses are faster than single ones."""

MASKED_BITS: Final = (32, 64)
"""The widths of elements for which all x86-64 CPUs with vectors have masked accesses."""

WIDE: Final = 512
"""The width in bits of the vectors of CPUs that have masked accesses of all elements."""

Access: TypeAlias = "Load | Store"
Key: TypeAlias = "tuple[Hashable, ...]"


@dataclass(frozen=True, slots=True)
class _Strided:
    """An access at a constant distance, and its first element as a constant number of bytes."""

    access: Access
    of: VectorType
    step: int
    low: int
    key: Key

    @property
    def period(self) -> int:
        """The number of bytes between two lanes."""
        return abs(self.step) * self.of.width


@dataclass(frozen=True, slots=True)
class _Span:
    """The elements of a period that are accessed: ``size`` from byte ``start`` on."""

    start: int
    size: int


class WidenStridedAccesses(ThreadPass):
    """Replace accesses at a small constant distance by contiguous accesses and shuffles.

    Before::
        x0 = load.f32x8(x[i * 64], step=8)
        x1 = load.f32x8(x[i * 64 + 4], step=8)
        y[i * 64, step=8]: f32x8 = x1
        y[i * 64 + 4, step=8]: f32x8 = x0
    After::
        low = load.f32x8(x[i * 64])
        high = load.f32x8(x[i * 64 + 32])
        y[i * 64]: f32x8 = shuffle(x1, x0, (0, 8, 1, 9, 2, 10, 3, 11))
        y[i * 64 + 32]: f32x8 = shuffle(x1, x0, (4, 12, 5, 13, 6, 14, 7, 15))

    with ``x0 = shuffle(low, high, (0, 2, 4, 6, 8, 10, 12, 14))``, and ``x1`` accordingly. The loads
    end at the last element that the lanes access, so they are in bounds if the accesses are.
    Stores that do not cover all elements between the first and the last remain unchanged, unless
    the CPU has masked stores.
    """

    __slots__ = ()

    targets = CPU

    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the kernel with contiguous accesses."""
        unit = vector_unit(target)
        if not any(_strided(a, unit) for s in walk(kernel.body) for a in _accesses(s)):
            return kernel
        return replace(kernel, body=_Widening(unit, frozenset(kernel.distinct)).body(kernel.body))


def _accesses(statement: Stmt) -> Iterator[Access]:
    """Yield the strided accesses of a statement."""
    if isinstance(statement, Store) and statement.stride is not None:
        yield statement
    if isinstance(statement, Assign | Store | Scatter):
        for value in walk_values(statement_values(statement)):
            if isinstance(value, Load) and value.stride is not None:
                yield value


def _strided(access: Access, unit: Cpu) -> _Strided | None:
    """Return the shape of an access that may be widened."""
    of = access.type if isinstance(access, Load) else access.value.type
    stride = None if access.stride is None else const_value(access.stride)
    if stride is None or not isinstance(of, VectorType) or of.dtype == bool_ or of.lanes < 2:
        return None
    step, rest = divmod(stride, of.width)
    if rest or step in (0, 1) or abs(step) > MAX_STEP or of.lanes & (of.lanes - 1):
        return None
    if unit.lanes(of.dtype.bits) < 2:  # a register contains no other element to shuffle
        return None
    if access.mask is not None and not _has_masks(of, unit):
        return None
    terms, constant = linear_terms(access.address.offset)
    low = constant + min(0, stride * (of.lanes - 1))
    key = (access.address.base, terms, stride, of, _mask_key(access.mask))
    return _Strided(access, of, step, low, key)


def _has_masks(of: VectorType, unit: Cpu) -> bool:
    if not unit.triple.startswith("x86_64"):
        return False
    return unit.vector_bits == WIDE or of.dtype.bits in MASKED_BITS


def _mask_key(mask: Value | None) -> Hashable:
    match mask:
        case Predicate(condition=claim, lane=lane, lanes=lanes):
            return claim, lane, lanes
        case Binary(op=op, left=left, right=right):
            return op, _mask_key(left), _mask_key(right)
        case _:
            return mask


def _spans(accesses: Iterable[_Strided]) -> dict[Key, list[_Span]]:
    """Return the spans of accesses that are executed together, by key."""
    starts: defaultdict[Key, set[int]] = defaultdict(set)
    periods: dict[Key, tuple[int, int]] = {}
    for one in accesses:
        starts[one.key].add(one.low)
        periods[one.key] = one.period, one.of.width
    return {key: list(_merged(sorted(found), *periods[key])) for key, found in starts.items()}


def _merged(starts: Sequence[int], period: int, width: int) -> Iterator[_Span]:
    """Yield spans that cover the elements at some bytes, each within one period."""
    first = last = None
    for start in starts:
        if first is None or last is None:
            first = last = start
        elif start - first < period and (start - first) % width == 0:
            last = start
        else:
            yield _Span(first, (last - first) // width + 1)
            first = last = start
    if first is not None and last is not None:
        yield _Span(first, (last - first) // width + 1)


class _Widening:
    """A rewriter of the statements of one kernel."""

    def __init__(self, unit: Cpu, distinct: frozenset[Reg]) -> None:
        self._unit = unit
        self._distinct = distinct

    def body(self, body: Body) -> Body:
        """Return a list of statements with contiguous accesses."""
        made: list[Stmt] = []
        region: list[Stmt] = []
        for statement in body:
            region.append(self._nested(statement))
            if any(isinstance(s, Return) for s in walk((statement,))):
                made.extend(self._region(region))
                region = []
        return (*made, *self._region(region))

    def _nested(self, statement: Stmt) -> Stmt:
        match statement:
            case Loop(body=inner) | While(body=inner) | Parallel(body=inner):
                return replace(statement, body=self.body(inner))
            case If(then=then, otherwise=otherwise):
                return replace(statement, then=self.body(then), otherwise=self.body(otherwise))
            case _:
                return statement

    def _region(self, region: Sequence[Stmt]) -> Iterator[Stmt]:
        """Yield statements that are all executed if the first is, with contiguous accesses."""
        found = [_strided(a, self._unit) for s in region for a in _accesses(s)]
        spans = _spans(one for one in found if one is not None)
        if not spans:
            yield from region
            return
        at = 0
        while at < len(region):
            run = self._run(region, at)
            statements = region[at : at + len(run)] if run else (region[at],)
            loaded = [self._with_loads(s, spans) for s in statements]
            stores = [s for s in loaded if isinstance(s, Store)]
            yield from self._stored(run, stores) if run else loaded
            at += len(statements)

    def _with_loads(self, statement: Stmt, spans: Mapping[Key, list[_Span]]) -> Stmt:
        if not isinstance(statement, Assign | Store | Scatter):
            return statement
        if not any(isinstance(a, Load) for a in _accesses(statement)):
            return statement
        return ValueRewriter(_Loads(self._unit, spans)).statement(statement)

    def _run(self, region: Sequence[Stmt], at: int) -> tuple[_Strided, ...]:
        """Return adjacent stores, the first at an index, that one contiguous store replaces."""
        run: list[_Strided] = []
        for statement in region[at : at + MAX_STEP]:
            one = _strided(statement, self._unit) if isinstance(statement, Store) else None
            if one is None or not self._joins(run, one):
                break
            run.append(one)
        if not run:
            return ()
        masked = self._unit.vector_bits == WIDE and _has_masks(run[0].of, self._unit)
        return tuple(run) if masked or len(run) == run[0].step else ()

    def _joins(self, run: Sequence[_Strided], one: _Strided) -> bool:
        if one.step < 0:
            return False
        if not run:
            return True
        lows = [other.low for other in run]
        low, high = min(*lows, one.low), max(*lows, one.low)
        if one.key != run[0].key or one.low in lows or high - low >= one.period:
            return False
        if (one.low - lows[0]) % one.of.width:
            return False
        return not any(self._reads(one.access, other) for other in run)

    def _reads(self, access: Access, written: _Strided) -> bool:
        """Return whether a store may read an element that an earlier store writes."""
        base = written.access.address.base
        for value in walk_values(statement_values(access)) if isinstance(access, Store) else ():
            if isinstance(value, Load | Gather) and not self._disjoint(value, base, written):
                return True
        return False

    def _disjoint(self, read: Load | Gather, base: Value, written: _Strided) -> bool:
        source = read.address.base if isinstance(read, Load) else read.base
        if source is not base:
            return source in self._distinct and base in self._distinct
        one = _strided(read, self._unit) if isinstance(read, Load) else None
        return (
            one is not None
            and one.key == written.key
            and (
                (one.low - written.low) % written.period >= written.of.width
                and (written.low - one.low) % written.period >= written.of.width
            )
        )

    def _stored(self, run: tuple[_Strided, ...], stores: Sequence[Store]) -> Iterator[Stmt]:
        """Yield contiguous stores of the values of strided ones."""
        first, low = run[0], min(one.low for one in run)
        of, start = first.of, first.access.address
        values: dict[int, Value] = {}
        for one, store in zip(run, stores, strict=True):
            value = store.value
            if not isinstance(value, Const | Reg):
                register = Reg("lanes", of)
                yield Assign(register, value, store.source)
                value = register
            values[(one.low - low) // of.width] = value
        periods = Periods(of.lanes, first.step, first.step, self._unit.lanes(of.dtype.bits))
        origins = frozenset(o for store in stores for o in store.source.origins)
        source = replace(stores[0].source, origins=origins)
        residues = frozenset(values)
        mask = stores[0].mask
        if mask is None and len(values) < first.step:
            mask = Const(value=True, type=VectorType(bool_, of.lanes))
        for piece, value in interleaved(periods, dict(sorted(values.items()))):
            offset = start.offset + (low - first.low + piece.start * of.width)
            bits = None if mask is None else piece_mask(mask, periods, piece, residues)
            yield Store(replace(start, offset=offset), value, None, bits, source)


class _Loads:
    """The replacement of strided loads in the values of one statement."""

    def __init__(self, unit: Cpu, spans: Mapping[Key, list[_Span]]) -> None:
        self._unit = unit
        self._spans = spans
        self._made: dict[tuple[Hashable, ...], Load] = {}

    def __call__(self, value: Value, rebuilt: Value) -> Value:
        one = _strided(value, self._unit) if isinstance(value, Load) else None
        if one is None or not isinstance(rebuilt, Load):
            return rebuilt
        spans = self._spans[one.key]
        span = next(s for s in spans if 0 <= (one.low - s.start) // one.of.width < s.size)
        return self._loaded(one, rebuilt, span)

    def _loaded(self, one: _Strided, load: Load, span: _Span) -> Value:
        of, forward = one.of, one.step > 0
        periods = Periods(of.lanes, abs(one.step), span.size, self._unit.lanes(of.dtype.bits))
        mask = load.mask
        if mask is not None and not forward:
            mask = reversed_lanes(mask, of.lanes)
        residues = frozenset(range(span.size))
        terms_at = linear_terms(load.address.offset)[1]

        def piece_load(piece: Piece) -> Load:
            key = (one.key, span.start, piece)
            if key not in self._made:
                offset = load.address.offset + (span.start - terms_at + piece.start * of.width)
                bits = None if mask is None else piece_mask(mask, periods, piece, residues)
                address = Address(load.address.base, offset, load.address.alignment)
                self._made[key] = Load(VectorType(of.dtype, piece.lanes), address, None, bits)
            return self._made[key]

        residue = (one.low - span.start) // of.width
        found = deinterleaved(periods, residue, piece_load, masked=mask is not None)
        return found if forward else reversed_lanes(found, of.lanes)
