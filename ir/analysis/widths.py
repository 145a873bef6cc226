"""Integer terms whose values may not fit into 64 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from ..loop.nodes import PrimFunc
from ..sizes import SIZE_LIMIT
from ..symbolic import (
    Add,
    Bool,
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
    evaluate,
    postorder,
    product,
    substitute,
)
from .entry_checks import terms_of
from .scopes import Scope, sites

USUAL: Final = 1 << 29
"""A bound of dimensions and loops below which products of two of them are not checked."""


@lru_cache(maxsize=512)
def wide_terms(func: PrimFunc) -> tuple[Expr, ...]:
    r"""Return bounds of the integer terms that may overflow for some arguments.

    A term is included if it computes with an integer parameter that is not a dimension of an
    array, or if it may reach the limit of sizes although dimensions and loops are below 2**29;
    variables of loops are replaced by bounds of their values. A constant is included if it does
    not fit into 64 bits.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(a: Int, y: Out[(8,), i64]):\n" + (
    ...     "    for i in range(8): y[i] = index(a * 3 + i, i64)"
    ... )
    >>> wide_terms(parse(text).prim("f"))
    (a * 3 + 7,)
    """
    dims = {v for b in func.buffer_params for d in b.shape for v in d.free}
    wide = frozenset(v for v in func.scalar_params if v not in dims)
    symbols = dims | wide
    found = (
        bound
        for site in sites(func)
        for term in terms_of(site.node)
        for part in _outermost(term)
        if not isinstance(part, Var)
        and (not part.free.isdisjoint(wide) or any(map(_is_long, _positive(part))))
        for bound in _bounds(part, site.scope)
        if bound.free <= symbols and (_is_long(bound) or not bound.free.isdisjoint(wide))
    )
    return tuple(dict.fromkeys(found))


def fits(value: int) -> bool:
    """Return whether an integer fits into 64 bits."""
    return -(1 << 63) <= value < 1 << 63


@lru_cache(maxsize=4096)
def _is_long(bound: Expr) -> bool:
    """Return whether a bound may reach the limit if its variables are at most `USUAL`."""
    if isinstance(bound, Const):
        return not fits(bound.value)
    return evaluate(bound, {v: min(_largest(v), USUAL) for v in bound.free}) >= SIZE_LIMIT


def _largest(variable: Var) -> int:
    if variable.upper is None:
        return USUAL
    return max(abs(variable.upper), abs(variable.lower or 0))


def _outermost(term: Expr | Bool) -> Iterator[Expr]:
    """Yield an integer term, or the integer terms that a condition compares."""
    if isinstance(term, Expr):
        yield term
        return
    yield from (part for part in postorder(term) if isinstance(part, Expr))


def _bounds(term: Expr, scope: Scope) -> Iterator[Expr]:
    """Yield bounds of the absolute values of a term and its subterms, over symbols only.

    All coefficients of a bound are positive, so that its simplification hides no large subterm.
    """
    for found in _positive(substitute(term, scope.values)):
        bound = found
        for binder in reversed(scope.all_binders()):
            if binder.var in bound.free:
                limits = (_positive(e)[0] for e in (binder.first, binder.last))
                bound = substitute(bound, {binder.var: sum(limits, as_expr(0))})
        yield bound


@lru_cache(maxsize=4096)
def _positive(term: Expr) -> tuple[Expr, ...]:
    """Return upper bounds of the absolute values of a term and of the operands of its divisions.

    They hold for positive variables; `magnitude` applies them to the absolute values of others.
    """
    match term:
        case Const(value):
            return (as_expr(abs(value)),)
        case Add(terms, constant):
            parts = [_positive(part) for part, _ in terms]
            scaled = (p[0] * abs(c) for p, (_, c) in zip(parts, terms, strict=True))
            return (sum(scaled, as_expr(abs(constant))), *_others(parts))
        case Mul(args):
            parts = [_positive(part) for part in args]
            return (product(tuple(p[0] for p in parts)), *_others(parts))
        case FloorDiv(a, b):
            inner, divisor = _positive(a), const_value(b)
            value = inner[0] if divisor is None else inner[0] // abs(divisor) + 1
            return (value, *inner, *_positive(b))
        case Mod(a, b):
            inner, divisor = _positive(a), _positive(b)
            return (divisor[0], *inner, *divisor[1:])
        case Min(args) | Max(args):
            parts = [_positive(part) for part in args]
            return (sum((p[0] for p in parts), as_expr(0)), *_others(parts))
        case Select(condition, a, b):
            first, second = _positive(a), _positive(b)
            others = (bound for e in compared(condition) for bound in _positive(e))
            return (first[0] + second[0], *first[1:], *second[1:], *others)
        case _:
            return (term,)


def compared(condition: Bool) -> tuple[Expr, ...]:
    """Return the integer terms that a condition compares with zero.

    Examples
    --------
    >>> from ..symbolic import any_of, var
    >>> a, b = var("a"), var("b")
    >>> sorted(map(str, compared(any_of(a < b, a * b >= 3))))
    ['-(a * b) + 3', 'a - b + 1']
    """
    parts = postorder(condition, skip=lambda term: isinstance(term, Expr))
    return tuple(part for part in parts if isinstance(part, Expr))


def _others(parts: list[tuple[Expr, ...]]) -> Iterator[Expr]:
    yield from (bound for part in parts for bound in part[1:])


def magnitude(term: Expr, values: Mapping[Var, int]) -> int:
    """Return an upper bound of the absolute values of a term and all its subterms.

    Examples
    --------
    >>> from ..symbolic import var
    >>> a = var("a")
    >>> magnitude(a * 8 - 3, {a: 100})
    803
    """
    match term:
        case Const(value):
            return abs(value)
        case Var():
            return abs(evaluate(term, values))
        case Add(terms, constant):
            return sum(abs(c) * magnitude(t, values) for t, c in terms) + abs(constant)
        case Mul(factors):
            total = 1
            for factor in factors:
                total *= magnitude(factor, values)
            return total
        case FloorDiv(a, b) | Mod(a, b):
            return magnitude(a, values) + magnitude(b, values)
        case Min(args) | Max(args):
            return sum(magnitude(a, values) for a in args)
        case Select(condition, a, b):
            chosen = magnitude(a, values) + magnitude(b, values)
            return max(chosen, *(magnitude(e, values) for e in compared(condition)))
        case _:
            return 0
