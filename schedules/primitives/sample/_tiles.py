"""Factorizations of an extent into a number of tile sizes, drawn uniformly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Final

from ....ir.symbolic import const_value
from ...handles import LoopRef
from ...problem import Problem
from ...requirement import Requirement
from ...state import State

MOST_PARTS: Final = 8
"""The number of tile sizes that may be drawn for one loop."""

LARGEST_EXTENT: Final = 1 << 32
"""The largest extent that is factored, by trial division."""


def extent_problems(state: State, loop: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if the extent of a loop is not a positive constant."""
    node = state.loop(loop)
    size = const_value(node.extent)
    if size is None or not 1 <= size <= LARGEST_EXTENT:
        yield Problem(
            requirement,
            f"loop {node.var.name!r} has {node.extent} iterations; expected a constant from 1 to "
            f"{LARGEST_EXTENT}",
            (loop,),
        )


def parts_problems(n: int, where: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a number of tile sizes is not supported."""
    if not 1 <= n <= MOST_PARTS:
        yield Problem(requirement, f"{n} tile sizes; expected 1 to {MOST_PARTS}", (where,))


def extent_of(state: State, loop: LoopRef) -> int:
    """Return the constant extent of a loop."""
    size = const_value(state.loop(loop).extent)
    if size is None:
        raise TypeError(f"the extent of loop {loop.name!r} is not a constant")
    return size


@lru_cache(maxsize=256)
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number in increasing order.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(dict.fromkeys((*small, *(number // k for k in reversed(small)))))


@lru_cache(maxsize=65536)
def ways(number: int, parts: int) -> int:
    """Return the number of ordered factorizations of a number.

    Examples
    --------
    >>> ways(12, 2), ways(12, 1), ways(1, 0), ways(2, 0)
    (6, 1, 1, 0)
    """
    if parts <= 1:
        return int(parts == 1 or number == 1)
    return sum(ways(number // k, parts - 1) for k in divisors(number))


def drawn(random: Random, number: int, parts: int, limit: int | None = None) -> tuple[int, ...]:
    """Return a factorization, each with the same probability.

    Parameters
    ----------
    random : Random
        The source of random numbers.
    number : int
        The product of the factors.
    parts : int
        The number of factors.
    limit : int, optional
        The largest last factor.
    """
    if parts == 1:
        return (number,)
    legal = [k for k in divisors(number) if limit is None or k <= limit]
    weights = [ways(number // k, parts - 1) for k in legal]
    last = random.choices(legal, weights)[0]
    return (*drawn(random, number // last, parts - 1), last)
