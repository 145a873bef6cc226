"""Symbolic integers and predicates as LLVM instructions, scalar or one value per lane.

Sums are emitted with outer variables first, so LLVM can hoist the loop-invariant part. Variables
are ordered by binding, never by creation, so equal programs have equal text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeVar

from ...ir.symbolic import (
    Add,
    And,
    Bool,
    BoolConst,
    Const,
    Eq,
    Expr,
    FloorDiv,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
    Ne,
    Or,
    Select,
    Var,
    const_value,
    substitute,
)
from ...ir.symbolic.terms import Term
from ...ir.thread.index_width import SHORT_LIMIT, prefix_length
from .emitter import REPORT, Emitter, UnboundVariableError
from .masks import constant_mask
from .types import iota, splat, vector

LONG_BITS: Final = 64
"""The number of bits of an integer that may be a size."""


class Lane:
    """The lane variable and the number of lanes."""

    __slots__ = ("count", "var")

    def __init__(self, var: Var, count: int) -> None:
        """Initialize."""
        self.var = var
        self.count = count


def _missing(em: Emitter, term: Term) -> UnboundVariableError:
    return UnboundVariableError(
        f"symbol {term!r} is used but not bound",
        where=f"function {em.function.name!r}",
        hint=REPORT,
    )


def _shape(em: Emitter, term: Term, ranks: dict[Var, int]) -> tuple[int, ...]:
    if isinstance(term, Var):
        return (1, ranks.setdefault(term, len(ranks)))
    if isinstance(term, Const):
        return (0, term.value)
    below = [_shape(em, child, ranks) for child in term.children]
    head = (2 + _TAGS[type(term)], len(below))
    return (*head, *(n for part in below for n in part))


_T = TypeVar("_T", bound=Term)

_KINDS = (Mul, FloorDiv, Mod, Min, Max, Select, Add, Eq, Ne, Le, Lt, And, Or, BoolConst)
_TAGS: dict[type[Term], int] = {kind: k for k, kind in enumerate(_KINDS)}


def _rank(em: Emitter, term: Term) -> tuple[int, tuple[int, ...]]:
    innermost = max((em.ranks.get(v, -1) for v in term.free), default=-1)
    return innermost, _shape(em, term, em.ranks)


def _outer_first(em: Emitter, terms: tuple[tuple[Expr, int], ...]) -> list[tuple[Expr, int]]:
    return sorted(terms, key=lambda item: (_rank(em, item[0]), item[1]))


def _ordered(em: Emitter, terms: tuple[_T, ...]) -> list[_T]:
    return sorted(terms, key=lambda term: _rank(em, term))


def fits(em: Emitter, e: Expr) -> bool:
    """Return whether a term, with its intermediate values, fits into 32 bits."""
    if isinstance(e, Const):
        return -SHORT_LIMIT <= e.value < SHORT_LIMIT
    return e in em.narrow


def integer(em: Emitter, e: Expr) -> str:
    """Return the operand of a term as a 64-bit integer."""
    if isinstance(e, Const):
        return str(e.value)
    found = em.integers.get(e)
    if found is None:
        if em.narrow_scalars and fits(em, e):
            return extended(em, e)
        found = _compute(em, e, _Scalar(em, 64))
        em.remember(e, found)
    return found


def short(em: Emitter, e: Expr) -> str:
    """Return the operand of a term that fits into 32 bits as a 32-bit integer."""
    if isinstance(e, Const):
        return str(e.value)
    found = em.shorts.get(e)
    if found is None:
        if e in em.integers or not em.narrow_scalars or isinstance(e, Var):
            found = em.op(f"trunc i64 {integer(em, e)} to i32")
        else:
            found = _compute(em, e, _Scalar(em, 32))
        em.remember_short(e, found)
    return found


def extended(em: Emitter, e: Expr) -> str:
    """Return the operand of a term that fits into 32 bits as a 64-bit integer."""
    if isinstance(e, Const):
        return str(e.value)
    found = em.integers.get(e)
    if found is None:
        if isinstance(e, Var) and e not in em.shorts:
            raise _missing(em, e)
        # A sign extension, because LLVM splits those of sums into constant and variable parts.
        found = em.op(f"sext i32 {short(em, e)} to i64")
        em.remember(e, found)
    return found


class _Scalar:
    """The emission of terms as scalars."""

    lanes = 1

    def __init__(self, em: Emitter, bits: int) -> None:
        self.em = em
        self.bits = bits
        self.type = f"i{bits}"

    def term(self, e: Expr) -> str:
        return short(self.em, e) if self.bits < LONG_BITS else integer(self.em, e)

    def condition(self, b: Bool) -> str:
        return condition(self.em, b)

    def number(self, value: int) -> str:
        return str(value)

    def intrinsic(self, name: str) -> str:
        return f"llvm.{name}.i{self.bits}"


class _Vector:
    """The emission of terms as vectors, with one element per lane."""

    def __init__(self, em: Emitter, lane: Lane, bits: int) -> None:
        self.em = em
        self.lane = lane
        self.lanes = lane.count
        self.bits = bits
        self.type = vector(f"i{bits}", lane.count)

    def term(self, e: Expr) -> str:
        if self.bits < LONG_BITS:
            return shorts(self.em, e, self.lane)
        return integers(self.em, e, self.lane)

    def condition(self, b: Bool) -> str:
        return conditions(self.em, b, self.lane)

    def number(self, value: int) -> str:
        return splat(str(value), f"i{self.bits}", self.lanes)

    def intrinsic(self, name: str) -> str:
        return f"llvm.{name}.v{self.lanes}i{self.bits}"


_Writer = _Scalar | _Vector


def _compute(em: Emitter, e: Expr, w: _Writer) -> str:
    match e:
        case Var():
            raise _missing(em, e)
        case Add(terms=terms, constant=constant):
            return _sum(em, terms, constant, w)
        case Mul(factors=factors):
            return _product(em, tuple(factors), w)
        case FloorDiv(numerator=a, divisor=b):
            return _quotient(em, a, b, w)
        case Mod(numerator=a, divisor=b):
            return _remainder(em, a, b, w)
        case Min(args=args):
            return _extreme(em, "smin", args, w)
        case Max(args=args):
            return _extreme(em, "smax", args, w)
        case Select(condition=c, then=then, otherwise=otherwise):
            bit = w.condition(c)
            bits = vector("i1", w.lanes)
            a, b = w.term(then), w.term(otherwise)
            return em.op(f"select {bits} {bit}, {w.type} {a}, {w.type} {b}")
        case _:
            raise _missing(em, e)


def _product(em: Emitter, factors: tuple[Expr, ...], w: _Writer) -> str:
    first, *others = _ordered(em, factors)
    total = w.term(first)
    for factor in others:
        total = em.op(f"mul nsw {w.type} {total}, {w.term(factor)}")
    return total


def _extreme(em: Emitter, name: str, args: tuple[Expr, ...], w: _Writer) -> str:
    first, *others = _ordered(em, args)
    total = w.term(first)
    for arg in others:
        pair = ((w.type, total), (w.type, w.term(arg)))
        total = em.call(w.intrinsic(name), w.type, pair)
    return total


def _sum(em: Emitter, terms: tuple[tuple[Expr, int], ...], constant: int, w: _Writer) -> str:
    total: str | None = None
    for term, coefficient in _outer_first(em, terms):
        part = w.term(term)
        if coefficient == -1 and total is not None:
            total = em.op(f"sub nsw {w.type} {total}, {part}")
            continue
        if coefficient != 1:
            part = em.op(f"mul nsw {w.type} {part}, {w.number(coefficient)}")
        total = part if total is None else em.op(f"add nsw {w.type} {total}, {part}")
    if total is None:
        return w.number(constant)
    return em.op(f"add nsw {w.type} {total}, {w.number(constant)}") if constant else total


def _power_of_two(e: Expr) -> int | None:
    if isinstance(e, Const) and e.value > 0 and e.value & (e.value - 1) == 0:
        return e.value.bit_length() - 1
    return None


def _non_negative(e: Expr) -> bool:
    return e.lower is not None and e.lower >= 0


def _divisor(em: Emitter, b: Expr, w: _Writer) -> str:
    """Return a divisor that is never 0, since both sides of a ``Select`` are evaluated."""
    operand = w.term(b)
    if b.lower is not None and b.lower > 0:
        return operand
    zero = em.op(f"icmp eq {w.type} {operand}, {w.number(0)}")
    bits = vector("i1", w.lanes)
    return em.op(f"select {bits} {zero}, {w.type} {w.number(1)}, {w.type} {operand}")


def _quotient(em: Emitter, a: Expr, b: Expr, w: _Writer) -> str:
    shift = _power_of_two(b)
    if shift is not None:
        return em.op(f"ashr {w.type} {w.term(a)}, {w.number(shift)}")
    x, y = w.term(a), _divisor(em, b, w)
    if _non_negative(a) and _non_negative(b):
        return em.op(f"udiv {w.type} {x}, {y}")
    if _never_minus_one(b):
        quotient = em.op(f"sdiv {w.type} {x}, {y}")
        return em.op(f"add {w.type} {quotient}, {_floor_step(em, x, y, w)}")
    minus, y = _without_minus_one(em, y, w)
    quotient = em.op(f"sdiv {w.type} {x}, {y}")
    floored = em.op(f"add {w.type} {quotient}, {_floor_step(em, x, y, w)}")
    negated = em.op(f"sub {w.type} {w.number(0)}, {x}")
    bits = vector("i1", w.lanes)
    return em.op(f"select {bits} {minus}, {w.type} {negated}, {w.type} {floored}")


def _never_minus_one(b: Expr) -> bool:
    return (b.lower is not None and b.lower > -1) or (b.upper is not None and b.upper < -1)


def _without_minus_one(em: Emitter, y: str, w: _Writer) -> tuple[str, str]:
    """Return whether a divisor is -1, and the divisor with 1 in place of -1.

    The machine instruction traps for the smallest integer divided by -1.
    """
    bits = vector("i1", w.lanes)
    minus = em.op(f"icmp eq {w.type} {y}, {w.number(-1)}")
    return minus, em.op(f"select {bits} {minus}, {w.type} {w.number(1)}, {w.type} {y}")


def _floor_step(em: Emitter, x: str, y: str, w: _Writer) -> str:
    """Return -1 if truncated division rounded up, else 0."""
    remainder = em.op(f"srem {w.type} {x}, {y}")
    inexact = em.op(f"icmp ne {w.type} {remainder}, {w.number(0)}")
    signs = em.op(f"xor {w.type} {remainder}, {y}")
    opposite = em.op(f"icmp slt {w.type} {signs}, {w.number(0)}")
    bits = vector("i1", w.lanes)
    step = em.op(f"and {bits} {inexact}, {opposite}")
    return em.op(f"sext {bits} {step} to {w.type}")


def _remainder(em: Emitter, a: Expr, b: Expr, w: _Writer) -> str:
    if _power_of_two(b) is not None and isinstance(b, Const):
        return em.op(f"and {w.type} {w.term(a)}, {w.number(b.value - 1)}")
    x, y = w.term(a), _divisor(em, b, w)
    if _non_negative(a) and _non_negative(b):
        return em.op(f"urem {w.type} {x}, {y}")
    if not _never_minus_one(b):
        _, y = _without_minus_one(em, y, w)  # the remainder is 0 for both
    remainder = em.op(f"srem {w.type} {x}, {y}")
    correction = em.op(f"and {w.type} {_floor_step(em, x, y, w)}, {y}")
    return em.op(f"add {w.type} {remainder}, {correction}")


def condition(em: Emitter, b: Bool) -> str:
    """Return the operand of a predicate as an ``i1``."""
    found = em.conditions.get(b)
    if found is None:
        found = _decide(em, b, _Scalar(em, LONG_BITS))
        em.remember_condition(b, found)
    return found


_COMPARISON: dict[type[Bool], Literal["eq", "ne", "sle", "slt"]] = {
    Eq: "eq",
    Ne: "ne",
    Le: "sle",
    Lt: "slt",
}


def _decide(em: Emitter, b: Bool, w: _Writer) -> str:
    bits = vector("i1", w.lanes)
    match b:
        case BoolConst(value=value):
            return splat("true" if value else "false", "i1", w.lanes)
        case Eq(left=x, right=y) | Ne(left=x, right=y) | Le(left=x, right=y) | Lt(left=x, right=y):
            w = _comparing(w, x, y)
            kind = _COMPARISON[type(b)]
            return em.op(f"icmp {kind} {w.type} {w.term(x)}, {w.term(y)}")
        case And(args=args):
            return _join(em, f"and {bits}", args, w.condition)
        case Or(args=args):
            return _join(em, f"or {bits}", args, w.condition)
        case _:
            raise _missing(em, b)


def _comparing(w: _Writer, x: Expr, y: Expr) -> _Writer:
    """Return the emission of the sides of a comparison: with 32 bits if both fit."""
    em = w.em
    bits = 32 if fits(em, x) and fits(em, y) else LONG_BITS
    if isinstance(w, _Vector):
        return _Vector(em, w.lane, bits)
    return _Scalar(em, bits if em.narrow_scalars else LONG_BITS)


def _join(
    em: Emitter, instruction: str, args: tuple[Bool, ...], each: Callable[[Bool], str]
) -> str:
    first, *others = _ordered(em, args)
    total = each(first)
    for arg in others:
        total = em.op(f"{instruction} {total}, {each(arg)}")
    return total


def spread(em: Emitter, operand: str, element: str, lanes: int) -> str:
    """Broadcast a scalar to all lanes."""
    if lanes == 1:
        return operand
    of = vector(element, lanes)
    one = em.op(f"insertelement {of} poison, {element} {operand}, i64 0")
    return em.op(f"shufflevector {of} {one}, {of} poison, <{lanes} x i32> zeroinitializer")


def integers(em: Emitter, e: Expr, lane: Lane) -> str:
    """Return a vector of 64-bit integers: the value of a term per lane."""
    if lane.count == 1:
        with em.scope():
            em.bind(lane.var, "0")
            return integer(em, e)
    if lane.var not in e.free:
        if isinstance(e, Const):
            return splat(str(e.value), "i64", lane.count)
        return spread(em, integer(em, e), "i64", lane.count)
    if e is lane.var:
        return iota(lane.count)
    if fits(em, e):
        of, narrow = vector("i64", lane.count), vector("i32", lane.count)
        return em.op(f"sext {narrow} {shorts(em, e, lane)} to {of}")
    if isinstance(e, Add):
        return _split_sum(em, e, _Vector(em, lane, LONG_BITS))
    return _compute(em, e, _Vector(em, lane, LONG_BITS))


def shorts(em: Emitter, e: Expr, lane: Lane) -> str:
    """Return a vector of 32-bit integers: the value of a term that fits, per lane."""
    if lane.count == 1:
        with em.scope():
            em.bind(lane.var, "0", short=True)
            em.bind(lane.var, "0")
            return short(em, e)
    if lane.var not in e.free:
        if isinstance(e, Const):
            return splat(str(e.value), "i32", lane.count)
        return spread(em, short(em, e), "i32", lane.count)
    if e is lane.var:
        return iota(lane.count, 32)
    w = _Vector(em, lane, 32)
    return _split_sum(em, e, w) if isinstance(e, Add) else _compute(em, e, w)


def _split_sum(em: Emitter, e: Add, w: _Vector) -> str:
    """Emit a sum with its uniform part computed once, as a scalar."""
    lane = w.lane
    varying = tuple(t for t in e.terms if lane.var in t[0].free)
    rest: Expr = e
    for term, coefficient in varying:
        rest = rest - term * coefficient
    total = _sum(em, varying, 0, w)
    if const_value(rest) == 0:
        return total
    return em.op(f"add nsw {w.type} {total}, {w.term(rest)}")


def conditions(em: Emitter, b: Bool, lane: Lane) -> str:
    """Return a mask: the value of a predicate per lane."""
    if lane.count == 1:
        with em.scope():
            em.bind(lane.var, "0")
            return condition(em, b)
    if lane.var not in b.free:
        if isinstance(b, BoolConst):
            return splat("true" if b.value else "false", "i1", lane.count)
        return spread(em, condition(em, b), "i1", lane.count)
    if not b.free - {lane.var}:
        bits = [substitute(b, {lane.var: k}) for k in range(lane.count)]
        if all(isinstance(bit, BoolConst) for bit in bits):
            return constant_mask([bit.value for bit in bits if isinstance(bit, BoolConst)])
    first = _first_lanes(em, b, lane)
    return first if first is not None else _decide(em, b, _Vector(em, lane, LONG_BITS))


def _first_lanes(em: Emitter, b: Bool, lane: Lane) -> str | None:
    """Emit ``lane < rest``, the mask of a vector tail, as a comparison of narrow integers."""
    rest = prefix_length(b, lane.var)
    if rest is None:
        return None
    low = em.call("llvm.smax.i64", "i64", (("i64", integer(em, rest)), ("i64", "0")))
    count = em.call("llvm.smin.i64", "i64", (("i64", low), ("i64", str(lane.count))))
    bits = 8 if lane.count > 16 else 32
    narrow = em.op(f"trunc i64 {count} to i{bits}")
    limit = spread(em, narrow, f"i{bits}", lane.count)
    return em.op(f"icmp ult {vector(f'i{bits}', lane.count)} {iota(lane.count, bits)}, {limit}")
