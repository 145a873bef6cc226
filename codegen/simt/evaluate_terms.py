"""Compilation of symbolic integers and conditions to closures over an environment.

The value of a variable is a Python integer if it is uniform across threads, otherwise an array of
64-bit integers with one element per thread. So uniform terms are computed once, in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from ...errors import MalformedProgramError
from ...ir.symbolic import (
    Add,
    And,
    Bool,
    BoolConst,
    Const,
    Eq,
    Expr,
    FloorDiv,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
    Ne,
    Or,
    Select,
    Term as SymbolicTerm,
    Var,
)
from ...ir.thread.index_width import SHORT_LIMIT, scaled
from .arrays import where

Integer: TypeAlias = Any
"""A Python integer, or an array of int64."""

Environment: TypeAlias = list[Integer]
Closure: TypeAlias = Callable[[Environment], Integer]


class TermEvaluator:
    """The compiler of the terms of one kernel, which assigns slots to variables.

    Examples
    --------
    >>> from ...ir.symbolic import var
    >>> i, terms = var("i"), TermEvaluator()
    >>> run = terms.compile(i * 4 + 1)
    >>> environment = terms.environment()
    >>> environment[terms.slot(i)] = np.arange(3)
    >>> run(environment)
    array([1, 5, 9])
    """

    def __init__(self, narrow: frozenset[Expr] = frozenset()) -> None:
        """Start without variables; the values of ``narrow`` terms wrap around at 32 bits."""
        self._slots: dict[Var, int] = {}
        self._closures: dict[Expr | Bool, Closure] = {}
        self._exact: dict[Expr, Closure] = {}
        self._narrow = narrow

    def slot(self, variable: Var) -> int:
        """Return the index of a variable in the environment."""
        return self._slots.setdefault(variable, len(self._slots))

    def environment(self) -> Environment:
        """Return an environment without bound variables."""
        return [None] * len(self._slots)

    def compile(self, term: Expr | Bool) -> Closure:
        """Return the function that computes a term; equal terms share a function."""
        found = self._closures.get(term)
        if found is None:
            if isinstance(term, Bool):
                found = self._condition(term)
            else:
                found = self._sum_or_operation(term)
                found = _wrapped(found) if term in self._narrow else found
            self._closures[term] = found
        return found

    def offset(self, term: Expr) -> Closure:
        """Return the function that computes an offset in bytes, from a number of units."""
        found = scaled(term)
        if found.index not in self._narrow or found.scale == 1:
            return self.compile(term)
        units, scale = self.compile(found.index), found.scale
        return lambda environment: units(environment) * scale

    def _sum_or_operation(self, term: Expr) -> Closure:
        """Return the function that computes a term without wrapping its value.

        The operands of sums and products need not wrap, because their result does.
        """
        found = self._exact.get(term)
        if found is None:
            found = self._exact[term] = self._integer(term)
        return found

    def _integer(self, term: Expr) -> Closure:
        match term:
            case Const(value=value):
                return lambda _: value
            case Var():
                return _variable(self.slot(term), term.name)
            case Add(terms=terms, constant=constant):
                return _sum([(self._sum_or_operation(t), c) for t, c in terms], constant)
            case Mul(factors=factors):
                parts = [self._sum_or_operation(f) for f in factors]
                return _folded(parts, lambda a, b: a * b)
            case FloorDiv(numerator=a, divisor=b):
                return _divided(self.compile(a), self.compile(b), lambda x, y: x // y)
            case Mod(numerator=a, divisor=b):
                return _divided(self.compile(a), self.compile(b), lambda x, y: x % y)
            case Min(args=args):
                return _folded([self.compile(a) for a in args], _least)
            case Max(args=args):
                return _folded([self.compile(a) for a in args], _greatest)
            case Select(condition=c, then=then, otherwise=otherwise):
                return _chosen(self.compile(c), self.compile(then), self.compile(otherwise))
            case _:
                raise _unknown(term)

    def _condition(self, term: Bool) -> Closure:
        match term:
            case BoolConst(value=value):
                return lambda _: value
            case Eq(left=a, right=b):
                return _compared(self.compile(a), self.compile(b), lambda x, y: x == y)
            case Ne(left=a, right=b):
                return _compared(self.compile(a), self.compile(b), lambda x, y: x != y)
            case Le(left=a, right=b):
                return _compared(self.compile(a), self.compile(b), lambda x, y: x <= y)
            case Lt(left=a, right=b):
                return _compared(self.compile(a), self.compile(b), lambda x, y: x < y)
            case And(args=args):
                return _folded([self.compile(a) for a in args], lambda a, b: a & b)
            case Or(args=args):
                return _folded([self.compile(a) for a in args], lambda a, b: a | b)
            case _:
                raise _unknown(term)


def _wrapped(run: Closure) -> Closure:
    """Return a function whose values wrap around as those of 32-bit integers do."""

    def short(environment: Environment) -> Integer:
        value = run(environment)
        if isinstance(value, int):
            if -SHORT_LIMIT <= value < SHORT_LIMIT:
                return value
            return (value + SHORT_LIMIT) % (2 * SHORT_LIMIT) - SHORT_LIMIT
        return value.astype(np.int32).astype(np.int64)

    return short


def _unknown(term: SymbolicTerm) -> MalformedProgramError:
    return MalformedProgramError(f"unsupported term in a kernel: {term!r}")


def _variable(slot: int, name: str) -> Closure:
    def run(environment: Environment) -> Integer:
        value = environment[slot]
        if value is None:
            raise MalformedProgramError(f"symbol {name!r} is used but not bound")
        return value

    return run


def _sum(parts: list[tuple[Closure, int]], constant: int) -> Closure:
    def run(environment: Environment) -> Integer:
        total: Integer = constant
        for part, coefficient in parts:
            value = part(environment)
            total = total + (value if coefficient == 1 else value * coefficient)
        return total

    return run


def _folded(parts: list[Closure], combine: Callable[[Integer, Integer], Integer]) -> Closure:
    def run(environment: Environment) -> Integer:
        return reduce(combine, [part(environment) for part in parts])

    return run


def _divided(a: Closure, b: Closure, combine: Callable[[Integer, Integer], Integer]) -> Closure:
    """Divide; return 0 for the divisor 0, because both sides of a select are computed."""

    def run(environment: Environment) -> Integer:
        x, y = a(environment), b(environment)
        if isinstance(y, int):
            return combine(x, y) if y else 0
        return combine(np.asarray(x, np.int64), y)

    return run


def _compared(a: Closure, b: Closure, combine: Callable[[Integer, Integer], Integer]) -> Closure:
    return lambda environment: combine(a(environment), b(environment))


def _chosen(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    def run(environment: Environment) -> Integer:
        bit = condition(environment)
        if isinstance(bit, bool):
            return then(environment) if bit else otherwise(environment)
        return where(bit, then(environment), otherwise(environment))

    return run


def _least(a: Integer, b: Integer) -> Integer:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def _greatest(a: Integer, b: Integer) -> Integer:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def bound(values: Mapping[Var, int], terms: TermEvaluator) -> Environment:
    """Return an environment with some variables bound."""
    for variable in values:
        terms.slot(variable)
    environment = terms.environment()
    for variable, value in values.items():
        environment[terms.slot(variable)] = value
    return environment
