"""Sets of memory accesses, indexed by memory and by the part of an address that varies.

Copies of a statement, as unrolled loops make them, access addresses that differ in a constant
only. They form one class, so two sets are compared per pair of classes rather than per pair of
accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ....ir.symbolic.terms import linear_terms
from .memory_effects import MemoryAccess


class AccessClasses:
    """Numbers of the classes of accesses that differ only in a constant in their offsets."""

    def __init__(self) -> None:
        """Start without classes."""
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[int, tuple[MemoryAccess, int, int]] = {}

    def of(self, access: MemoryAccess) -> tuple[int, int]:
        """Return the number of the class of an access, and the constant in its offset."""
        found = self._known.get(id(access))
        if found is None:
            constant = 0 if access.offset is None else linear_terms(access.offset)[1]
            shifted = None if access.offset is None else access.offset - constant
            number = self._numbers.setdefault(
                _key(replace(access, offset=shifted)), len(self._numbers)
            )
            found = self._known[id(access)] = access, number, constant
        return found[1:]


class AccessSet:
    """Accesses in program order; those that differ only in their copy of a statement are one.

    Parameters
    ----------
    classes : AccessClasses
        The classes of the kernel.
    accesses : iterable of MemoryAccess
        The accesses.

    Examples
    --------
    >>> from ....ir.symbolic import as_expr, var
    >>> from ....ir.thread.nodes import NO_SOURCE, Reg
    >>> from ....ir.thread.types import SHARED_POINTER
    >>> t, s = var("t"), Reg("s", SHARED_POINTER)
    >>> copies = [MemoryAccess(s, True, t * 16 + 4 * k, 4, NO_SOURCE) for k in (0, 1, 1)]
    >>> found = AccessSet(AccessClasses(), copies)
    >>> [(list(starts), list(ends)) for _, starts, _, ends in found.pairs_of_classes(found)]
    [([0, 4], [0, 4])]
    """

    def __init__(self, classes: AccessClasses, accesses: Iterable[MemoryAccess] = ()) -> None:
        """Add the accesses in order."""
        self._classes = classes
        self._items: dict[tuple[int, int], MemoryAccess] = {}
        self._memory: dict[int, dict[int, dict[int, MemoryAccess]]] = {}
        self.update(accesses)

    def __iter__(self) -> Iterator[MemoryAccess]:
        return iter(self._items.values())

    def update(self, accesses: Iterable[MemoryAccess]) -> None:
        """Add accesses that are not copies of present ones."""
        for access in accesses:
            number, constant = key = self._classes.of(access)
            if key not in self._items:
                self._items[key] = access
                kinds = self._memory.setdefault(id(access.base), {})
                kinds.setdefault(number, {})[constant] = access

    def pairs_of_classes(
        self, others: AccessSet
    ) -> Iterator[tuple[int, Mapping[int, MemoryAccess], int, Mapping[int, MemoryAccess]]]:
        """Yield pairs of classes of accesses to one memory, of this set and of another.

        Each class is its number and its accesses by the constants in their offsets.
        """
        for base, ours in self._memory.items():
            theirs = others._memory.get(base, {})
            for kind, starts in ours.items():
                for other, ends in theirs.items():
                    yield kind, starts, other, ends


def _key(access: MemoryAccess) -> tuple[object, ...]:
    """Return the properties that distinguish accesses: all but the copy of the statement."""
    fixed = tuple(access.fixed.items())
    point = (access.base, access.offset, access.size, access.write, access.atomic)
    return (*point, access.loops, fixed, access.source.uid)
