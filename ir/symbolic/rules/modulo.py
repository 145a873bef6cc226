"""Rules for ``a % d``."""

from __future__ import annotations

from collections.abc import Callable

from ..base import Expr
from ..rule import Knowledge, Rule
from ..terms import Const, Mod, linear_terms
from .splits import extract, multiples, negative, split_by_unit

ModuloRule = Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]


def _by_one(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del a, know
    return Const(0) if isinstance(d, Const) and d.value == 1 else None


def _zero(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del d, know
    return a if isinstance(a, Const) and a.value == 0 else None


def _negative_divisor(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    return -(-a % -d) if negative(d, know) else None


def _residue(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del know
    if isinstance(d, Const) and a.modulus % d.value == 0:
        return Const(a.remainder % d.value)
    return None


def _range(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    if isinstance(d, Const):
        lower, upper = know.interval(a)
        if lower is None or upper is None or lower // d.value != upper // d.value:
            return None
        return a - lower // d.value * d.value
    if know.non_negative(a):
        return a if know.below(a, d) else None
    inside = know.at_most(a, -1) and know.non_negative(d) and know.not_above(-a, d)
    return a + d if inside else None


def _extract(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del know
    found = extract(a, d)
    return None if found is None else found[1] % d


def _unit(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    found = split_by_unit(a, d, know)
    if found is None:
        return None
    g, u, v, e = found
    return g * (u % e) + v


def _of_remainder(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del know
    terms, constant = linear_terms(a)
    opened = [(_open(term, coefficient, d), coefficient) for term, coefficient in terms]
    if all(new is old for (new, _), (old, _) in zip(opened, terms, strict=True)):
        return None
    result: Expr = Const(constant)
    for term, coefficient in opened:
        result = result + coefficient * term
    return result % d


def _open(term: Expr, coefficient: int, d: Expr) -> Expr:
    """The inside of ``x % m`` where ``coefficient * m`` is a multiple of ``d``."""
    if not isinstance(term, Mod):
        return term
    whole = extract(coefficient * term.divisor, d)
    return term.numerator if whole is not None and whole[1] == 0 else term


def _multiples(a: Expr, d: Expr, know: Knowledge) -> Expr | None:
    del know
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
        "remainder by a unit and what it leaves",
        "(g*u + v) % (g*e) == g * (u % e) + v",
        "e != 0 and (0 <= v < g and e > 0 or v == 0 and g != 0)",
        _unit,
    ),
    Rule(
        "remainder of remainders",
        "(c * (x % m) + r) % d == (c*x + r) % d",
        "d != 0 and m != 0 and (c*m) % d == 0",
        _of_remainder,
    ),
    Rule("drop known multiples", "(a + r) % d == r % d", "d != 0 and a % d == 0", _multiples),
)
