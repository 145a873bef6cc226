"""Rules for two conditions that hold together or of which one holds."""

from __future__ import annotations

from collections.abc import Callable

from ..base import ALGEBRA, Bool
from ..predicates import FALSE, TRUE, Cmp, Eq, Le, Lt, Ne
from ..rule import Rule
from ..terms import linear_terms

LogicRule = Rule[Callable[[Bool, Bool], "Bool | None"]]


def _same_order(p: Bool, q: Bool) -> int | None:
    """How much more the first of two orders demands, where only their constants differ."""
    if not (isinstance(p, (Le, Lt)) and isinstance(q, (Le, Lt))):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return constant_p - constant_q if terms_p == terms_q else None


def _opposite(p: Bool, q: Bool) -> bool:
    return isinstance(p, Cmp) and isinstance(q, Cmp) and ALGEBRA.negate(p) is q


def _both_opposite(p: Bool, q: Bool) -> Bool | None:
    return FALSE if _opposite(p, q) else None


def _both_ordered(p: Bool, q: Bool) -> Bool | None:
    more = _same_order(p, q)
    return None if more is None else (p if more >= 0 else q)


def _both_equal(p: Bool, q: Bool) -> Bool | None:
    if not (isinstance(p, Eq) and isinstance(q, Eq)):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return FALSE if terms_p == terms_q and constant_p != constant_q else None


def _either_opposite(p: Bool, q: Bool) -> Bool | None:
    return TRUE if _opposite(p, q) else None


def _either_ordered(p: Bool, q: Bool) -> Bool | None:
    more = _same_order(p, q)
    return None if more is None else (q if more >= 0 else p)


def _either_unequal(p: Bool, q: Bool) -> Bool | None:
    if not (isinstance(p, Ne) and isinstance(q, Ne)):
        return None
    terms_p, constant_p = linear_terms(p.delta)
    terms_q, constant_q = linear_terms(q.delta)
    return TRUE if terms_p == terms_q and constant_p != constant_q else None


BOTH: tuple[LogicRule, ...] = (
    Rule(
        "both of opposites",
        "not (e <= 0 and 1 - e <= 0) and not (e == 0 and e != 0)",
        "True",
        _both_opposite,
    ),
    Rule("both of two orders", "(e + k <= 0 and e <= 0) == (e + k <= 0)", "k >= 0", _both_ordered),
    Rule("both of two values", "not (e == 0 and e + k == 0)", "k != 0", _both_equal),
)

EITHER: tuple[LogicRule, ...] = (
    Rule(
        "either of opposites",
        "(e <= 0 or 1 - e <= 0) and (e == 0 or e != 0)",
        "True",
        _either_opposite,
    ),
    Rule("either of two orders", "(e + k <= 0 or e <= 0) == (e <= 0)", "k >= 0", _either_ordered),
    Rule("either of two inequalities", "e != 0 or e + k != 0", "k != 0", _either_unequal),
)
