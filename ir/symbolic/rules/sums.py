"""Rules for sums of products, which merge related quotients and remainders.

``f`` is any common factor of the matched terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..base import Expr
from ..rule import Rule
from ..terms import Const, FloorDiv, Max, Min, Mod, factors_of, linear_terms
from .splits import combine, divide_product, extract

SumRule = Rule[Callable[[Mapping[Expr, int], int], Expr | None]]
Coefficients = Mapping[Expr, int]


def _quotients(terms: Coefficients) -> list[tuple[FloorDiv, Expr, int]]:
    """Return all quotients that are factors, as (quotient, term, coefficient)."""
    return [
        (factor, term, c)
        for term, c in terms.items()
        if term.has_sum_rules
        for factor in factors_of(term)
        if isinstance(factor, FloorDiv)
    ]


def _remainders(terms: Coefficients) -> list[tuple[Mod, Expr, int]]:
    """Return all remainders that are factors, as (remainder, term, coefficient)."""
    return [
        (factor, term, c)
        for term, c in terms.items()
        if term.has_sum_rules
        for factor in factors_of(term)
        if isinstance(factor, Mod)
    ]


def _weighted(c: int, term: Expr, factor: Expr) -> Expr:
    """Return ``c * term`` without one of its factors."""
    return c * (divide_product(term, factor) or Const(1))


def _without(
    terms: Coefficients, constant: int, dropped: Iterable[Expr], part: Expr | None = None
) -> Expr | None:
    """Return the sum without some of its terms and minus a part.

    Return None if a term of the part does not occur with equal coefficient.
    """
    rest = dict(terms)
    for term in dropped:
        del rest[term]
    inside, offset = linear_terms(part) if part is not None else ((), 0)
    if any(rest.pop(term, None) != coefficient for term, coefficient in inside):
        return None
    return combine(rest.items(), constant - offset)


def _exact_quotient(terms: Coefficients, constant: int) -> Expr | None:
    """``f*d*(a // d) -> f*(a - k)`` if ``a % d == k`` is constant and ``d > 0``."""
    for quotient, term, c in _quotients(terms):
        a, d = quotient.numerator, quotient.divisor
        if isinstance(d, Const) and d.value and c % d.value == 0 and a.modulus % d.value == 0:
            rest = _without(terms, constant, (term,))
            exact = _weighted(c // d.value, term, quotient) * (a - a.remainder % d.value)
            return None if rest is None else rest + exact
    return None


def _join(terms: Coefficients, constant: int) -> Expr | None:
    """``f*d*(a // d) + f*(a % d) -> f*a`` if ``d != 0``."""
    if len(terms) < 2:
        return None
    for remainder, term, c in _remainders(terms):
        a, d = remainder.numerator, remainder.divisor
        weight = _weighted(c, term, remainder)
        rest = _without(terms, constant, (term,), weight * d * (a // d))
        if rest is not None:
            return rest + weight * a
    return None


def _remainder(terms: Coefficients, constant: int) -> Expr | None:
    """``f*a - f*d*(a // d) -> f*(a % d)`` if ``d != 0``."""
    if len(terms) < 2:
        return None
    for quotient, term, c in _quotients(terms):
        a, d = quotient.numerator, quotient.divisor
        if d == 0 or (isinstance(d, Const) and c % d.value):
            continue
        found = extract(_weighted(c, term, quotient), d)
        if found is None or found[1] != 0:
            continue
        scale = -found[0]
        rest = _without(terms, constant, (term,), scale * a)
        if rest is not None:
            return rest + scale * (a % d)
    return None


def _merge_remainders(terms: Coefficients, constant: int) -> Expr | None:
    """``f*(a % d) + f*d*((a // d) % e) -> f*(a % (d*e))`` if ``d != 0`` and ``e > 0``."""
    found = _remainders(terms)
    if len(found) < 2:
        return None
    for low, term, c in found:
        a, d = low.numerator, low.divisor
        part = _weighted(c, term, low)
        weight = part * d
        for high, high_term, high_c in found:
            e = high.divisor
            if high is low or e.lower is None or e.lower < 0 or high.numerator is not a // d:
                continue
            if _weighted(high_c, high_term, high) is weight:
                rest = _without(terms, constant, (term, high_term))
                return None if rest is None else rest + part * (a % (d * e))
    return None


def _minimum_and_maximum(terms: Coefficients, constant: int) -> Expr | None:
    """``f*min(a, b) + f*max(a, b) -> f*a + f*b``."""
    greatest = {term.args: c for term, c in terms.items() if isinstance(term, Max)}
    for term, c in terms.items():
        if isinstance(term, Min) and len(term.args) == 2 and greatest.get(term.args) == c:
            partner = next(t for t in terms if isinstance(t, Max) and t.args == term.args)
            rest = _without(terms, constant, (term, partner))
            return None if rest is None else rest + c * (term.args[0] + term.args[1])
    return None


SUMS: tuple[SumRule, ...] = (
    Rule(
        "exact quotient",
        "f * d * (a // d) == f * (a - k)",
        "d > 0 and (a - k) % d == 0 and 0 <= k < d",
        _exact_quotient,
    ),
    Rule("quotient and remainder", "f * d * (a // d) + f * (a % d) == f * a", "d != 0", _join),
    Rule(
        "remainder from quotient", "f * a - f * d * (a // d) == f * (a % d)", "d != 0", _remainder
    ),
    Rule(
        "merge remainders",
        "f * (a % d) + f * d * ((a // d) % e) == f * (a % (d*e))",
        "d != 0 and e > 0",
        _merge_remainders,
    ),
    Rule(
        "minimum and maximum",
        "f * min(a, b) + f * max(a, b) == f*a + f*b",
        "True",
        _minimum_and_maximum,
    ),
)
