"""Distances of two accesses: linear terms that are 0 only if the accesses overlap."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from ..symbolic import Expr, Var, bounds
from ..symbolic.terms import linear_terms


def never_overlap(distance: Expr, sizes: tuple[int, int] = (1, 1)) -> bool:
    """Return whether accesses at a distance never overlap, by ranges and residues.

    The distance is a multiple of some step plus a part with a constant range. The step is the
    greatest common divisor of the coefficients of the terms without such a range, then also of the
    largest others.

    Parameters
    ----------
    distance : Expr
        The offset of the second access minus that of the first.
    sizes : tuple of int
        The sizes of the first and of the second access, in the unit of the distance. They overlap
        if ``-second < distance < first``.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i, j = var("i", lower=0, upper=3), var("j", lower=0)
    >>> never_overlap(4 * j + i), never_overlap(8 * j + i + 1)
    (False, True)
    """
    terms, constant = linear_terms(distance)
    low, high = constant - sizes[0] + 1, constant + sizes[1] - 1
    step = 0
    fine: list[tuple[int, int, int]] = []
    for term, coefficient in terms:
        limits = bounds(term)
        if limits.lower is None or limits.upper is None:
            step = gcd(step, coefficient)
            continue
        ends = limits.lower * coefficient, limits.upper * coefficient
        least, most = min(ends), max(ends)
        fine.append((abs(coefficient), least, most))
        low, high = low + least, high + most
    for coefficient, least, most in (*sorted(fine, reverse=True), (0, 0, 0)):
        if not _has_multiple(low, high, step):
            return True
        step = gcd(step, coefficient)
        low, high = low - least, high - most
    return False


def _has_multiple(low: int, high: int, step: int) -> bool:
    """Return whether a range of integers contains a multiple of a number."""
    return low <= 0 <= high if step == 0 else -(-low // step) * step <= high


def equal_pairs(
    distance: Expr, pairs: Iterable[tuple[Var, Var]], size: int = 1
) -> frozenset[tuple[Var, Var]]:
    """Return the pairs of variables that are equal wherever two accesses overlap.

    The distance is a linear combination of differences of pairs and other terms. If a coefficient
    exceeds the range of all terms with smaller coefficients, a distance smaller than ``size``
    implies that its difference is 0. Terms without a constant range add a multiple of a step, which
    must exceed the range of all others.

    Parameters
    ----------
    distance : Expr
        The offset of the second access minus that of the first.
    pairs : iterable of tuple of Var
        Variables with one range from 0 on, of the second and of the first access.
    size : int
        The size of the larger access, in the unit of the distance.

    Examples
    --------
    >>> from ..symbolic import var
    >>> a, b = var("a", lower=0, upper=3), var("b", lower=0, upper=3)
    >>> i, j = var("i", lower=0), var("j", lower=0)
    >>> equal_pairs(4 * i + a - 4 * j - b, [(a, b)])
    frozenset({(a, b)})
    >>> equal_pairs(3 * i + a - 3 * j - b, [(a, b)])
    frozenset()
    """
    terms, rest = linear_terms(distance)
    weights: dict[Expr, int] = dict(terms)
    parts: list[tuple[int, int, tuple[Var, Var] | None]] = []
    for mine, other in pairs:
        if mine.upper is None or weights.get(mine, 0) != -weights.get(other, 0):
            continue
        weight = weights.pop(mine, 0)
        weights.pop(other, 0)
        if weight:
            parts.append((abs(weight), mine.upper, (mine, other)))
    step = 0
    for term, weight in weights.items():
        limits = bounds(term)
        if limits.lower is None or limits.upper is None:
            step = gcd(step, weight)
        else:
            parts.append((abs(weight), max(abs(limits.lower), abs(limits.upper)), None))
    slack = abs(rest) + size - 1
    if step:
        slack = min(rest % step, -rest % step) + size - 1
        if sum(weight * most for weight, most, _ in parts) + slack >= step:
            return frozenset()
    return _leading_zeros(parts, slack)


def _leading_zeros(
    parts: list[tuple[int, int, tuple[Var, Var] | None]], slack: int
) -> frozenset[tuple[Var, Var]]:
    """Return the pairs whose differences are 0 if the sum of all parts is at most ``slack``."""
    left = sorted(parts, key=lambda part: part[:2])
    found: set[tuple[Var, Var]] = set()
    while left:
        weight, _, pair = left.pop()
        if weight <= slack + sum(w * most for w, most, _ in left):
            break
        if pair is not None:
            found.add(pair)
    return frozenset(found)
