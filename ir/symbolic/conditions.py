"""The constructors of conditions, of choices by order and of choices by condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import attrgetter

from . import ranges
from .base import ALGEBRA, Bool, Expr, Known, SymInt
from .build import as_expr, decided, known_of
from .errors import NotAConditionError, NotAnIntegerError
from .intern import InternTable
from .predicates import FALSE, TRUE, And, BoolConst, Cmp, Eq, Le, Lt, Ne, Or
from .rule import PLAIN, Knowledge
from .rules.choices import GREATEST, LEAST, SELECTION, PairRule
from .rules.comparison import EQUALITY, ORDER, ComparisonRule
from .rules.logic import BOTH, EITHER, LogicRule
from .terms import Max, Min, Select, linear_terms

_by_order = attrgetter("order")
_orders: InternTable[Cmp] = InternTable()
_equalities: InternTable[Cmp] = InternTable()
_inequalities: InternTable[Cmp] = InternTable()
_conjunctions: InternTable[Bool] = InternTable()
_disjunctions: InternTable[Bool] = InternTable()
_least: InternTable[Expr] = InternTable()
_greatest: InternTable[Expr] = InternTable()
_choices: InternTable[Select] = InternTable()


def normalise(e: Expr, rules: tuple[ComparisonRule, ...], know: Knowledge) -> Expr | bool:
    """Apply rules to a comparison with zero until none fits."""
    again = True
    while again:
        again = False
        for rule in rules:
            found = rule.apply(e, know)
            if isinstance(found, bool):
                return found
            if found is not None:
                e, again = found, True
                break
    return e


def order_of(e: Expr, know: Knowledge = PLAIN) -> Bool:
    """``e <= 0``."""
    present = _orders.get(e) if know is PLAIN else None
    if present is not None:
        return present
    normal = normalise(e, ORDER, know)
    if isinstance(normal, bool):
        return BoolConst(normal)
    kind = Lt if _strict(normal) else Le
    found = _orders.get(normal)
    return found if found is not None else _orders.add(normal, kind(normal))


def _strict(delta: Expr) -> bool:
    """Whether ``<`` reads better than ``<=``.

    Against a constant, the even one of two possible bounds: ``i < 8``, ``n <= 64``, ``0 < n``.
    """
    terms, constant = linear_terms(delta)
    signs = {c > 0 for _, c in terms}
    return constant == 1 if len(signs) == 2 else constant % 2 == 1


def equality_of(e: Expr, know: Knowledge = PLAIN) -> Bool:
    """``e == 0``."""
    normal = normalise(e, EQUALITY, know)
    if isinstance(normal, bool):
        return BoolConst(normal)
    found = _equalities.get(normal)
    return found if found is not None else _equalities.add(normal, Eq(normal))


def less_equal(a: SymInt, b: SymInt) -> Bool:
    """``a <= b``."""
    return order_of(as_expr(a) - b)


def less(a: SymInt, b: SymInt) -> Bool:
    """``a < b``."""
    return order_of(as_expr(a) - b + 1)


def eq(a: SymInt, b: SymInt) -> Bool:
    """The condition that two integers are equal; ``==`` compares terms, not values.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> eq(n % 4, 0)
    n % 4 == 0
    """
    return equality_of(as_expr(a) - b)


def ne(a: SymInt, b: SymInt) -> Bool:
    """The condition that two integers differ.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> ne(var("n"), 0)
    n != 0
    """
    return negate(eq(a, b))


def negate(p: Bool) -> Bool:
    """The opposite condition, pushed down to the comparisons.

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
    """Check that something is a condition; ``a == b`` is a Python bool, a frequent slip.

    Examples
    --------
    >>> as_condition(TRUE)
    True
    """
    if isinstance(p, Bool):
        return p
    raise NotAConditionError(
        f"{p!r} of type {type(p).__name__} is not a symbolic condition",
        hint="build one with <, <=, eq(a, b), ne(a, b), all_of or any_of; == compares terms",
    )


def all_of(*ps: Bool) -> Bool:
    """The condition that all hold; TRUE if there are none.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> all_of(n < 8, n < 16)
    n < 8
    """
    return _connect(ps, And, FALSE, BOTH, _conjunctions)


def any_of(*ps: Bool) -> Bool:
    """The condition that at least one holds; FALSE if there are none.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> any_of(n < 8, 8 <= n)
    True
    """
    return _connect(ps, Or, TRUE, EITHER, _disjunctions)


def _connect(
    ps: Iterable[Bool],
    kind: type[And | Or],
    absorbing: BoolConst,
    rules: tuple[LogicRule, ...],
    table: InternTable[Bool],
) -> Bool:
    """Flatten, drop repetitions, let the rules look at each pair."""
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
    """Keep a condition, or replace it and the one it meets by what a rule makes of them."""
    for i, q in enumerate(kept):
        for rule in rules:
            found = rule.apply(p, q)
            if found is not None:
                del kept[i]
                pending.append(found)
                return
    kept.append(p)


def minimum(*xs: SymInt) -> Expr:
    """The least of at least one integer.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> minimum(var("n", upper=64), 100)
    n
    """
    return choose(xs, Min, LEAST, PLAIN)


def maximum(*xs: SymInt) -> Expr:
    """The greatest of at least one integer.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> maximum(var("n"), 0)
    max(0, n)
    """
    return choose(xs, Max, GREATEST, PLAIN)


def choose(
    xs: Iterable[SymInt],
    kind: type[Min | Max],
    rules: tuple[PairRule, ...],
    know: Knowledge,
) -> Expr:
    """Flatten, then let the rules drop what another argument makes superfluous."""
    kept: list[Expr] = []
    pending = [as_expr(x) for x in xs][::-1]
    if not pending:
        raise NotAnIntegerError(
            "the least or greatest of nothing was asked for", hint="pass a value"
        )
    while pending:
        x = pending.pop()
        if isinstance(x, kind):
            pending.extend(reversed(x.args))
        elif x not in kept:
            _compete(x, kept, rules, know)
    if len(kept) == 1:
        return kept[0]
    return _extremum(kind, tuple(sorted(kept, key=_by_order)))


def _compete(x: Expr, kept: list[Expr], rules: tuple[PairRule, ...], know: Knowledge) -> None:
    for i, y in enumerate(kept):
        winner = _winner(x, y, rules, know)
        if winner is y:
            return
        if winner is x:
            del kept[i]
            _compete(x, kept, rules, know)
            return
    kept.append(x)


def _winner(x: Expr, y: Expr, rules: tuple[PairRule, ...], know: Knowledge) -> Expr | None:
    for rule in rules:
        found = rule.apply(x, y, know)
        if found is not None:
            return found
    return None


def _extremum(kind: type[Min | Max], args: tuple[Expr, ...]) -> Expr:
    least = kind is Min
    table = _least if least else _greatest
    key = frozenset(args)
    combine: Callable[[Known, Known], Known] = (
        ranges.known_of_least if least else ranges.known_of_greatest
    )
    found = table.get(key)
    if found is not None:
        return found
    known = reduce(combine, map(known_of, args))
    return decided(known) or table.add(key, kind(args, known))


def select(condition: Bool, a: SymInt, b: SymInt) -> Expr:
    """``a`` where the condition holds, else ``b``.

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
    known = ranges.known_of_choice(known_of(then), known_of(otherwise))
    return decided(known) or _choices.add(key, Select(condition, then, otherwise, known))


ALGEBRA.less = less
ALGEBRA.less_equal = less_equal
ALGEBRA.both = all_of
ALGEBRA.either = any_of
ALGEBRA.negate = negate
ALGEBRA.least = minimum
ALGEBRA.greatest = maximum
ALGEBRA.select = select
