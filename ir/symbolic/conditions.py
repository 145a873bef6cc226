"""Constructors of conditions, minima, maxima and selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import attrgetter

from . import ranges
from .base import ALGEBRA, Bool, Expr, SymInt, ValueRange
from .build import as_expr, const_value, decided, value_range_of
from .errors import NotAConditionError, NotAnIntegerError
from .intern import InternTable
from .predicates import FALSE, TRUE, And, BoolConst, Cmp, Eq, Le, Lt, Ne, Or
from .rule import PLAIN, Knowledge
from .rules.choices import MAXIMUM, MINIMUM, SELECTION, PairRule
from .rules.comparison import EQUALITY, ORDER, ComparisonRule
from .rules.logic import CONJUNCTION, DISJUNCTION, LogicRule
from .terms import Const, Max, Min, Select, linear_terms

_by_order = attrgetter("order")
_orders: InternTable[Cmp] = InternTable()
_equalities: InternTable[Cmp] = InternTable()
_inequalities: InternTable[Cmp] = InternTable()
_conjunctions: InternTable[Bool] = InternTable()
_disjunctions: InternTable[Bool] = InternTable()
_least: InternTable[Expr] = InternTable()
_greatest: InternTable[Expr] = InternTable()
_choices: InternTable[Select] = InternTable()


def normalize(e: Expr, rules: tuple[ComparisonRule, ...], knowledge: Knowledge) -> Expr | bool:
    """Apply rules to a comparison with zero until none matches."""
    again = True
    while again:
        again = False
        for rule in rules:
            found = rule.apply(e, knowledge)
            if isinstance(found, bool):
                return found
            if found is not None:
                e, again = found, True
                break
    return e


def order_of(e: Expr, knowledge: Knowledge = PLAIN) -> Bool:
    """Return the condition ``e <= 0``."""
    if type(e) is Const and knowledge is PLAIN:
        return TRUE if e.value <= 0 else FALSE
    present = _orders.get(e) if knowledge is PLAIN else None
    if present is not None:
        return present
    normal = normalize(e, ORDER, knowledge)
    if isinstance(normal, bool):
        return BoolConst(normal)
    kind = Lt if _strict(normal) else Le
    found = _orders.get(normal)
    return found if found is not None else _orders.add(normal, kind(normal))


def _strict(delta: Expr) -> bool:
    """Return whether to print ``<`` rather than ``<=``.

    ``i < 8`` equals ``i <= 7``: of these two forms, the one with the even constant is printed.
    """
    terms, constant = linear_terms(delta)
    signs = {c > 0 for _, c in terms}
    return constant == 1 if len(signs) == 2 else constant % 2 == 1


def equality_of(e: Expr, knowledge: Knowledge = PLAIN) -> Bool:
    """Return the condition ``e == 0``."""
    normal = normalize(e, EQUALITY, knowledge)
    if isinstance(normal, bool):
        return BoolConst(normal)
    found = _equalities.get(normal)
    return found if found is not None else _equalities.add(normal, Eq(normal))


def less_equal(a: SymInt, b: SymInt) -> Bool:
    """Return the condition ``a <= b``."""
    return TRUE if _is_at_most(a, b) else order_of(as_expr(a) - b)


def less(a: SymInt, b: SymInt) -> Bool:
    """Return the condition ``a < b``."""
    return TRUE if _is_at_most(a, b, 1) else order_of(as_expr(a) - b + 1)


def _is_at_most(a: SymInt, b: SymInt, offset: int = 0) -> bool:
    """Return whether ``a + offset <= b`` holds by the bounds of one side; the other is a constant.

    The rules for comparisons find the same, after they build the difference.
    """
    first, last = const_value(a), const_value(b)
    if last is None and first is not None and isinstance(b, Expr):
        last = b.lower
    elif first is None and last is not None and isinstance(a, Expr):
        first = a.upper
    return first is not None and last is not None and first + offset <= last


def eq(a: SymInt, b: SymInt) -> Bool:
    """Return the condition that two integers are equal; ``==`` compares terms, not values.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> eq(n % 4, 0)
    n % 4 == 0
    """
    return equality_of(as_expr(a) - b)


def ne(a: SymInt, b: SymInt) -> Bool:
    """Return the condition that two integers differ.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> ne(var("n"), 0)
    n != 0
    """
    return negate(eq(a, b))


def negate(p: Bool) -> Bool:
    """Return the negated condition, with negation pushed down to the comparisons.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> negate(var("n") < 8)
    n >= 8
    """
    p = as_condition(p)
    match p:
        case BoolConst(value):
            return FALSE if value else TRUE
        case Eq():
            return _inequality(p.delta)
        case Ne():
            return equality_of(p.delta)
        case Le() | Lt():
            return order_of(1 - p.delta)
        case And(args):
            return any_of(*[negate(arg) for arg in args])
        case Or(args):
            return all_of(*[negate(arg) for arg in args])
        case _:
            raise TypeError(f"unknown kind of condition: {type(p).__name__}")


def _inequality(delta: Expr) -> Bool:
    found = _inequalities.get(delta)
    return found if found is not None else _inequalities.add(delta, Ne(delta))


def as_condition(p: object) -> Bool:
    """Check that a value is a condition; ``a == b`` is a Python bool, a frequent mistake.

    Examples
    --------
    >>> as_condition(TRUE)
    True
    """
    if isinstance(p, Bool):
        return p
    raise NotAConditionError(
        f"expected a symbolic condition, got {p!r} of type {type(p).__name__}",
        hint="build one with <, <=, eq(a, b), ne(a, b), all_of or any_of; == compares terms",
    )


def all_of(*ps: Bool) -> Bool:
    """Return the conjunction of conditions; TRUE if there are none.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> all_of(n < 8, n < 16)
    n < 8
    """
    return _connect(ps, And, FALSE, CONJUNCTION, _conjunctions)


def any_of(*ps: Bool) -> Bool:
    """Return the disjunction of conditions; FALSE if there are none.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> any_of(n < 8, 8 <= n)
    True
    """
    return _connect(ps, Or, TRUE, DISJUNCTION, _disjunctions)


def _connect(
    ps: Iterable[Bool],
    kind: type[And | Or],
    absorbing: BoolConst,
    rules: tuple[LogicRule, ...],
    table: InternTable[Bool],
) -> Bool:
    """Build a conjunction or disjunction: flatten, remove duplicates, apply rules to each pair."""
    kept: list[Bool] = []
    pending = [as_condition(p) for p in ps][::-1]
    while pending:
        p = pending.pop()
        if isinstance(p, kind):
            pending.extend(reversed(p.args))
        elif p is absorbing:
            return absorbing
        elif not isinstance(p, BoolConst) and p not in kept:
            _insert(p, kept, pending, rules)
    if len(kept) < 2:
        return kept[0] if kept else negate(absorbing)
    key = frozenset(kept)
    found = table.get(key)
    return found if found is not None else table.add(key, kind(tuple(sorted(kept, key=_by_order))))


def _insert(p: Bool, kept: list[Bool], pending: list[Bool], rules: tuple[LogicRule, ...]) -> None:
    """Add a condition, or replace a pair that matches a rule by its replacement."""
    for i, q in enumerate(kept):
        for rule in rules:
            found = rule.apply(p, q)
            if found is not None:
                del kept[i]
                pending.append(found)
                return
    kept.append(p)


def minimum(*xs: SymInt) -> Expr:
    """Return the minimum of at least one integer.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> minimum(var("n", upper=64), 100)
    n
    """
    return choose(xs, Min, MINIMUM, PLAIN)


def maximum(*xs: SymInt) -> Expr:
    """Return the maximum of at least one integer.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> maximum(var("n"), 0)
    max(0, n)
    """
    return choose(xs, Max, MAXIMUM, PLAIN)


def choose(
    xs: Iterable[SymInt],
    kind: type[Min | Max],
    rules: tuple[PairRule, ...],
    knowledge: Knowledge,
) -> Expr:
    """Build a minimum or maximum: flatten, then remove redundant arguments by rules."""
    kept: list[Expr] = []
    pending = [as_expr(x) for x in xs][::-1]
    if not pending:
        raise NotAnIntegerError(
            "expected at least one integer, got none",
            hint="pass at least one argument to minimum or maximum",
        )
    while pending:
        x = pending.pop()
        if isinstance(x, kind):
            pending.extend(reversed(x.args))
        elif x not in kept:
            _keep_unless_redundant(x, kept, rules, knowledge)
    if len(kept) == 1:
        return kept[0]
    return _extremum(kind, tuple(sorted(kept, key=_by_order)))


def _keep_unless_redundant(
    x: Expr, kept: list[Expr], rules: tuple[PairRule, ...], knowledge: Knowledge
) -> None:
    for i, y in enumerate(kept):
        winner = _winner(x, y, rules, knowledge)
        if winner is y:
            return
        if winner is x:
            del kept[i]
            _keep_unless_redundant(x, kept, rules, knowledge)
            return
    kept.append(x)


def _winner(x: Expr, y: Expr, rules: tuple[PairRule, ...], knowledge: Knowledge) -> Expr | None:
    for rule in rules:
        found = rule.apply(x, y, knowledge)
        if found is not None:
            return found
    return None


def _extremum(kind: type[Min | Max], args: tuple[Expr, ...]) -> Expr:
    least = kind is Min
    table = _least if least else _greatest
    key = frozenset(args)
    combine: Callable[[ValueRange, ValueRange], ValueRange] = (
        ranges.range_of_minimum if least else ranges.range_of_maximum
    )
    found = table.get(key)
    if found is not None:
        return found
    value_range = reduce(combine, map(value_range_of, args))
    return decided(value_range) or table.add(key, kind(args, value_range))


def select(condition: Bool, a: SymInt, b: SymInt) -> Expr:
    """Return a term that is ``a`` if the condition holds, else ``b``.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> select(n < 8, n, 0)
    select(n < 8, n, 0)
    """
    condition, then, otherwise = as_condition(condition), as_expr(a), as_expr(b)
    for rule in SELECTION:
        found = rule.apply(condition, then, otherwise, PLAIN)
        if found is not None:
            return found
    key = (condition, then, otherwise)
    found = _choices.get(key)
    if found is not None:
        return found
    value_range = ranges.range_of_select(value_range_of(then), value_range_of(otherwise))
    return decided(value_range) or _choices.add(
        key, Select(condition, then, otherwise, value_range)
    )


ALGEBRA.less = less
ALGEBRA.less_equal = less_equal
ALGEBRA.both = all_of
ALGEBRA.either = any_of
ALGEBRA.negate = negate
ALGEBRA.least = minimum
ALGEBRA.greatest = maximum
ALGEBRA.select = select
