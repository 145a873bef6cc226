"""Rules for ``min(a, b)``, ``max(a, b)`` and ``select(condition, a, b)``."""

from __future__ import annotations

from collections.abc import Callable

from ..base import ALGEBRA, Bool, Expr
from ..predicates import BoolConst, Le, Lt, Ne
from ..rule import Knowledge, Rule
from ..terms import Max, Min, Select

PairRule = Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]
SelectRule = Rule[Callable[[Bool, Expr, Expr, Knowledge], Expr | None]]


def _minimum_by_order(a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``min(a, b) -> a`` if ``a <= b``."""
    if knowledge.not_above(a, b):
        return a
    return b if knowledge.not_above(b, a) else None


def _minimum_absorbs(a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``min(a, max(a, b)) -> a``."""
    del knowledge
    if isinstance(b, Max) and a in b.args:
        return a
    return b if isinstance(a, Max) and b in a.args else None


def _maximum_by_order(a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``max(a, b) -> b`` if ``a <= b``."""
    if knowledge.not_above(a, b):
        return b
    return a if knowledge.not_above(b, a) else None


def _maximum_absorbs(a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``max(a, min(a, b)) -> a``."""
    del knowledge
    if isinstance(b, Min) and a in b.args:
        return a
    return b if isinstance(a, Min) and b in a.args else None


def _constant_condition(condition: Bool, a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``select(True, a, b) -> a`` and ``select(False, a, b) -> b``."""
    del knowledge
    if isinstance(condition, BoolConst):
        return a if condition.value else b
    return None


def _equal_branches(condition: Bool, a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``select(p, a, a) -> a``."""
    del condition, knowledge
    return a if a is b else None


def _negated_equality(condition: Bool, a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``select(x != y, a, b) -> select(x == y, b, a)``."""
    del knowledge
    return ALGEBRA.select(~condition, b, a) if isinstance(condition, Ne) else None


def _repeated_condition(condition: Bool, a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``select(p, select(p, a, x), b) -> select(p, a, b)``, likewise in the other branch."""
    del knowledge
    if isinstance(a, Select) and a.condition is condition:
        return ALGEBRA.select(condition, a.then, b)
    if isinstance(b, Select) and b.condition is condition:
        return ALGEBRA.select(condition, a, b.otherwise)
    return None


def _to_extremum(condition: Bool, a: Expr, b: Expr, knowledge: Knowledge) -> Expr | None:
    """``select(a <= b, a, b) -> min(a, b)`` and ``select(b <= a, a, b) -> max(a, b)``."""
    del knowledge
    if not isinstance(condition, (Le, Lt)):
        return None
    if condition is (a <= b) or condition is (a < b):
        return ALGEBRA.least(a, b)
    return ALGEBRA.greatest(a, b) if condition is (b <= a) or condition is (b < a) else None


MINIMUM: tuple[PairRule, ...] = (
    Rule("minimum by order", "min(a, b) == a", "a <= b", _minimum_by_order),
    Rule("minimum absorbs maximum", "min(a, max(a, b)) == a", "True", _minimum_absorbs),
)

MAXIMUM: tuple[PairRule, ...] = (
    Rule("maximum by order", "max(a, b) == b", "a <= b", _maximum_by_order),
    Rule("maximum absorbs minimum", "max(a, min(a, b)) == a", "True", _maximum_absorbs),
)

SELECTION: tuple[SelectRule, ...] = (
    Rule(
        "constant condition",
        "(a if p == p else b) == a and (a if p != p else b) == b",
        "True",
        _constant_condition,
    ),
    Rule("equal branches", "(a if p <= 0 else a) == a", "True", _equal_branches),
    Rule(
        "negated equality",
        "(a if p != 0 else b) == (b if p == 0 else a)",
        "True",
        _negated_equality,
    ),
    Rule(
        "repeated condition",
        "(a if p <= 0 else (x if p <= 0 else b)) == (a if p <= 0 else b)"
        " and ((a if p <= 0 else x) if p <= 0 else b) == (a if p <= 0 else b)",
        "True",
        _repeated_condition,
    ),
    Rule(
        "select to minimum or maximum",
        "(a if a <= b else b) == min(a, b) and (a if a < b else b) == min(a, b)"
        " and (a if b <= a else b) == max(a, b) and (a if b < a else b) == max(a, b)",
        "True",
        _to_extremum,
    ),
)
