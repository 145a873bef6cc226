"""Uids, fresh names and origin ids of program nodes."""

from __future__ import annotations

import itertools
from collections.abc import Container
from typing import TypeAlias

Uid: TypeAlias = int
"""A number that is unique within a function and kept by ``replace``."""

Origins: TypeAlias = frozenset[str]
"""The provenance of a node: ids of the source operations it implements in part."""

NO_ORIGIN: Origins = frozenset()

STEP_STRIDE = 1 << 20
"""The number of uids per schedule step; step ``k`` mints from ``k * STEP_STRIDE``."""


class UidSource:
    """A source of increasing uids, starting at the range of one schedule step.

    Examples
    --------
    >>> mint = UidSource(step=2)
    >>> mint() - 2 * STEP_STRIDE, mint() - 2 * STEP_STRIDE
    (0, 1)
    """

    def __init__(self, step: int = 0) -> None:
        """Start at the first uid of the step."""
        self._counter = itertools.count(step * STEP_STRIDE + (1 if step == 0 else 0))

    def __call__(self) -> Uid:
        """Return the next uid."""
        return next(self._counter)


def fresh_name(base: str, taken: Container[str]) -> str:
    """Return an unused name: the base, or the base with the smallest unused numeric suffix.

    Examples
    --------
    >>> fresh_name("i", {"i", "i_1"})
    'i_2'
    """
    if base not in taken:
        return base
    return next(name for k in itertools.count(1) if (name := f"{base}_{k}") not in taken)
