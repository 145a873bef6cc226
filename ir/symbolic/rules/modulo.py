"""Rules for ``a % d``."""

from __future__ import annotations

from collections.abc import Callable

from ..base import Expr
from ..rule import Knowledge, Rule
from ..terms import Const, Mod, linear_terms
from .splits import extract, multiples, negative, split_by_factor

ModuloRule = Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]


def _by_one(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a % 1 -> 0``."""
    del a, knowledge
    return Const(0) if isinstance(d, Const) and d.value == 1 else None


def _zero(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``0 % d -> 0`` if ``d != 0``."""
    del d, knowledge
    return a if isinstance(a, Const) and a.value == 0 else None


def _negative_divisor(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a % d -> -((-a) % (-d))`` if ``d < 0``."""
    return -(-a % -d) if negative(d, knowledge) else None


def _residue(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a % d -> k`` if the congruence of ``a`` determines its residue ``k`` modulo ``d``."""
    del knowledge
    if isinstance(d, Const) and a.modulus % d.value == 0:
        return Const(a.remainder % d.value)
    return None


def _range(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``a % d -> a - k*d`` if ``k*d <= a < (k + 1)*d``, for a constant ``k``."""
    if isinstance(d, Const):
        lower, upper = knowledge.interval(a)
        if lower is None or upper is None or lower // d.value != upper // d.value:
            return None
        return a - lower // d.value * d.value
    if knowledge.non_negative(a):
        return a if knowledge.below(a, d) else None
    inside = knowledge.at_most(a, -1) and knowledge.non_negative(d) and knowledge.not_above(-a, d)
    return a + d if inside else None


def _extract(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(d*q + r) % d -> r % d`` if ``d != 0``."""
    del knowledge
    found = extract(a, d)
    return None if found is None else found[1] % d


def _common_factor(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(g*u + v) % (g*e) -> g*(u % e) + v`` if ``0 <= v < g`` and ``e > 0``, or if ``v == 0``."""
    found = split_by_factor(a, d, knowledge)
    if found is None:
        return None
    g, u, v, e = found
    return g * (u % e) + v


def _of_remainder(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(c*(x % m) + r) % d -> (c*x + r) % d`` if ``(c*m) % d == 0``, ``d != 0``, ``m != 0``."""
    del knowledge
    terms, constant = linear_terms(a)
    opened = [(_open(term, coefficient, d), coefficient) for term, coefficient in terms]
    if all(new is old for (new, _), (old, _) in zip(opened, terms, strict=True)):
        return None
    result: Expr = Const(constant)
    for term, coefficient in opened:
        result = result + coefficient * term
    return result % d


def _open(term: Expr, coefficient: int, d: Expr) -> Expr:
    """Return ``x`` for ``x % m`` if ``coefficient * m`` is a multiple of ``d``, else the term."""
    if not isinstance(term, Mod):
        return term
    whole = extract(coefficient * term.divisor, d)
    return term.numerator if whole is not None and whole[1] == 0 else term


def _multiples(a: Expr, d: Expr, knowledge: Knowledge) -> Expr | None:
    """``(a + r) % d -> r % d`` if ``a % d == 0`` and ``d != 0``."""
    del knowledge
    found = multiples(a, d)
    return None if found is None else found[1] % d


MODULO: tuple[ModuloRule, ...] = (
    Rule("remainder by one", "a % 1 == 0", "True", _by_one),
    Rule("remainder of zero", "0 % d == 0", "d != 0", _zero),
    Rule("negative divisor", "a % d == -((-a) % (-d))", "d < 0", _negative_divisor),
    Rule(
        "remainder by congruence",
        "a % d == k",
        "d > 0 and (a - k) % d == 0 and 0 <= k < d",
        _residue,
    ),
    Rule("remainder by range", "a % d == a - k*d", "d != 0 and 0 <= (a - k*d) * d < d*d", _range),
    Rule("drop multiples", "(d*q + r) % d == r % d", "d != 0", _extract),
    Rule(
        "extract a common factor",
        "(g*u + v) % (g*e) == g * (u % e) + v",
        "e != 0 and (0 <= v < g and e > 0 or v == 0 and g != 0)",
        _common_factor,
    ),
    Rule(
        "nested remainder",
        "(c * (x % m) + r) % d == (c*x + r) % d",
        "d != 0 and m != 0 and (c*m) % d == 0",
        _of_remainder,
    ),
    Rule("drop divisible terms", "(a + r) % d == r % d", "d != 0 and a % d == 0", _multiples),
)
