"""Terms as linear functions of selected symbols."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .base import Expr, SymInt, Var
from .build import as_expr
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
