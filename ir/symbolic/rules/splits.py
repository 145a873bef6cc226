"""Decompositions of a numerator by a divisor, for the rules of division and remainder."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from ..base import ALGEBRA, Expr
from ..rule import Knowledge
from ..terms import Add, Const, factors_of, linear_terms

Split = tuple[Expr, Expr]
WeightedTerms = Iterable[tuple[Expr, int]]


def combine(terms: WeightedTerms, constant: int) -> Expr:
    """Return the sum of distinct products with coefficients, and a constant."""
    return ALGEBRA.sum({term: c for term, c in terms if c}, constant)


def single_product(e: Expr) -> tuple[Expr | None, int] | None:
    """Return a term as (product, coefficient), (None, constant); None if it is a longer sum."""
    terms, constant = linear_terms(e)
    if not terms:
        return None, constant
    if len(terms) == 1 and constant == 0:
        return terms[0]
    return None


def divide_product(product: Expr, by: Expr) -> Expr | None:
    """Return ``product / by`` if every factor of ``by`` is a factor of the product, else None."""
    if product is by:
        return Const(1)
    rest = list(factors_of(product))
    for factor in factors_of(by):
        if factor not in rest:
            return None
        rest.remove(factor)
    result = rest[0] if rest else Const(1)
    for factor in rest[1:]:
        result = result * factor
    return result


def extract(a: Expr, d: Expr) -> Split | None:
    """Return (q, r) with ``a = d * q + r``; None if ``a`` contains no multiple of ``d``."""
    if isinstance(d, Const):
        return _extract_constant(a, d.value)
    if isinstance(d, Add) and (len(d.terms) > 1 or d.constant):
        return _extract_sum(a, d)
    return _extract_product(a, d)


def _extract_constant(a: Expr, d: int) -> Split | None:
    """Divide coefficients rounded toward zero, which preserves signs; ``0 <= constant < d``."""
    terms, constant = linear_terms(a)
    quotient, rest = [(t, _toward_zero(c, d)) for t, c in terms], constant % d
    if constant == rest and not any(c for _, c in quotient):
        return None
    q = combine([(t, c) for t, c in quotient if c], constant // d)
    return q, combine(
        [(t, c - d * k) for (t, c), (_, k) in zip(terms, quotient, strict=True)], rest
    )


def _toward_zero(c: int, d: int) -> int:
    return c // d if (c >= 0) == (d > 0) else -(-c // d)


def _extract_product(a: Expr, d: Expr) -> Split | None:
    """Divide the coefficients of multiples of the product, rounded toward zero."""
    product, coefficient = linear_terms(d)[0][0]
    terms, constant = linear_terms(a)
    q: Expr = Const(0)
    rest: list[tuple[Expr, int]] = []
    for term, c in terms:
        quotient = divide_product(term, product)
        steps = 0 if quotient is None else _toward_zero(c, coefficient)
        if quotient is not None and steps:
            q = q + steps * quotient
        rest.append((term, c - steps * coefficient))
    return None if q == 0 else (q, combine(rest, constant))


def _extract_sum(a: Expr, d: Add) -> Split | None:
    """Perform long division by the leading term of the divisor, restricted to exact steps."""
    lead, lead_coefficient = max(d.terms, key=lambda t: (len(factors_of(t[0])), t[0].order))
    q: Expr = Const(0)
    r = a
    for term, c in linear_terms(a)[0]:
        quotient = divide_product(term, lead)
        if quotient is None or c % lead_coefficient:
            continue
        step = c // lead_coefficient * quotient
        if _contains(step * d, r):
            q, r = q + step, r - step * d
    return None if r is a else (q, r)


def _contains(part: Expr, whole: Expr) -> bool:
    """Return whether ``whole - part`` cancels all terms of ``part`` and no constant grows."""
    terms, constant = linear_terms(whole)
    present = dict(terms)
    part_terms, part_constant = linear_terms(part)
    shrinks = abs(constant - part_constant) <= abs(constant)
    return shrinks and all(present.get(t) == c for t, c in part_terms)


def split_by_factor(a: Expr, d: Expr, knowledge: Knowledge) -> tuple[Expr, Expr, Expr, Expr] | None:
    """Return ``(g, u, v, e)`` with ``a = g * u + v`` and ``d = g * e``; None if there is none.

    Either ``v`` is zero, or ``0 <= v < g`` and ``e > 0``.
    """
    if isinstance(d, Const):
        return _split_by_constant(a, d.value, knowledge)
    return _split_by_product(a, d, knowledge)


def _split_by_constant(
    a: Expr, d: int, knowledge: Knowledge
) -> tuple[Expr, Expr, Expr, Expr] | None:
    terms, constant = linear_terms(a)
    units = {gcd(c, d) for _, c in terms} - {1, d}
    for g in sorted(units, reverse=True):
        low = combine([(t, c) for t, c in terms if c % g], constant)
        lower, upper = knowledge.interval(low)
        if lower is None or upper is None or lower // g != upper // g:
            continue
        k = lower // g
        u = combine([(t, c // g) for t, c in terms if c % g == 0], k)
        return Const(g), u, low - k * g, Const(d // g)
    return None


def _split_by_product(
    a: Expr, d: Expr, knowledge: Knowledge
) -> tuple[Expr, Expr, Expr, Expr] | None:
    whole = single_product(d)
    if whole is None or whole[0] is None:
        return None
    for unit in _common_factors(a, whole[0], whole[1]):
        found = extract(a, unit)
        quotient = extract(d, unit)
        if found is None or quotient is None or found[1] is a:
            continue
        (u, v), (e, left_over) = found, quotient
        if left_over == 0 and (v == 0 or _fits(v, unit, e, knowledge)):
            return unit, u, v, e
    return None


def _fits(v: Expr, unit: Expr, e: Expr, knowledge: Knowledge) -> bool:
    positive = knowledge.non_negative(unit) and knowledge.non_negative(e)
    return positive and knowledge.non_negative(v) and knowledge.below(v, unit)


def _common_factors(a: Expr, product: Expr, coefficient: int) -> list[Expr]:
    """Return common factors of the divisor and a term of the numerator, the largest first."""
    units: dict[Expr, None] = {}
    for term, c in linear_terms(a)[0]:
        rest = list(factors_of(term))
        unit: Expr = Const(gcd(c, coefficient))
        for factor in factors_of(product):
            if factor in rest:
                rest.remove(factor)
                unit = unit * factor
        if not (isinstance(unit, Const) and unit.value == 1):
            units[unit] = None
    return sorted(units, key=lambda u: (len(factors_of(u)), u.order), reverse=True)


def negative(d: Expr, knowledge: Knowledge) -> bool:
    """Return whether a nonzero divisor is proved to be negative."""
    return knowledge.at_most(d, 0) and not knowledge.at_least(d, 0)


def multiples(a: Expr, d: Expr) -> Split | None:
    """Return (m, r) with ``a = m + r``; the congruences show that ``d`` divides ``m``."""
    if not isinstance(d, Const):
        return None
    terms, constant = linear_terms(a)
    inside = [(t, c) for t, c in terms if _divides(d.value, t, c)]
    if not inside or (len(inside) == len(terms) and constant == 0):
        return None
    outside = [(t, c) for t, c in terms if not _divides(d.value, t, c)]
    return combine(inside, 0), combine(outside, constant)


def _divides(d: int, term: Expr, coefficient: int) -> bool:
    return (term.modulus * coefficient) % d == 0 and (term.remainder * coefficient) % d == 0
