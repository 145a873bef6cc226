"""Traversal of terms: symbols, substitution, evaluation. All functions are iterative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, overload

from .base import Bool, Expr, SymInt, Term, Var
from .build import as_expr, product, weighted_sum
from .conditions import all_of, any_of, equality_of, maximum, minimum, ne, order_of, select
from .errors import UnboundSymbolError, ZeroDivisorError
from .predicates import And, BoolConst, Eq, Le, Lt, Ne, Or
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select

ResultT = TypeVar("ResultT")


def postorder(root: Term, skip: Callable[[Term], bool] | None = None) -> list[Term]:
    """Return the distinct subterms, children first; children of skipped terms are omitted."""
    seen: set[Term] = set()
    result: list[Term] = []
    stack: list[tuple[Term, bool]] = [(root, False)]
    while stack:
        term, done = stack.pop()
        if done:
            result.append(term)
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            if skip is None or not skip(term):
                stack.extend((child, False) for child in reversed(term.children))
    return result


def free_vars(e: Term) -> frozenset[Var]:
    """Return the symbols of a term.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> free_vars(n % 4 + 1) == {n}
    True
    """
    return e.free


class Replacement:
    """A map from old terms to new terms; unlisted terms are unchanged."""

    __slots__ = ("built",)

    def __init__(self, built: dict[Term, Term]) -> None:
        """Use a table to which the caller may add entries."""
        self.built = built

    def integer(self, old: Expr) -> Expr:
        """Return the replacement of an integer term."""
        found = self.built.get(old, old)
        assert isinstance(found, Expr)  # noqa: S101 - a term's kind never changes
        return found

    def condition(self, old: Bool) -> Bool:
        """Return the replacement of a condition."""
        found = self.built.get(old, old)
        assert isinstance(found, Bool)  # noqa: S101 - a term's kind never changes
        return found


def rebuild(term: Term, by: Replacement) -> Expr | Bool:
    """Rebuild a term from the replacements of its children."""
    match term:
        case Add(terms, constant):
            return weighted_sum([(by.integer(part), c) for part, c in terms], constant)
        case Mul(factors):
            return product(map(by.integer, factors))
        case FloorDiv(a, d):
            return by.integer(a) // by.integer(d)
        case Mod(a, d):
            return by.integer(a) % by.integer(d)
        case Var() | Const() | BoolConst():
            return term
        case Min(args):
            return minimum(*map(by.integer, args))
        case Max(args):
            return maximum(*map(by.integer, args))
        case Select(p, a, b):
            return select(by.condition(p), by.integer(a), by.integer(b))
        case _:
            return _rebuild_condition(term, by)


def _rebuild_condition(term: Term, by: Replacement) -> Bool:
    match term:
        case Le() | Lt():
            return order_of(by.integer(term.delta))
        case Eq():
            return equality_of(by.integer(term.delta))
        case Ne():
            return ne(by.integer(term.delta), 0)
        case And(args):
            return all_of(*map(by.condition, args))
        case Or(args):
            return any_of(*map(by.condition, args))
        case _:
            raise TypeError(f"unknown kind of term: {type(term).__name__}")


@overload
def substitute(e: Expr, values: Mapping[Var, SymInt]) -> Expr: ...
@overload
def substitute(e: Bool, values: Mapping[Var, SymInt]) -> Bool: ...
@overload
def substitute(e: Expr | Bool, values: Mapping[Var, SymInt]) -> Expr | Bool: ...
def substitute(e: Expr | Bool, values: Mapping[Var, SymInt]) -> Expr | Bool:
    """Replace symbols simultaneously, and simplify.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n"), var("i", lower=0, upper=7)
    >>> substitute((n + 3) // 8, {n: 8 * n + i})
    n + (i + 3) // 8
    """
    if not values or e.free.isdisjoint(values):
        return e
    if isinstance(e, Var):  # most terms are symbols
        return as_expr(values[e])
    built: dict[Term, Term] = {v: as_expr(value) for v, value in values.items()}
    by = Replacement(built)
    stack: list[Term] = [e]
    while stack:
        term = stack[-1]
        pending = [
            child
            for child in term.children
            if child not in built and not child.free.isdisjoint(values)
        ]
        if pending:
            stack.extend(pending)
        else:
            if term not in built:
                built[term] = rebuild(term, by)
            stack.pop()
    return by.integer(e) if isinstance(e, Expr) else by.condition(e)


def divides_by_zero(e: Term) -> bool:
    """Return whether a term contains a division by the constant 0.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n"), var("i")
    >>> divides_by_zero(i // n), divides_by_zero(substitute(i // n, {n: 0}))
    (False, True)
    """
    return any(_has_zero_divisor(part) for part in postorder(e))


def _has_zero_divisor(term: Term) -> bool:
    return isinstance(term, FloorDiv | Mod) and term.divisor == Const(0)


@overload
def without_zero_divisors(e: Expr) -> Expr: ...
@overload
def without_zero_divisors(e: Bool) -> Bool: ...
def without_zero_divisors(e: Expr | Bool) -> Expr | Bool:
    """Return a term of code that never runs with the divisors that are 0 replaced by 1.

    The result has a value for all values of its symbols, so it can be printed and parsed again.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n"), var("i")
    >>> without_zero_divisors(substitute(i // n + n, {n: 0}))
    i
    """
    if not divides_by_zero(e):
        return e
    built: dict[Term, Term] = {}
    by = Replacement(built)
    for term in postorder(e):
        new = rebuild(term, by)
        if isinstance(new, FloorDiv | Mod) and new.divisor == Const(0):
            new = new.numerator if isinstance(new, FloorDiv) else Const(0)
        built[term] = new
    return by.integer(e) if isinstance(e, Expr) else by.condition(e)


@overload
def evaluate(e: Expr, values: Mapping[Var, int]) -> int: ...
@overload
def evaluate(e: Bool, values: Mapping[Var, int]) -> bool: ...
@overload
def evaluate(e: Expr | Bool, values: Mapping[Var, int]) -> int | bool: ...
def evaluate(e: Expr | Bool, values: Mapping[Var, int]) -> int | bool:
    """Return the value of a term for given values of its symbols.

    `Select` evaluates only the chosen branch; `And` and `Or` short-circuit from the left.

    Raises
    ------
    UnboundSymbolError
        If a symbol has no value.
    ZeroDivisorError
        If a divisor is zero.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> evaluate((n + 7) // 8, {n: 20})
    3
    """
    done: dict[Term, int | bool] = {}
    stack: list[Term] = [e]
    while stack:
        term = stack[-1]
        if term in done:
            stack.pop()
            continue
        pending = _missing(term, done)
        if pending is not None:
            stack.append(pending)
        else:
            done[term] = _value(term, values, done)
            stack.pop()
    return done[e]


def _missing(term: Term, done: Mapping[Term, int | bool]) -> Term | None:
    """Return a subterm that must be evaluated before the term; None if there is none."""
    match term:
        case Select(p, a, b):
            chosen = p if p not in done else (a if done[p] else b)
            return None if chosen in done else chosen
        case And(args):
            return _next_condition(args, done, stop=False)
        case Or(args):
            return _next_condition(args, done, stop=True)
        case _:
            return next((child for child in term.children if child not in done), None)


def _next_condition(
    args: tuple[Bool, ...], done: Mapping[Term, int | bool], *, stop: bool
) -> Bool | None:
    for arg in args:
        if arg not in done:
            return arg
        if done[arg] == stop:
            return None
    return None


def _value(term: Term, values: Mapping[Var, int], done: Mapping[Term, int | bool]) -> int | bool:
    match term:
        case Const(value) | BoolConst(value):
            return value
        case Var():
            return value_of(term, values)
        case Add(terms, constant):
            return sum([coefficient * done[part] for part, coefficient in terms], constant)
        case Mul(factors):
            result = 1
            for factor in factors:
                result *= done[factor]
            return result
        case FloorDiv(a, d) | Mod(a, d):
            return divided(term, done[a], done[d])
        case Min(args):
            return min([done[arg] for arg in args])
        case Max(args):
            return max([done[arg] for arg in args])
        case Select(p, a, b):
            return done[a] if done[p] else done[b]
        case _:
            return _truth(term, done)


def _truth(term: Term, done: Mapping[Term, int | bool]) -> bool:
    match term:
        case Eq():
            return done[term.delta] == 0
        case Ne():
            return done[term.delta] != 0
        case Le() | Lt():
            return done[term.delta] <= 0
        case And(args):
            return all(done.get(arg, True) for arg in args)
        case Or(args):
            return any(done.get(arg, False) for arg in args)
        case _:
            raise TypeError(f"unknown kind of term: {type(term).__name__}")


def value_of(symbol: Var, values: Mapping[Var, int]) -> int:
    """Return the value of a symbol; raise an error if it has none."""
    value = values.get(symbol)
    if value is None:
        given = ", ".join(sorted(v.name for v in values)) or "none"
        raise UnboundSymbolError(
            f"symbol '{symbol.name}' has no value", hint=f"symbols with values are {given}"
        )
    return int(value)


def divided(term: Term, a: int, d: int) -> int:
    """Return the quotient or remainder of a term; raise an error if the divisor is 0."""
    if d == 0:
        raise ZeroDivisorError(f"'{term}' divides {a} by zero")
    return a // d if isinstance(term, FloorDiv) else a % d
