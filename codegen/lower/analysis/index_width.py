"""Ranges of the integer terms of a kernel, and the terms that fit into 32 bits.

The range of a term is ``-low <= term <= high``, where ``low`` and ``high`` are sums of products of
parameters with coefficients of at least 0. The parts of a sum are added separately by sign, so its
partial sums are in the same range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from ....ir.symbolic import (
    TRUE,
    Add,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Var,
    as_expr,
    const_value,
    postorder,
    product,
    total,
)
from ....ir.symbolic.assumptions import Assumptions
from ....ir.symbolic.rules.splits import divide_product
from ....ir.symbolic.terms import factors_of, linear_terms
from ....ir.thread.function import ThreadFunc
from ....ir.thread.index_width import SHORT_LIMIT, IndexWidth
from ....ir.thread.nodes import Cast, Index, Let, Loop, Parallel, Predicate, Stmt, Value
from ....ir.thread.types import VectorType
from ....ir.thread.visit import statement_values, walk, walk_values

Polynomial: TypeAlias = Mapping[Expr | None, int]
"""The coefficients of products of parameters; the key of the constant is None."""

Key: TypeAlias = frozenset[tuple[Expr | None, int]]

_ZERO: Final[Polynomial] = {}

MAX_DIVISOR: Final = 1 << 28
"""The largest divisor in a limit."""


class Fit(IntEnum):
    """The cases of a term: it does not fit into 32 bits, fits under limits, or always fits."""

    NO = 0
    GUARDED = 1
    PROVED = 2


@dataclass(frozen=True, slots=True)
class Interval:
    """The range ``-low <= value <= high``."""

    low: Polynomial
    high: Polynomial


def constant(low: int, high: int) -> Interval:
    """Return an interval with constant bounds; one that does not contain 0 is widened to it."""
    return Interval(_number(-low), _number(high))


def _number(value: int) -> Polynomial:
    return {None: value} if value > 0 else _ZERO


def _scaled(a: Polynomial, factor: int) -> Polynomial:
    return {key: c * factor for key, c in a.items()} if factor else _ZERO


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    found: dict[Expr | None, int] = {}
    for part in parts:
        for key, c in part.items():
            found[key] = found.get(key, 0) + c
    return found


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    found: dict[Expr | None, int] = {}
    for x, c in a.items():
        for y, d in b.items():
            key = y if x is None else x if y is None else product((x, y))
            found[key] = found.get(key, 0) + c * d
    return found


def _largest(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return an upper bound of two polynomials, whose coefficients are at least 0."""
    return {key: max(a.get(key, 0), b.get(key, 0)) for key in (*a, *b)}


def _joined(a: Interval, b: Interval) -> Interval:
    return Interval(_largest(a.low, b.low), _largest(a.high, b.high))


def _constant_of(a: Polynomial) -> int | None:
    """Return the value of a polynomial without parameters, else None."""
    return a.get(None, 0) if all(key is None for key in a) else None


def expression(a: Polynomial) -> Expr:
    """Return a polynomial as a term."""
    return total(c if key is None else key * c for key, c in a.items())


def _quotient(a: Polynomial, divisor: int) -> Polynomial:
    """Return an upper bound of a polynomial divided by a constant, rounded down.

    Values of limits saturate at ``2**60``, so quotients by large divisors would be too small.
    """
    if divisor == 1 or not a:
        return a
    if divisor > MAX_DIVISOR and _constant_of(a) is None:
        return a
    known = _constant_of(a)
    if known is not None:
        return _number(known // divisor)
    quotient = expression(a) // divisor
    if not _is_limit(quotient):
        return a
    terms, rest = linear_terms(quotient)
    return _sum((dict(terms), _number(rest)))


def _is_limit(term: Expr, *, inside: bool = False) -> bool:
    """Return whether a simplified term still increases with all parameters.

    Quotients of quotients are excluded, whose divisors together may be large.
    """
    terms, rest = linear_terms(term)
    if rest < 0 or any(c < 0 for _, c in terms):
        return False
    for factor in (f for part, _ in terms for f in factors_of(part)):
        if isinstance(factor, FloorDiv):
            divisor = const_value(factor.divisor) or 0
            allowed = not inside and 0 < divisor <= MAX_DIVISOR
            if not (allowed and _is_limit(factor.numerator, inside=True)):
                return False
        elif not isinstance(factor, Var):
            return False
    return True


def _cofactor(a: Polynomial, b: Expr) -> Polynomial:
    """Return an upper bound of a polynomial divided by a symbolic divisor of at least 1."""
    parts: list[Polynomial] = []
    for key, c in a.items():
        cofactor = None if key is None else divide_product(key, b)
        if cofactor is None:
            parts.append({key: c})
        else:
            parts.append({None if const_value(cofactor) == 1 else cofactor: c})
    return _sum(parts)


@dataclass
class TermRanges:
    """The ranges of terms, and whether they fit into 32 bits, for the variables of a kernel.

    Parameters
    ----------
    binders : Mapping of Var to list of callable
        Functions that return a range of a variable, one for each statement that binds it; None
        means that the range is unknown.
    assumptions : Assumptions
        The facts about the parameters.
    indices : frozenset of Var
        Variables whose own values always fit: indices of threads.
    """

    binders: Mapping[Var, list[Callable[[], Interval | None]]]
    assumptions: Assumptions = field(default_factory=Assumptions)
    indices: frozenset[Var] = frozenset()
    _limits: dict[Key, Fit] = field(default_factory=dict[Key, Fit])
    _ranges: dict[Expr, Interval | None] = field(default_factory=dict[Expr, Interval | None])
    _fits: dict[Expr, Fit] = field(default_factory=dict[Expr, Fit])

    def of(self, term: Expr) -> Interval | None:
        """Return the range of a term; None if it is unknown."""
        if term not in self._ranges:
            for part in postorder(term):
                if isinstance(part, Expr) and part not in self._ranges:
                    self._ranges[part] = None  # the range of a variable in its own bounds
                    self._ranges[part] = self._range(part)
        return self._ranges[term]

    def _range(self, term: Expr) -> Interval | None:
        match term:
            case Const(value):
                return constant(value, value)
            case Var():
                return self._variable(term)
            case Add(terms, rest):
                parts = [self._ranges[part] for part, _ in terms]
                known = [p for p in parts if p is not None]
                if len(known) < len(parts):
                    return None
                return _weighted(zip(known, (c for _, c in terms), strict=True), rest)
            case _:
                operands = [self._ranges[x] for x in _operands(term)]
                known = [x for x in operands if x is not None]
                return _of_operation(term, known) if len(known) == len(operands) else None

    def _variable(self, variable: Var) -> Interval | None:
        found: Interval | None = None
        for binder in self.binders.get(variable, (lambda: None,)):
            one = binder()
            if one is None:
                return _declared(variable)
            found = one if found is None else _joined(found, one)
        return found

    def fit(self, term: Expr) -> Fit:
        """Return whether a term fits into 32 bits with all its intermediate values."""
        if term not in self._fits:
            self.of(term)
            for part in postorder(term):
                if isinstance(part, Expr) and part not in self._fits:
                    self._fits[part] = self._fit(part)
        return self._fits[term]

    def _fit(self, term: Expr) -> Fit:
        if term in self.indices:
            return Fit.PROVED
        found = self.of(term)
        if found is None or (isinstance(term, Add) and _largest_coefficient(term) >= SHORT_LIMIT):
            return Fit.NO
        low = _constant_of(found.low)
        least = Fit.PROVED
        if not (isinstance(term, Var | Const) and low == SHORT_LIMIT):
            least = self._below(found.low)
        fits = (least, self._below(found.high), *(self._fits[x] for x in _operands(term)))
        return min(fits)

    def _below(self, bound: Polynomial) -> Fit:
        """Return whether a bound is less than 2**31; record the limit if it depends on sizes."""
        if any(c >= SHORT_LIMIT for c in bound.values()):
            return Fit.NO
        if _constant_of(bound) is not None:
            return Fit.PROVED
        key = frozenset(bound.items())
        if key not in self._limits:
            self._limits[key] = Fit.PROVED if self._is_proved(bound) else Fit.GUARDED
        return self._limits[key]

    def _is_proved(self, bound: Polynomial) -> bool:
        """Return whether the facts imply that a bound is less than 2**31."""
        limit = expression(bound)
        if any(v.lower is None or v.lower < 0 for v in limit.free):
            return False  # the bound is on absolute values
        return self.assumptions.decide(limit < SHORT_LIMIT) is TRUE

    def limits_of(self, terms: Iterable[Expr]) -> tuple[Expr, ...]:
        """Return the limits under which guarded terms fit, without those that others imply."""
        needed: dict[Key, Polynomial] = {}
        for term in terms:
            found = None if term in self.indices else self.of(term)
            for bound in () if found is None else (found.low, found.high):
                key = frozenset(bound.items())
                if self._limits.get(key) is Fit.GUARDED:
                    needed[key] = bound
        return tuple(_maximal(needed.values()))


def _maximal(limits: Iterable[Polynomial]) -> Iterator[Expr]:
    """Yield the limits that no other limit implies."""
    kept: list[Polynomial] = []
    for bound in sorted(limits, key=lambda item: -sum(item.values())):
        if not any(all(other.get(key, 0) >= c for key, c in bound.items()) for other in kept):
            kept.append(bound)
    yield from sorted(map(expression, kept), key=str)


def _largest_coefficient(term: Add) -> int:
    return max(abs(c) for _, c in term.terms)


def _operands(term: Expr) -> tuple[Expr, ...]:
    """Return the operands of a term that are computed with its width."""
    match term:
        case Add(terms):
            return tuple(part for part, _ in terms)
        case Mul(factors):
            return tuple(factors)
        case FloorDiv(a, b) | Mod(a, b):
            return a, b
        case Min(args) | Max(args):
            return tuple(args)
        case Select(_, a, b):
            return a, b
        case _:
            return ()


def _weighted(parts: Iterable[tuple[Interval, int]], rest: int) -> Interval:
    low: list[Polynomial] = [_number(-rest)]
    high: list[Polynomial] = [_number(rest)]
    for part, c in parts:
        below, above = (part.low, part.high) if c > 0 else (part.high, part.low)
        low.append(_scaled(below, abs(c)))
        high.append(_scaled(above, abs(c)))
    return Interval(_sum(low), _sum(high))


def _of_operation(term: Expr, operands: list[Interval]) -> Interval:
    match term:
        case Mul():
            found = operands[0]
            for factor in operands[1:]:
                found = _multiplied(found, factor)
            return found
        case FloorDiv(divisor=divisor):
            return _divided(operands[0], operands[1], divisor)
        case Mod(divisor=divisor):
            low = _ZERO if (divisor.lower or 0) > 0 else operands[1].low
            return Interval(low, operands[1].high)
        case Min():
            return Interval(_sum(x.low for x in operands), _smallest(x.high for x in operands))
        case Max():
            return Interval(_smallest(x.low for x in operands), _sum(x.high for x in operands))
        case _:
            return _joined(*operands)


def _smallest(bounds: Iterable[Polynomial]) -> Polynomial:
    """Return one of several bounds that all hold: a constant one, else one with few terms."""
    return min(bounds, key=lambda b: (_constant_of(b) is None, len(b), b.get(None, 0)))


def _multiplied(a: Interval, b: Interval) -> Interval:
    low = _sum((_product(a.low, b.high), _product(a.high, b.low)))
    high = _sum((_product(a.high, b.high), _product(a.low, b.low)))
    return Interval(low, high)


def _divided(a: Interval, b: Interval, divisor: Expr) -> Interval:
    known = const_value(divisor)
    if known is not None and known > 0:
        up = _sum((a.low, _number(known - 1))) if a.low else a.low
        return Interval(_quotient(up, known), _quotient(a.high, known))
    if divisor.lower is not None and divisor.lower >= 0:
        return Interval(_cofactor(a.low, divisor) if a.low else a.low, _cofactor(a.high, divisor))
    both = _sum((a.low, a.high))
    return Interval(_sum((both, _number(1) if b.low else _ZERO)), both)


def _of_parameter(variable: Var) -> Interval | None:
    """Return the range of a parameter, which a symbol represents by its absolute value."""
    lower, upper = variable.lower, variable.upper
    if lower is not None and upper is not None:
        return constant(lower, upper)
    if upper is not None:
        return None  # the bound does not hold for the absolute value
    size: Polynomial = {variable: 1}
    return Interval(_ZERO if lower is not None and lower >= 0 else size, size)


def _declared(variable: Var) -> Interval | None:
    lower, upper = variable.lower, variable.upper
    return None if lower is None or upper is None else constant(lower, upper)


def ranges_of(function: ThreadFunc, assumptions: Assumptions, lanes: Iterable[Var]) -> TermRanges:
    """Return the ranges of the terms of a kernel.

    Parameters
    ----------
    function : ThreadFunc
        A kernel for a CPU or a GPU.
    assumptions : Assumptions
        The facts about its parameters.
    lanes : iterable of Var
        The variables of the lanes of its vectors.
    """
    binders: dict[Var, list[Callable[[], Interval | None]]] = {}
    axes = () if function.launch is None else function.launch.axes
    ranges = TermRanges(binders, assumptions, frozenset(a.var for a in axes))
    for param in function.params:
        if isinstance(param, Var):
            binders[param] = [lambda param=param: _of_parameter(param)]
    for axis in axes:
        binders[axis.var] = [_loop(ranges, as_expr(0), axis.extent, 0)]
    for lane in lanes:
        binders[lane] = [lambda lane=lane: _declared(lane)]
    for statement in walk(function.body):
        for variable, binder in _binders(ranges, statement):
            binders.setdefault(variable, []).append(binder)
    return ranges


def _binders(
    ranges: TermRanges, statement: Stmt
) -> Iterator[tuple[Var, Callable[[], Interval | None]]]:
    match statement:
        case Loop(var=var, start=start, stop=stop, step=step):
            yield var, _loop(ranges, start, stop, step)
        case Parallel(var=var, stop=stop, worker=worker):
            yield var, _loop(ranges, as_expr(0), stop, 1)
            yield worker, lambda: None
        case Let(var=var, value=value, limits=None):
            yield var, lambda: _of_value(ranges, value, var)
        case Let(var=var, limits=(lower, upper)):
            yield var, _within(ranges, lower, upper)
        case _:
            pass


def _loop(ranges: TermRanges, start: Expr, stop: Expr, step: int) -> Callable[[], Interval | None]:
    """Return the range of a counter, including its value after the last iteration.

    A ``step`` of 0 is that of the index of a thread, which does not reach the end.
    """

    def bound() -> Interval | None:
        first, last = ranges.of(start), ranges.of(stop)
        if first is None or last is None:
            return None
        known = _constant_of(last.high)
        after = step - 1
        if known is not None:
            high = _number(max(known + after, 0))
        else:
            high = _sum((last.high, _number(after)))
        return Interval(first.low, _largest(first.high, high))

    return bound


def _within(ranges: TermRanges, lower: Expr, upper: Expr) -> Callable[[], Interval | None]:
    def bound() -> Interval | None:
        first, last = ranges.of(lower), ranges.of(upper)
        if first is None or last is None:
            return None
        return Interval(first.low, _largest(first.high, last.high))

    return bound


def _of_value(ranges: TermRanges, value: Value, variable: Var) -> Interval | None:
    match value:
        case Index(expr=expr, lane=None):
            return ranges.of(expr)
        case Cast(operand=operand) if isinstance(operand.type, VectorType):
            dtype = operand.type.dtype
            if dtype.kind == "int":
                return constant(-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
            if dtype.kind == "uint":
                return constant(0, (1 << dtype.bits) - 1)
            return _declared(variable)
        case _:
            return _declared(variable)


def lane_variables(function: ThreadFunc) -> frozenset[Var]:
    """Return the variables of the lanes of the vectors of a kernel."""
    values = (v for s in walk(function.body) for v in walk_values(statement_values(s)))
    lanes = (v.lane for v in values if isinstance(v, Index | Predicate))
    return frozenset(lane for lane in lanes if lane is not None)


def index_width(ranges: TermRanges, roots: Iterable[Expr]) -> IndexWidth:
    """Return which of some terms and their subterms fit into 32 bits, and the limits."""
    proved: set[Expr] = set()
    guarded: set[Expr] = set()
    for root in roots:
        ranges.fit(root)
        for part in postorder(root):
            if isinstance(part, Expr) and not isinstance(part, Const):
                fit = ranges.fit(part)
                if fit is Fit.PROVED:
                    proved.add(part)
                elif fit is Fit.GUARDED:
                    guarded.add(part)
    return IndexWidth(frozenset(proved), frozenset(guarded), ranges.limits_of(guarded))
