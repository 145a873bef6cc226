"""Names and numbers by which parts of a program are told apart, and where they came from."""

from __future__ import annotations

import itertools
from collections.abc import Container
from typing import TypeAlias

Uid: TypeAlias = int
"""A number unique in its function, kept when a node is copied with changes."""

Origins: TypeAlias = frozenset[str]
"""The operations of the source model that a node computes a part of."""

NO_ORIGIN: Origins = frozenset()

STEP_STRIDE = 1 << 20
"""Uids that one schedule step may mint; step ``k`` mints from ``k * STEP_STRIDE``."""


class UidSource:
    """Mints uids in order, from the ordinal of the step that needs them.

    Examples
    --------
    >>> mint = UidSource(step=2)
    >>> mint() - 2 * STEP_STRIDE, mint() - 2 * STEP_STRIDE
    (0, 1)
    """

    def __init__(self, step: int = 0) -> None:
        """Start at the first number of the step."""
        self._counter = itertools.count(step * STEP_STRIDE + (1 if step == 0 else 0))

    def __call__(self) -> Uid:
        """Mint the next uid."""
        return next(self._counter)


def fresh_name(base: str, taken: Container[str]) -> str:
    """Derive a name that is not taken: the base, or the base with the next free number.

    Examples
    --------
    >>> fresh_name("i", {"i", "i_1"})
    'i_2'
    """
    if base not in taken:
        return base
    return next(name for k in itertools.count(1) if (name := f"{base}_{k}") not in taken)
