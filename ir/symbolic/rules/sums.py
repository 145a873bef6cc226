"""Rules for sums of products: quotients and remainders that belong together are joined.

``f`` stands for any common factor of the terms concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ..base import Expr
from ..rule import Rule
from ..terms import Const, FloorDiv, Max, Min, Mod, factors_of, linear_terms
from .splits import combine, divide_product, extract

SumRule = Rule[Callable[[Mapping[Expr, int], int], Expr | None]]
Terms = Mapping[Expr, int]


def _quotients(terms: Terms) -> Iterator[tuple[FloorDiv, Expr, Expr, int]]:
    """Every quotient that is a factor: itself, the other factors, the term, its coefficient."""
    for term, coefficient in terms.items():
        for factor in factors_of(term):
            if isinstance(factor, FloorDiv):
                others = divide_product(term, factor)
                yield factor, others or Const(1), term, coefficient


def _remainders(terms: Terms) -> Iterator[tuple[Mod, Expr, Expr, int]]:
    """Every remainder that is a factor: itself, the other factors, the term, its coefficient."""
    for term, coefficient in terms.items():
        for factor in factors_of(term):
            if isinstance(factor, Mod):
                others = divide_product(term, factor)
                yield factor, others or Const(1), term, coefficient


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
    for quotient, others, term, c in _quotients(terms):
        a, d = quotient.numerator, quotient.divisor
        if isinstance(d, Const) and d.value and c % d.value == 0 and a.modulus % d.value == 0:
            rest = _without(terms, constant, (term,))
            exact = c // d.value * others * (a - a.remainder % d.value)
            return None if rest is None else rest + exact
    return None


def _join(terms: Terms, constant: int) -> Expr | None:
    if len(terms) < 2:
        return None
    for remainder, others, term, c in _remainders(terms):
        a, d = remainder.numerator, remainder.divisor
        partner = c * others * d * (a // d)
        rest = _without(terms, constant, (term,), partner)
        if rest is not None:
            return rest + c * others * a
    return None


def _remainder(terms: Terms, constant: int) -> Expr | None:
    if len(terms) < 2:
        return None
    for quotient, others, term, c in _quotients(terms):
        a, d = quotient.numerator, quotient.divisor
        found = extract(c * others, d) if d != 0 else None
        if found is None or found[1] != 0:
            continue
        scale = -found[0]
        rest = _without(terms, constant, (term,), scale * a)
        if rest is not None:
            return rest + scale * (a % d)
    return None


def _digits(terms: Terms, constant: int) -> Expr | None:
    if len(terms) < 2:
        return None
    found = list(_remainders(terms))
    for low, others, term, c in found:
        a, d = low.numerator, low.divisor
        weight = c * others * d
        for high, high_others, high_term, high_c in found:
            if high is low or high_c * high_others is not weight:
                continue
            e = high.divisor
            if high.numerator is a // d and e.lower is not None and e.lower >= 0:
                rest = _without(terms, constant, (term, high_term))
                return None if rest is None else rest + c * others * (a % (d * e))
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
