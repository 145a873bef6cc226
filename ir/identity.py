"""Uids, fresh names and origin ids of program nodes."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable
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

    def __init__(self, step: int = 0, first: Uid | None = None) -> None:
        """Start at the first uid of the step, or at another uid."""
        start = step * STEP_STRIDE + (1 if step == 0 else 0)
        self._counter = itertools.count(start if first is None else first)

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


class Names(set[str]):
    """Names in use, from which fresh names are derived in constant time.

    Names may be added, but not removed.

    Examples
    --------
    >>> names = Names(["i", "i_2"])
    >>> [names.fresh(base) for base in ("i", "i", "j", "j")]
    ['i_1', 'i_3', 'j', 'j_1']
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Start with names in use."""
        super().__init__(names)
        self._next: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """Return the name that :func:`fresh_name` returns, and add it."""
        name, number = base, self._next.get(base, 0)
        while name in self:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self.add(name)
        return name
