"""Widths of index terms: which terms of a function are computed with 32-bit integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..symbolic import Add, Bool, Const, Expr, FloorDiv, Le, Lt, Mul, Var, const_value, total
from ..symbolic.terms import linear_terms

SHORT_LIMIT: Final = 1 << 31
"""The least number that does not fit into a signed 32-bit integer."""

SUFFIX: Final = "$i32"
"""The end of the symbol of the version of a kernel with 32-bit indices; no identifier has it."""

MAX_SCALE: Final = 16
"""The size in bytes of the largest unit of which an address is a multiple."""


@dataclass(frozen=True, slots=True)
class IndexWidth:
    """The terms of a function that are computed with 32-bit integers, and the conditions.

    The value of such a term, the values of its subterms, and partial sums in any order fit into
    signed 32-bit integers.

    Parameters
    ----------
    proved : frozenset of Expr
        Terms that fit for all arguments of the function.
    guarded : frozenset of Expr
        Terms that fit if all limits are less than ``2**31``.
    limits : tuple of Expr
        Terms with coefficients of at least 0 over the parameters of the function, in which a
        symbol represents its absolute value.
    """

    proved: frozenset[Expr] = frozenset()
    guarded: frozenset[Expr] = frozenset()
    limits: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaledOffset:
    """An offset in bytes as ``(units + constant) * scale``."""

    units: Expr
    constant: int
    scale: int

    @property
    def index(self) -> Expr:
        """The number of units, with the constant."""
        return self.units + self.constant


def scaled(offset: Expr) -> ScaledOffset:
    """Return an offset in bytes as a multiple of the largest possible unit.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i, n = var("i"), var("n")
    >>> found = scaled(i * n * 8 + i * 4 + 12)
    >>> found.units, found.constant, found.scale
    (i + i * n * 2, 3, 4)
    """
    terms, constant = linear_terms(offset)
    scale = MAX_SCALE
    for number in (constant, *(c for _, c in terms)):
        while number % scale:
            scale //= 2
    units = total(term * (c // scale) for term, c in terms)
    return ScaledOffset(units, constant // scale, scale)


def prefix_length(claim: Bool, lane: Var) -> Expr | None:
    """Return the number of leading lanes for which a comparison is true; it may be out of range.

    The result is None unless the comparison is ``lane < length`` for some term.
    """
    if not isinstance(claim, Lt | Le):
        return None
    length = claim.right - claim.left + lane + (1 if isinstance(claim, Le) else 0)
    return None if lane in length.free else length


def largest(limit: Expr, values: Mapping[Var, int]) -> int:
    """Return the value of a limit for values of the symbols.

    Examples
    --------
    >>> from ..symbolic import var
    >>> n = var("n")
    >>> largest(n * 4 + (n + 7) // 8, {n: -8})
    33
    """
    match limit:
        case Const(value):
            return value
        case Var():
            return abs(values[limit])
        case Add(terms, constant):
            return sum(c * largest(term, values) for term, c in terms) + constant
        case Mul(factors):
            product = 1
            for factor in factors:
                product *= largest(factor, values)
            return product
        case FloorDiv(numerator, divisor):
            return largest(numerator, values) // (const_value(divisor) or 1)
        case _:
            raise TypeError(f"{limit} is not a limit of an index")
