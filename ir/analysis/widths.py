"""Integer terms whose values may not fit into 64 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..loop.nodes import PrimFunc
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
    evaluate,
    maximum,
    postorder,
    substitute,
)
from .entry_checks import terms_of
from .scopes import Scope, sites


@lru_cache(maxsize=512)
def wide_terms(func: PrimFunc) -> tuple[Expr, ...]:
    r"""Return the integer terms that may overflow for some integer arguments, at their extremes.

    A term is included if it computes with an integer parameter that is not a dimension of an
    array; variables of loops are replaced by their last values. Dimensions of arrays are limited
    by memory.

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
    if not wide:
        return ()
    symbols = dims | wide
    found = (
        extreme
        for site in sites(func)
        for term in terms_of(site.node)
        for part in _outermost(term)
        if not isinstance(part, Var) and not part.free.isdisjoint(wide)
        for extreme in _extremes(part, site.scope)
        if extreme.free <= symbols
    )
    return tuple(dict.fromkeys(found))


def _outermost(term: Expr | Bool) -> Iterator[Expr]:
    """Yield an integer term, or the integer terms that a condition compares."""
    if isinstance(term, Expr):
        yield term
        return
    yield from (part for part in postorder(term) if isinstance(part, Expr))


def _extremes(term: Expr, scope: Scope) -> Iterator[Expr]:
    extreme = substitute(term, scope.values)
    for binder in reversed(scope.all_binders()):
        if binder.var in extreme.free:
            extreme = substitute(extreme, {binder.var: maximum(binder.last, 0)})
    yield extreme


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
        case Select(_, a, b):
            return magnitude(a, values) + magnitude(b, values)
        case _:
            return 0
