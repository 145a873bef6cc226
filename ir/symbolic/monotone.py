"""Monotonicity of terms, and their values over ranges of variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .base import Expr, Var
from .build import as_expr, product, total
from .conditions import maximum, minimum
from .linear import linear_form
from .terms import Add, FloorDiv, Max, Min, Mod, Mul, Select, factors_of, linear_terms
from .traverse import substitute

_ZERO: Final = as_expr(0)


def upper_limit(term: Expr, ranges: Sequence[tuple[Var, Expr, Expr]]) -> Expr | None:
    """Return a term that is at least another one for all values of variables; None if unknown.

    Parameters
    ----------
    term : Expr
        The term.
    ranges : sequence of (Var, Expr, Expr)
        The variables with their inclusive limits, which may contain variables before them.

    Examples
    --------
    >>> from . import as_expr, minimum, var
    >>> i, n = var("i"), var("n")
    >>> upper_limit(n - 2 * i, [(i, as_expr(0), as_expr(7))])
    n
    >>> upper_limit(minimum(i, n - i), [(i, as_expr(0), as_expr(7))])
    min(7, n)
    >>> upper_limit((n + i % 3) // 4, [(i, as_expr(0), n)])
    (n + 2) // 4
    """
    for variable, first, last in reversed(ranges):
        if variable not in term.free:
            continue
        reached = _reached(term, variable, first, last)
        if reached is None:
            return None
        term = reached
    return term


def _reached(term: Expr, variable: Var, first: Expr, last: Expr) -> Expr | None:
    """Return an upper limit of a term over the values of one variable."""
    if variable not in term.free:
        return term
    sign = direction(term, variable)
    if sign is not None:
        return substitute(term, {variable: last if sign > 0 else first})
    limit: Expr | None = None
    match term:
        case Min(args=args):
            known = [p for a in args if (p := _reached(a, variable, first, last)) is not None]
            limit = minimum(*known) if known else None
        case Max(args=args):
            limit = _largest(args, variable, first, last)
        case Select(then=then, otherwise=otherwise):
            limit = _largest((then, otherwise), variable, first, last)
        case FloorDiv(numerator=numerator, divisor=divisor) if _is_divisor(divisor, variable):
            inner = _reached(numerator, variable, first, last)
            limit = None if inner is None else inner // divisor
        case Mod(divisor=divisor) if _is_natural(divisor, variable):
            limit = divisor - 1  # a divisor of 0 has no remainders
        case Add(terms=terms, constant=constant):
            limit = _of_sum(terms, constant, (variable, first, last))
        case Mul(factors=factors) if all(f.lower is not None and f.lower >= 0 for f in factors):
            known = [p for f in factors if (p := _reached(f, variable, first, last)) is not None]
            limit = product(known) if len(known) == len(factors) else None
        case _:
            pass
    if limit is None and term.upper is not None:
        return as_expr(term.upper)
    return limit


def _is_divisor(term: Expr, variable: Var) -> bool:
    return variable not in term.free and term.lower is not None and term.lower > 0


def _is_natural(term: Expr, variable: Var) -> bool:
    return variable not in term.free and term.lower is not None and term.lower >= 0


def _largest(args: Iterable[Expr], variable: Var, first: Expr, last: Expr) -> Expr | None:
    limits = [_reached(a, variable, first, last) for a in args]
    known = [limit for limit in limits if limit is not None]
    return maximum(*known) if len(known) == len(limits) else None


def _of_sum(
    terms: Iterable[tuple[Expr, int]], constant: int, limits: tuple[Var, Expr, Expr]
) -> Expr | None:
    variable, first, last = limits
    parts: list[Expr] = []
    for term, coefficient in terms:
        scaled = term * coefficient
        if coefficient > 0:
            part = _reached(term, variable, first, last)
            limit = None if part is None else part * coefficient
        elif direction(term, variable) is not None or variable not in term.free:
            limit = _reached(scaled, variable, first, last)
        else:
            limit = None if scaled.upper is None else as_expr(scaled.upper)
        if limit is None:
            return None
        parts.append(limit)
    return total((*parts, constant))


def direction(term: Expr, variable: Var) -> int | None:
    """Return 1 if a term does not decrease with a variable, -1 if it does not increase."""
    if term is variable:
        return 1
    form = linear_form(term, (variable,))
    if form is not None:
        return _sign(form.coefficients.get(variable, _ZERO))
    match term:
        case Min(args=args) | Max(args=args):
            return _common(args, variable)
        case FloorDiv(numerator=numerator, divisor=divisor):
            sign = _sign(divisor) if variable not in divisor.free else None
            inner = direction(numerator, variable)
            return None if sign is None or inner is None else sign * inner
        case Mul():
            return _of_product(factors_of(term), variable)
        case _:
            parts = linear_terms(term)[0]
            if len(parts) == 1 and parts[0][0] is term:
                return None
            signed = [(direction(t, variable), c) for t, c in parts if variable in t.free]
            found = {None if d is None else (d if c > 0 else -d) for d, c in signed}
            return found.pop() if len(found) == 1 else None


def _of_product(factors: Sequence[Expr], variable: Var) -> int | None:
    inside = [f for f in factors if variable in f.free]
    signs = [_sign(f) for f in factors if variable not in f.free]
    inner = direction(inside[0], variable) if len(inside) == 1 else None
    if inner is None or None in signs:
        return None
    for sign in signs:
        inner *= 1 if sign is None else sign
    return inner


def _common(args: Iterable[Expr], variable: Var) -> int | None:
    found = {direction(a, variable) for a in args if variable in a.free}
    return found.pop() if len(found) == 1 else None


def _sign(term: Expr) -> int | None:
    if term.lower is not None and term.lower >= 0:
        return 1
    return -1 if term.upper is not None and term.upper <= 0 else None
