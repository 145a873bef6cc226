"""Thread-IR values as expressions, one per lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from ...ir.dtype import i32
from ...ir.symbolic import Expr, as_expr
from ...ir.thread.nodes import (
    Address,
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Compare,
    Const,
    Extract,
    Fma,
    Gather,
    Index,
    Load,
    Predicate,
    Reduce,
    Reg,
    Select,
    Shuffle,
    Unary,
    Value,
)
from ...ir.thread.types import POINTER, VectorType
from ...ir.thread.visit import operands
from .emitter import Emitter, Lanes, bare, dtype_of, vector
from .memory import Array, Pointers, element_index, lane_index, load, width_of
from .operations import binary, bits_as, cast, compare, unary
from .terms import condition, fits, short, wide
from .types import WORD, integer, literal, type_name

_ZERO: Final = as_expr(0)
_NOWHERE: Final = Reg("nowhere", POINTER)
"""The base of a distance between addresses."""


class Values:
    """The values of one kernel."""

    def __init__(self, em: Emitter, pointers: Pointers) -> None:
        """Initialize for a kernel, whose arrays are in ``pointers``."""
        self.em = em
        self.pointers = pointers
        self._shared: frozenset[int] = frozenset()
        self._known: dict[int, Lanes] = {}

    def statement(self, roots: tuple[Value, ...]) -> None:
        """Begin a statement: a value that occurs several times in it is computed once."""
        seen: Counter[int] = Counter()
        pending = list(roots)
        while pending:
            value = pending.pop()
            seen[id(value)] += 1
            if seen[id(value)] == 1:
                pending.extend(operands(value))
        self._known = {}
        self._shared = frozenset(key for key, count in seen.items() if count > 1)

    def lanes(self, value: Value) -> Lanes:
        """Return the expressions of a value."""
        if isinstance(value, Reg):
            return self.em.declare(value)
        known = self._known.get(id(value))
        if known is not None:
            return known
        found = self._lanes(value)
        if id(value) in self._shared and not isinstance(value, Const):
            found = [self.em.keep(x) for x in found]
            self._known[id(value)] = found
        return found

    def one(self, value: Value) -> str:
        """Return the expression of a scalar."""
        return self.lanes(value)[0]

    def kept(self, value: Value) -> Lanes:
        """Return the names of the lanes of a value that is computed before the statement."""
        return [self.em.keep(x) for x in self.lanes(value)]

    def array(self, base: Value) -> Array:
        """Return the array of an address."""
        root, _ = self.pointers.resolve(base)
        return self.pointers.arrays[root]

    def _lanes(self, value: Value) -> Lanes:
        em = self.em
        match value:
            case Const(value=number, type=of):
                return [literal(number, of.dtype)] * of.lanes
            case Index():
                return self._index(value)
            case Predicate():
                return self._predicate(value)
            case Load() | Gather():
                return self._loaded(value)
            case Unary(op=op, operand=x):
                of = dtype_of(x)
                return [unary(em, op, a, of) for a in self.lanes(x)]
            case Binary(op=op, left=x, right=y):
                of = dtype_of(x)
                return self._each(lambda a, b: binary(em, op, a, b, of), x, y)
            case Compare(op=op, left=x, right=y):
                of = dtype_of(x)
                return self._each(lambda a, b: compare(em, op, a, b, of), x, y)
            case Select(condition=bit, then=x, otherwise=y):
                chosen = self.lanes(bit)
                pairs = zip(self.lanes(x), self.lanes(y), strict=True)
                bits = chosen * vector(x).lanes if len(chosen) == 1 else chosen
                return [
                    f"select({bare(b)}, {bare(a)}, {bare(c)})"
                    for (a, b), c in zip(pairs, bits, strict=True)
                ]
            case Fma():
                return self._fused(value)
            case Cast(type=of, operand=Index(expr=term) as x) if fits(em, term):
                low = partial(short, em, term)
                return [cast(em, self._in_lane(x, k, low), i32, of.dtype) for k in range(of.lanes)]
            case Cast(type=of, operand=x):
                return [cast(em, a, dtype_of(x), of.dtype) for a in self.lanes(x)]
            case _:
                return self._laned(value)

    def _each(self, write: Callable[[str, str], str], x: Value, y: Value) -> Lanes:
        return [write(a, b) for a, b in zip(self.lanes(x), self.lanes(y), strict=True)]

    def _laned(self, value: Value) -> Lanes:
        match value:
            case Bitcast(type=VectorType() as of, operand=x):
                if vector(x).lanes != of.lanes:
                    raise self.em.unsupported(f"a reinterpretation of {x.type} as {of}")
                return [bits_as(a, dtype_of(x), of.dtype) for a in self.lanes(x)]
            case Broadcast(operand=x, lanes=lanes):
                return [self.em.keep(self.one(x))] * lanes
            case Extract(operand=x, lane=lane):
                return [self.lanes(x)[lane]]
            case Shuffle(left=x, right=y, lanes=chosen):
                both = [*self.lanes(x), *self.lanes(y)]
                return [both[k] for k in chosen]
            case Reduce(op=op, operand=x):
                of = dtype_of(x)
                first, *others = self.lanes(x)
                for other in others:
                    first = binary(self.em, op, first, other, of)
                return [first]
            case _:
                raise self.em.unsupported(f"a value {type(value).__name__}")

    def _fused(self, value: Fma) -> Lanes:
        """Return ``a * b + c``, which machines may round twice."""
        of = dtype_of(value)
        if value.exact or of.name != "f32":
            raise self.em.unsupported(
                f"an exact fused multiply-add of dtype {of}",
                hint="use a product and a sum, or compile for another target",
            )
        lanes = zip(*(self.lanes(x) for x in (value.a, value.b, value.c)), strict=True)
        return [
            f"fma({bare(a)}, {bare(b)}, {bare(c)})"
            for a, b, c in ((self.em.opaque(a, b)[0], b, c) for a, b, c in lanes)
        ]

    def _index(self, value: Index) -> Lanes:
        em = self.em
        if value.lane is None:
            return [wide(em, value.expr)] * value.lanes
        return [self._in_lane(value, k, lambda: wide(em, value.expr)) for k in range(value.lanes)]

    def _predicate(self, value: Predicate) -> Lanes:
        em = self.em
        if value.lane is None:
            return [condition(em, value.condition)] * value.lanes
        return [
            self._in_lane(value, k, lambda: condition(em, value.condition))
            for k in range(value.lanes)
        ]

    def _in_lane(self, value: Index | Predicate, k: int, write: Callable[[], str]) -> str:
        lane = value.lane
        if lane is None:
            return write()
        self.em.variables[lane] = integer(k), True
        return write()

    def _loaded(self, value: Load | Gather) -> Lanes:
        of = value.type
        if not isinstance(of, VectorType):
            raise self.em.unsupported("a load of an address")
        masks = None if value.mask is None else self.kept(value.mask)
        array = self.array(value.base if isinstance(value, Gather) else value.address.base)
        found: Lanes = []
        for k, at in enumerate(self.positions(value, of)):
            if masks is None:
                found.append(load(self.em, array, of.dtype, at))
                continue
            name = self.em.names.make("part")
            self.em.line(f"var {name} = {literal(0, of.dtype)};")
            with self.em.block(f"if {bare(masks[k % len(masks)])}"):
                self.em.line(f"{name} = {bare(load(self.em, array, of.dtype, at))};")
            found.append(name)
        return found

    def positions(self, value: Load | Gather, of: VectorType) -> Lanes:
        """Return the index of each lane of a load."""
        if isinstance(value, Gather):
            return self.scattered(value.base, value.offsets, of)
        return self.located(value.address, value.stride, of)

    def located(self, address: Address, stride: Expr | None, of: VectorType) -> Lanes:
        """Return the index of each lane of an access at an address."""
        em = self.em
        first = element_index(em, self.pointers, address.base, address.offset, of.dtype)
        if of.lanes > 1 and not first.isidentifier() and len(first) > 24:
            first = em.keep(first, "at")
        step = ""
        if stride is not None:
            step = element_index(em, self.pointers, _NOWHERE, stride, of.dtype)
        return [lane_index(first, k, step) for k in range(of.lanes)]

    def scattered(self, base: Value, offsets: Value, of: VectorType) -> Lanes:
        """Return the index of each lane of an access at offsets."""
        em, width = self.em, width_of(of.dtype)
        if isinstance(offsets, Index):
            found: Lanes = []
            for k in range(of.lanes):
                if offsets.lane is not None:
                    em.variables[offsets.lane] = integer(k), True
                found.append(element_index(em, self.pointers, base, offsets.expr, of.dtype))
            return found
        start = element_index(em, self.pointers, base, _ZERO, of.dtype)
        each = [
            f"bitcast<i32>({x if x.isidentifier() else f'({x})'}.x)" for x in self.kept(offsets)
        ]
        return [x if start == "0i" else f"({start} + {x} / {width}i)" for x in each]


def short_value(values: Values, value: Value) -> str:
    """Return the low 32 bits of an integer of 64 bits."""
    if isinstance(value, Index) and value.lane is None:
        return short(values.em, value.expr)
    if isinstance(value, Cast) and value.type.dtype.bits == 64:
        inner = dtype_of(value.operand)
        if inner.is_integer and inner.bits <= 8 * WORD:
            word = values.one(value.operand)
            if type_name(inner) == "i32":
                return word
            return f"bitcast<i32>({bare(word)})"
    word = values.one(value)
    return f"bitcast<i32>({word if word.isidentifier() else f'({word})'}.x)"
