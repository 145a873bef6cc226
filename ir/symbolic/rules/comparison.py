"""Rules for comparisons with zero: ``e <= 0`` (`ORDER`) and ``e == 0`` (`EQUALITY`).

Each rule returns a simpler ``e``, or a Python bool if the comparison is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd

from ..base import Expr
from ..rule import Knowledge, Rule
from ..terms import Const, FloorDiv, factors_of, linear_terms
from .splits import combine, divide_product

ComparisonRule = Rule[Callable[[Expr, Knowledge], "Expr | bool | None"]]


def _order_by_range(e: Expr, knowledge: Knowledge) -> bool | None:
    """``e <= 0 -> True`` if the upper bound is ``<= 0``; ``False`` if the lower is ``>= 1``."""
    if knowledge.not_above(e, Const(0)):
        return True
    return False if knowledge.at_least(e, 1) else None


def _divisor(e: Expr) -> int:
    return gcd(*[c for _, c in linear_terms(e)[0]])


def _order_by_divisor(e: Expr, knowledge: Knowledge) -> Expr | None:
    """``g*p + k <= 0 -> p + ceildiv(k, g) <= 0`` if ``g > 0``."""
    del knowledge
    g = _divisor(e)
    if g <= 1:
        return None
    terms, constant = linear_terms(e)
    return combine([(t, c // g) for t, c in terms], -(-constant // g))


def _order_of_quotient(e: Expr, knowledge: Knowledge) -> Expr | None:
    """``a // d + r <= 0 -> a + (r - 1)*d + 1 <= 0`` if ``d > 0``; ``r - a // d`` likewise."""
    quotients = [(t, c) for t, c in linear_terms(e)[0] if isinstance(t, FloorDiv)]
    if len(quotients) != 1:
        return None
    quotient, sign = quotients[0]
    if abs(sign) != 1 or not knowledge.non_negative(quotient.divisor):
        return None
    rest = e - sign * quotient
    if any(quotient in factors_of(term) for term, _ in linear_terms(rest)[0]):
        return None  # a product with the quotient would remain, and its factor be canceled again
    if sign < 0:
        return rest * quotient.divisor - quotient.numerator
    return quotient.numerator + (rest - 1) * quotient.divisor + 1


def common_factors(e: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Yield each common factor of all terms and their cofactor, ignoring the constant."""
    terms, _ = linear_terms(e)
    for factor in dict.fromkeys(factors_of(terms[0][0])) if terms else ():
        rest: Expr = Const(0)
        for term, c in terms:
            left_over = divide_product(term, factor)
            if left_over is None:
                break
            rest = rest + c * left_over
        else:
            yield factor, rest


def _order_by_factor(e: Expr, knowledge: Knowledge) -> Expr | None:
    """``f*e <= 0 -> e <= 0`` if ``f > 0``, ``-> -e <= 0`` if ``f < 0``; likewise for ``<``."""
    constant = linear_terms(e)[1]
    for factor, rest in common_factors(e) if 0 <= constant <= 1 else ():
        if knowledge.at_least(factor, 1):
            return rest + constant
        if knowledge.at_most(factor, -1):
            return constant - rest
    return None


def _equality_by_range(e: Expr, knowledge: Knowledge) -> bool | None:
    """``e == 0 -> True`` if both bounds are 0; ``False`` if 0 is outside of the bounds."""
    if isinstance(e, Const):
        return e.value == 0
    if knowledge.at_least(e, 1) or knowledge.at_most(e, -1):
        return False
    return True if knowledge.at_least(e, 0) and knowledge.at_most(e, 0) else None


def _equality_by_congruence(e: Expr, knowledge: Knowledge) -> bool | None:
    """``e == 0 -> False`` if ``e % m != 0`` for its modulus ``m > 0``."""
    del knowledge
    return False if e.modulus and e.remainder % e.modulus else None


def _equality_by_divisor(e: Expr, knowledge: Knowledge) -> Expr | bool | None:
    """``g*p + k == 0 -> p + k // g == 0`` if ``k % g == 0``, else ``-> False``; ``g > 0``."""
    del knowledge
    g = _divisor(e)
    if g <= 1:
        return None
    terms, constant = linear_terms(e)
    return False if constant % g else combine([(t, c // g) for t, c in terms], constant // g)


def _equality_by_factor(e: Expr, knowledge: Knowledge) -> Expr | None:
    """``f*e == 0 -> e == 0`` if ``f != 0``."""
    for factor, rest in common_factors(e) if linear_terms(e)[1] == 0 else ():
        if knowledge.at_least(factor, 1) or knowledge.at_most(factor, -1):
            return rest
    return None


def _equality_sign(e: Expr, knowledge: Knowledge) -> Expr | None:
    """``e == 0 -> -e == 0`` if the leading coefficient is negative."""
    del knowledge
    return -e if linear_terms(e)[0][0][1] < 0 else None


ORDER: tuple[ComparisonRule, ...] = (
    Rule("order by range", "(e <= 0) == (k <= 0)", "e == k", _order_by_range),
    Rule("divide an order", "(g*p + k <= 0) == (p + -(-k // g) <= 0)", "g > 0", _order_by_divisor),
    Rule(
        "order of a quotient",
        "((a // d + r <= 0) == (a + (r - 1)*d + 1 <= 0)) and ((r - a // d <= 0) == (r*d - a <= 0))",
        "d > 0",
        _order_of_quotient,
    ),
    Rule(
        "cancel a factor of an order",
        "(f*e <= 0) == (e <= 0 if f > 0 else -e <= 0)"
        " and (f*e < 0) == (e < 0 if f > 0 else -e < 0)",
        "f != 0",
        _order_by_factor,
    ),
)

EQUALITY: tuple[ComparisonRule, ...] = (
    Rule("equality by range", "(e == 0) == (k == 0)", "e == k", _equality_by_range),
    Rule("equality by congruence", "e != 0", "m > 0 and e % m != 0", _equality_by_congruence),
    Rule(
        "divide an equality",
        "(g*p + k == 0) == (k % g == 0 and p + k // g == 0)",
        "g > 0",
        _equality_by_divisor,
    ),
    Rule("cancel a factor of an equality", "(f*e == 0) == (e == 0)", "f != 0", _equality_by_factor),
    Rule("positive leading coefficient", "(e == 0) == (-e == 0)", "True", _equality_sign),
)
