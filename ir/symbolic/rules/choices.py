"""Rules for ``min(a, b)``, ``max(a, b)`` and ``select(condition, a, b)``."""

from __future__ import annotations

from collections.abc import Callable

from ..base import ALGEBRA, Bool, Expr
from ..predicates import BoolConst, Le, Lt, Ne
from ..rule import Knowledge, Rule
from ..terms import Max, Min, Select

PairRule = Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]
SelectRule = Rule[Callable[[Bool, Expr, Expr, Knowledge], Expr | None]]


def _least_by_order(a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    if know.not_above(a, b):
        return a
    return b if know.not_above(b, a) else None


def _least_absorbs(a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    if isinstance(b, Max) and a in b.args:
        return a
    return b if isinstance(a, Max) and b in a.args else None


def _greatest_by_order(a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    if know.not_above(a, b):
        return b
    return a if know.not_above(b, a) else None


def _greatest_absorbs(a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    if isinstance(b, Min) and a in b.args:
        return a
    return b if isinstance(a, Min) and b in a.args else None


def _decided(condition: Bool, a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    if isinstance(condition, BoolConst):
        return a if condition.value else b
    return None


def _same(condition: Bool, a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del condition, know
    return a if a is b else None


def _unequal(condition: Bool, a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    return ALGEBRA.select(~condition, b, a) if isinstance(condition, Ne) else None


def _again(condition: Bool, a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    if isinstance(a, Select) and a.condition is condition:
        return ALGEBRA.select(condition, a.then, b)
    if isinstance(b, Select) and b.condition is condition:
        return ALGEBRA.select(condition, a, b.otherwise)
    return None


def _extremum(condition: Bool, a: Expr, b: Expr, know: Knowledge) -> Expr | None:
    del know
    if not isinstance(condition, (Le, Lt)):
        return None
    if condition is (a <= b) or condition is (a < b):
        return ALGEBRA.least(a, b)
    return ALGEBRA.greatest(a, b) if condition is (b <= a) or condition is (b < a) else None


LEAST: tuple[PairRule, ...] = (
    Rule("least by order", "min(a, b) == a", "a <= b", _least_by_order),
    Rule("least of a greater", "min(a, max(a, b)) == a", "True", _least_absorbs),
)

GREATEST: tuple[PairRule, ...] = (
    Rule("greatest by order", "max(a, b) == b", "a <= b", _greatest_by_order),
    Rule("greatest of a lesser", "max(a, min(a, b)) == a", "True", _greatest_absorbs),
)

SELECTION: tuple[SelectRule, ...] = (
    Rule(
        "decided choice",
        "(a if p == p else b) == a and (a if p != p else b) == b",
        "True",
        _decided,
    ),
    Rule("choice of one value", "(a if p <= 0 else a) == a", "True", _same),
    Rule("choice by inequality", "(a if p != 0 else b) == (b if p == 0 else a)", "True", _unequal),
    Rule(
        "choice decided before",
        "(a if p <= 0 else (x if p <= 0 else b)) == (a if p <= 0 else b)"
        " and ((a if p <= 0 else x) if p <= 0 else b) == (a if p <= 0 else b)",
        "True",
        _again,
    ),
    Rule(
        "choice of an extremum",
        "(a if a <= b else b) == min(a, b) and (a if a < b else b) == min(a, b)"
        " and (a if b <= a else b) == max(a, b) and (a if b < a else b) == max(a, b)",
        "True",
        _extremum,
    ),
)
