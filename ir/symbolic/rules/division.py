"""Rules for ``a // d``."""

from __future__ import annotations

from collections.abc import Callable

from ..base import Expr
from ..rule import Knowledge, Rule
from ..terms import Const, FloorDiv, Mod, linear_terms
from .splits import extract, multiples, negative, split_by_factor

DivisionRule = Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]


def _by_one(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a // 1 -> a``."""
    del knowledge
    return a if isinstance(d, Const) and d.value == 1 else None


def _zero(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``0 // d -> 0`` if ``d != 0``."""
    del d, knowledge
    return a if isinstance(a, Const) and a.value == 0 else None


def _negative_divisor(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a // d -> (-a) // (-d)`` if ``d < 0``."""
    return -a // -d if negative(d, knowledge) else None


def _range(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a // d -> k`` if ``k*d <= a < (k + 1)*d``, for a constant ``k``."""
    if isinstance(d, Const):
        lower, upper = knowledge.interval(a)
        if lower is None or upper is None or lower // d.value != upper // d.value:
            return None
        return Const(lower // d.value)
    if knowledge.non_negative(a):
        return Const(0) if knowledge.below(a, d) else None
    inside = knowledge.at_most(a, -1) and knowledge.non_negative(d) and knowledge.not_above(-a, d)
    return Const(-1) if inside else None


def _extract(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(d*q + r) // d -> q + r // d`` if ``d != 0``."""
    del knowledge
    found = extract(a, d)
    return None if found is None else found[0] + found[1] // d


def _common_factor(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(g*u + v) // (g*e) -> u // e`` if ``0 <= v < g`` and ``e > 0``, or if ``v == 0``."""
    found = split_by_factor(a, d, knowledge)
    if found is None:
        return None
    _, u, _, e = found
    return u // e


def _nested(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(a // b + k) // c -> (a + k*b) // (b*c)`` if ``b != 0`` and ``c > 0``."""
    terms, constant = linear_terms(a)
    if len(terms) != 1 or terms[0][1] != 1 or not knowledge.non_negative(d):
        return None
    inner = terms[0][0]
    if not isinstance(inner, FloorDiv):
        return None
    return (inner.numerator + constant * inner.divisor) // (inner.divisor * d)


def _of_remainder(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(a % (m*d)) // d -> (a // d) % m`` if ``d > 0`` and ``m > 0``."""
    if not isinstance(a, Mod) or not knowledge.non_negative(d):
        return None
    found = extract(a.divisor, d)
    if found is None or found[1] != 0 or not knowledge.non_negative(found[0]):
        return None
    return (a.numerator // d) % found[0]


def _remainder_by_divisor(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(a % d) // d -> 0`` if ``d != 0``."""
    del knowledge
    return Const(0) if isinstance(a, Mod) and a.divisor is d else None


def _multiples(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(a + r) // d -> a // d + r // d`` if ``a % d == 0`` and ``d != 0``."""
    del knowledge
    found = multiples(a, d)
    return None if found is None else found[0] // d + found[1] // d


DIVISION: tuple[DivisionRule, ...] = (
    Rule("divide by one", "a // 1 == a", "True", _by_one),
    Rule("divide zero", "0 // d == 0", "d != 0", _zero),
    Rule("negative divisor", "a // d == (-a) // (-d)", "d < 0", _negative_divisor),
    Rule("quotient by range", "a // d == k", "d != 0 and 0 <= (a - k*d) * d < d*d", _range),
    Rule("remainder by its divisor", "(a % d) // d == 0", "d != 0", _remainder_by_divisor),
    Rule("extract multiples", "(d*q + r) // d == q + r // d", "d != 0", _extract),
    Rule(
        "cancel a common factor",
        "(g*u + v) // (g*e) == u // e",
        "e != 0 and (0 <= v < g and e > 0 or v == 0 and g != 0)",
        _common_factor,
    ),
    Rule(
        "nested division",
        "(a // b + k) // c == (a + k*b) // (b*c)",
        "b != 0 and c > 0",
        _nested,
    ),
    Rule(
        "quotient of a remainder",
        "(a % (m*d)) // d == (a // d) % m",
        "d > 0 and m > 0",
        _of_remainder,
    ),
    Rule(
        "extract divisible terms",
        "(a + r) // d == a // d + r // d",
        "d != 0 and a % d == 0",
        _multiples,
    ),
)
