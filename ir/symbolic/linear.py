"""Terms as linear functions of selected symbols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .base import Expr, SymInt, Var
from .build import as_expr, const_value
from .rules.splits import divide_product
from .terms import Const, linear_terms


@dataclass(frozen=True, slots=True)
class LinearForm:
    """``sum(coefficient * symbol) + rest``; the symbols do not occur in coefficients and rest."""

    coefficients: Mapping[Var, Expr]
    rest: Expr


def linear_form(e: SymInt, symbols: Collection[Var]) -> LinearForm | None:
    """Return a term as a linear function of some symbols; None if it is not linear in them.

    Symbols that do not occur have no coefficient.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> i, n = var("i"), var("n")
    >>> form = linear_form(i * n + 2 * i + n + 1, {i})
    >>> form.coefficients[i], form.rest
    (n + 2, n + 1)
    """
    chosen = frozenset(symbols)
    terms, constant = linear_terms(as_expr(e))
    coefficients: dict[Var, Expr] = {}
    rest: Expr = Const(constant)
    for term, c in terms:
        inside = term.free & chosen
        if not inside:
            rest = rest + c * term
            continue
        symbol = next(iter(inside))
        cofactor = divide_product(term, symbol)
        if len(inside) > 1 or cofactor is None or symbol in cofactor.free:
            return None
        coefficients[symbol] = coefficients.get(symbol, Const(0)) + c * cofactor
    nonzero = {v: c for v, c in coefficients.items() if c != 0}
    return LinearForm(MappingProxyType(nonzero), rest)


def unknown_of(e: Expr, known: Collection[Var]) -> tuple[Var, int, Expr] | None:
    """Return ``n``, ``a`` and ``b`` of a term ``a * n + b`` whose only unknown symbol is ``n``.

    ``a`` is a constant other than 0. None if the term has another form.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> m, n = var("m"), var("n")
    >>> unknown_of(2 * n + m, {m})
    (n, 2, m)
    >>> unknown_of(2 * n + m, ()), unknown_of(m * n, {m})
    (None, None)
    """
    unknown = [symbol for symbol in e.free if symbol not in known]
    form = linear_form(e, unknown) if len(unknown) == 1 else None
    factor = None if form is None else const_value(form.coefficients.get(unknown[0], Const(0)))
    return (unknown[0], factor, form.rest) if form is not None and factor else None


def determined_by(terms: Iterable[Expr]) -> frozenset[Var]:
    """Return the symbols that the values of terms determine.

    A term determines the symbol that it is, or solves for its only unknown one, see `unknown_of`.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> k, m, n = var("k"), var("m"), var("n")
    >>> sorted(v.name for v in determined_by((2 * n + m, m + 1, k * m)))
    ['m', 'n']
    """
    waiting = list(terms)
    known = {term for term in waiting if isinstance(term, Var)}
    while True:
        found = {solved[0] for term in waiting if (solved := unknown_of(term, known))}
        if not found:
            return frozenset(known)
        known |= found
