"""Rules for conjunctions and disjunctions of two conditions."""

from __future__ import annotations

from collections.abc import Callable

from ..base import ALGEBRA, Bool
from ..predicates import FALSE, TRUE, Cmp, Eq, Le, Lt, Ne
from ..rule import Rule
from ..terms import linear_terms

LogicRule = Rule[Callable[[Bool, Bool], "Bool | None"]]


def _constant_difference(p: Bool, q: Bool) -> int | None:
    """Return the difference of the constants of two inequalities with equal terms, else None."""
    if not (isinstance(p, (Le, Lt)) and isinstance(q, (Le, Lt))):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return constant_p - constant_q if terms_p == terms_q else None


def _opposite(p: Bool, q: Bool) -> bool:
    return isinstance(p, Cmp) and isinstance(q, Cmp) and ALGEBRA.negate(p) is q


def _and_opposite(p: Bool, q: Bool) -> Bool | None:
    """``p and not p -> False``."""
    return FALSE if _opposite(p, q) else None


def _and_ordered(p: Bool, q: Bool) -> Bool | None:
    """``e + k <= 0 and e <= 0 -> e + k <= 0`` if ``k >= 0``."""
    difference = _constant_difference(p, q)
    return None if difference is None else (p if difference >= 0 else q)


def _and_equal(p: Bool, q: Bool) -> Bool | None:
    """``e == 0 and e + k == 0 -> False`` if ``k != 0``."""
    if not (isinstance(p, Eq) and isinstance(q, Eq)):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return FALSE if terms_p == terms_q and constant_p != constant_q else None


def _or_opposite(p: Bool, q: Bool) -> Bool | None:
    """``p or not p -> True``."""
    return TRUE if _opposite(p, q) else None


def _or_ordered(p: Bool, q: Bool) -> Bool | None:
    """``e + k <= 0 or e <= 0 -> e <= 0`` if ``k >= 0``."""
    difference = _constant_difference(p, q)
    return None if difference is None else (q if difference >= 0 else p)


def _or_unequal(p: Bool, q: Bool) -> Bool | None:
    """``e != 0 or e + k != 0 -> True`` if ``k != 0``."""
    if not (isinstance(p, Ne) and isinstance(q, Ne)):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return TRUE if terms_p == terms_q and constant_p != constant_q else None


CONJUNCTION: tuple[LogicRule, ...] = (
    Rule(
        "conjunction of opposites",
        "not (e <= 0 and 1 - e <= 0) and not (e == 0 and e != 0)",
        "True",
        _and_opposite,
    ),
    Rule(
        "conjunction of bounds", "(e + k <= 0 and e <= 0) == (e + k <= 0)", "k >= 0", _and_ordered
    ),
    Rule("conjunction of equalities", "not (e == 0 and e + k == 0)", "k != 0", _and_equal),
)

DISJUNCTION: tuple[LogicRule, ...] = (
    Rule(
        "disjunction of opposites",
        "(e <= 0 or 1 - e <= 0) and (e == 0 or e != 0)",
        "True",
        _or_opposite,
    ),
    Rule("disjunction of bounds", "(e + k <= 0 or e <= 0) == (e <= 0)", "k >= 0", _or_ordered),
    Rule("disjunction of disequalities", "e != 0 or e + k != 0", "k != 0", _or_unequal),
)
