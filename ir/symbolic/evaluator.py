"""Terms as functions of the values of their symbols, for terms that are evaluated many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, overload

from .base import Bool, Expr, Term, Var
from .predicates import And, BoolConst, Cmp, Eq, Ne, Or
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select
from .traverse import divided, evaluate, value_of

IntegerFunction: TypeAlias = "Callable[[Mapping[Var, int]], int]"
"""The value of an integer term for given values of its symbols."""

ConditionFunction: TypeAlias = "Callable[[Mapping[Var, int]], bool]"
"""The value of a condition for given values of its symbols."""

_SIZE: Final = 256
"""The number of subterms, repeated ones included, up to which a term becomes nested functions."""


@overload
def evaluator(e: Expr) -> IntegerFunction: ...
@overload
def evaluator(e: Bool) -> ConditionFunction: ...
def evaluator(e: Expr | Bool) -> IntegerFunction | ConditionFunction:
    """Return a function with the results and errors of `evaluate` for a term, but faster.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> tiles = evaluator((n + 7) // 8)
    >>> tiles({n: 20}), tiles({n: 24})
    (3, 3)
    """
    if _is_large(e):
        return partial(evaluate, e)
    return _integer(e) if isinstance(e, Expr) else _condition(e)


def _is_large(root: Term) -> bool:
    """Return whether a term has many subterms, each counted as often as it occurs."""
    count, stack = 0, [root]
    while stack and count <= _SIZE:
        count += 1
        stack.extend(stack.pop().children)
    return count > _SIZE


def _integer(e: Expr) -> IntegerFunction:
    match e:
        case Const(value=value):
            return lambda _: value
        case Var():
            return partial(value_of, e)
        case Add(terms=terms, constant=constant):
            return _sum([(_integer(part), c) for part, c in terms], constant)
        case Mul(factors=factors):
            return _product([_integer(f) for f in factors])
        case FloorDiv(numerator=numerator, divisor=Const(value=divisor)) if divisor:
            quotient = _integer(numerator)
            return lambda values: quotient(values) // divisor
        case Mod(numerator=numerator, divisor=Const(value=divisor)) if divisor:
            remainder = _integer(numerator)
            return lambda values: remainder(values) % divisor
        case (
            FloorDiv(numerator=numerator, divisor=divisor)
            | Mod(numerator=numerator, divisor=divisor)
        ):
            over, under = _integer(numerator), _integer(divisor)
            return lambda values: divided(e, over(values), under(values))
        case Min(args=args):
            least = [_integer(a) for a in args]
            return lambda values: min([a(values) for a in least])
        case Max(args=args):
            greatest = [_integer(a) for a in args]
            return lambda values: max([a(values) for a in greatest])
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen, one, other = _condition(condition), _integer(then), _integer(otherwise)
            return lambda values: one(values) if chosen(values) else other(values)
        case _:
            raise TypeError(f"unknown kind of term: {type(e).__name__}")


def _sum(terms: list[tuple[IntegerFunction, int]], constant: int) -> IntegerFunction:
    if len(terms) == 1:
        ((part, factor),) = terms
        return lambda values: factor * part(values) + constant
    return lambda values: sum([c * part(values) for part, c in terms], constant)


def _product(factors: list[IntegerFunction]) -> IntegerFunction:
    def product(values: Mapping[Var, int]) -> int:
        result = 1
        for factor in factors:
            result *= factor(values)
        return result

    return product


def _condition(e: Bool) -> ConditionFunction:
    match e:
        case BoolConst(value=value):
            return lambda _: value
        case Cmp():
            delta = _integer(e.delta)
            if isinstance(e, Eq):
                return lambda values: delta(values) == 0
            if isinstance(e, Ne):
                return lambda values: delta(values) != 0
            return lambda values: delta(values) <= 0
        case And(args=args):
            return _until([_condition(a) for a in args], stop=False)
        case Or(args=args):
            return _until([_condition(a) for a in args], stop=True)
        case _:
            raise TypeError(f"unknown kind of term: {type(e).__name__}")


def _until(parts: list[ConditionFunction], *, stop: bool) -> ConditionFunction:
    """Return a function with the first value that is ``stop``, if there is one."""

    def decided(values: Mapping[Var, int]) -> bool:
        for part in parts:
            if part(values) is stop:
                return stop
        return not stop

    return decided
