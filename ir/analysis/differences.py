"""Constant bounds of the difference of two terms with minima and maxima.

The indices of accesses near an edge, such as ``max(i - 1, 0)``, ``i`` and ``min(i + 1, n - 1)``,
differ by values that no normal form shows. Their minima and maxima are compared argument by
argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..symbolic import Add, Expr, Facts, Max, Min, bounds, is_proved, postorder, simplify

_LIMIT: Final = 32
"""The largest number of pairs of arguments to compare."""


def has_choice(term: Expr) -> bool:
    """Return whether a term is a sum with a minimum or maximum."""
    parts = [part for part, _ in term.terms] if isinstance(term, Add) else [term]
    return any(isinstance(part, Min | Max) for part in parts)


def largest_difference(first: Expr, second: Expr, facts: Facts) -> int | None:
    """Return a constant that ``first - second`` does not exceed; None if none was found.

    Parameters
    ----------
    first, second : Expr
        The terms.
    facts : Facts
        The facts in scope.

    Examples
    --------
    >>> from ..symbolic import maximum, minimum, var
    >>> n, i = var("n", lower=1), var("i", lower=0)
    >>> facts = Facts().with_loop(i, n)
    >>> largest_difference(minimum(i + 1, n - 1), maximum(i - 1, 0), facts)
    2
    >>> largest_difference(maximum(i - 1, 0), minimum(i + 1, n - 1), facts)
    0
    """
    if _count(first) * _count(second) > _LIMIT:
        return None
    return _largest(first, second, facts)


def _largest(first: Expr, second: Expr, facts: Facts) -> int | None:
    # The difference is the largest over all arguments of these, ...
    parts = _arguments(first, Max)
    if parts is not None:
        return _greatest(_largest(part, second, facts) for part in parts)
    parts = _arguments(second, Min)
    if parts is not None:
        return _greatest(_largest(first, part, facts) for part in parts)
    # ... and the smallest over those of these.
    parts = _arguments(first, Min)
    if parts is not None:
        return _least(_largest(part, second, facts) for part in parts)
    parts = _arguments(second, Max)
    if parts is not None:
        return _least(_largest(first, part, facts) for part in parts)
    difference = simplify(first - second, facts)
    upper = bounds(difference).upper
    return 0 if upper is None and is_proved(difference <= 0, facts) else upper


def _arguments(term: Expr, kind: type[Min | Max]) -> tuple[Expr, ...] | None:
    """Return the terms of which a term is the minimum or maximum, if it is one.

    A sum with a minimum is the minimum of sums; minus a maximum is a minimum.
    """
    if isinstance(term, kind):
        return term.args
    for part, scale in term.terms if isinstance(term, Add) else ():
        if isinstance(part, Min | Max) and isinstance(part, kind) is (scale > 0):
            rest = term - scale * part
            return tuple(rest + scale * a for a in part.args)
    return None


def _count(term: Expr) -> int:
    """Return the number of terms that `_choice` yields when it is applied repeatedly."""
    counts: dict[object, int] = {}
    for part in postorder(term):
        match part:
            case Min(args=args) | Max(args=args):
                counts[part] = sum(counts[a] for a in args)
            case Add(terms=terms):
                counts[part] = 1
                for inner, _ in terms:
                    counts[part] *= counts[inner] if isinstance(inner, Min | Max) else 1
            case _:
                counts[part] = 1
    return counts[term]


def _greatest(found: Iterator[int | None]) -> int | None:
    values = list(found)
    known = [v for v in values if v is not None]
    return max(known) if len(known) == len(values) else None


def _least(found: Iterator[int | None]) -> int | None:
    return min((v for v in found if v is not None), default=None)
