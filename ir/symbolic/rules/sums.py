"""Rules for sums of products: quotients and remainders that belong together are joined.

``f`` stands for any common factor of the terms concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..base import Expr
from ..rule import Rule
from ..terms import Const, FloorDiv, Max, Min, Mod, factors_of, linear_terms
from .splits import combine, divide_product, extract

SumRule = Rule[Callable[[Mapping[Expr, int], int], Expr | None]]
Terms = Mapping[Expr, int]


def _quotients(terms: Terms) -> list[tuple[FloorDiv, Expr, int]]:
    """Every quotient that is a factor: itself, the term, its coefficient."""
    return [
        (factor, term, c)
        for term, c in terms.items()
        if term.joins
        for factor in factors_of(term)
        if isinstance(factor, FloorDiv)
    ]


def _remainders(terms: Terms) -> list[tuple[Mod, Expr, int]]:
    """Every remainder that is a factor: itself, the term, its coefficient."""
    return [
        (factor, term, c)
        for term, c in terms.items()
        if term.joins
        for factor in factors_of(term)
        if isinstance(factor, Mod)
    ]


def _weighted(c: int, term: Expr, factor: Expr) -> Expr:
    """``c * term`` without one of its factors."""
    return c * (divide_product(term, factor) or Const(1))


def _without(
    terms: Terms, constant: int, dropped: Iterable[Expr], part: Expr | None = None
) -> Expr | None:
    """The sum without some of its terms and less a part.

    None unless the terms of the part are there, coefficient and all.
    """
    rest = dict(terms)
    for term in dropped:
        del rest[term]
    inside, offset = linear_terms(part) if part is not None else ((), 0)
    if any(rest.pop(term, None) != coefficient for term, coefficient in inside):
        return None
    return combine(rest.items(), constant - offset)


def _exact_quotient(terms: Terms, constant: int) -> Expr | None:
    for quotient, term, c in _quotients(terms):
        a, d = quotient.numerator, quotient.divisor
        if isinstance(d, Const) and d.value and c % d.value == 0 and a.modulus % d.value == 0:
            rest = _without(terms, constant, (term,))
            exact = _weighted(c // d.value, term, quotient) * (a - a.remainder % d.value)
            return None if rest is None else rest + exact
    return None


def _join(terms: Terms, constant: int) -> Expr | None:
    if len(terms) < 2:
        return None
    for remainder, term, c in _remainders(terms):
        a, d = remainder.numerator, remainder.divisor
        weight = _weighted(c, term, remainder)
        rest = _without(terms, constant, (term,), weight * d * (a // d))
        if rest is not None:
            return rest + weight * a
    return None


def _remainder(terms: Terms, constant: int) -> Expr | None:
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


def _digits(terms: Terms, constant: int) -> Expr | None:
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


def _least_and_greatest(terms: Terms, constant: int) -> Expr | None:
    greatest = {term.args: c for term, c in terms.items() if isinstance(term, Max)}
    for term, c in terms.items():
        if isinstance(term, Min) and len(term.args) == 2 and greatest.get(term.args) == c:
            partner = next(t for t in terms if isinstance(t, Max) and t.args == term.args)
            rest = _without(terms, constant, (term, partner))
            return None if rest is None else rest + c * (term.args[0] + term.args[1])
    return None


SUMS: tuple[SumRule, ...] = (
    Rule(
        "multiply an exact quotient",
        "f * d * (a // d) == f * (a - k)",
        "d > 0 and (a - k) % d == 0 and 0 <= k < d",
        _exact_quotient,
    ),
    Rule("quotient and remainder", "f * d * (a // d) + f * (a % d) == f * a", "d != 0", _join),
    Rule("what a quotient leaves", "f * a - f * d * (a // d) == f * (a % d)", "d != 0", _remainder),
    Rule(
        "two digits make one",
        "f * (a % d) + f * d * ((a // d) % e) == f * (a % (d*e))",
        "d != 0 and e > 0",
        _digits,
    ),
    Rule(
        "least and greatest",
        "f * min(a, b) + f * max(a, b) == f*a + f*b",
        "True",
        _least_and_greatest,
    ),
)
