"""The table that makes structurally equal terms one object.

Entries are weak: a term that nobody holds leaves the table. A dying term only queues its entry;
the queue is emptied by a later insertion, so freeing a deep term never recurses through Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import RLock
from typing import Any, Final, Generic, TypeVar
from weakref import ref

NodeT = TypeVar("NodeT")

_SWEEP_AT: Final = 256
"""Dead entries that wait before an insertion removes them all."""


class _Entry(ref[NodeT]):
    """A weak reference that knows its key."""

    __slots__ = ("key",)
    key: Hashable


class InternTable(Generic[NodeT]):
    """Weak map from a structural key to the only live term with that structure.

    Keys hold the children of a term, never the term itself. Lookups take no lock (a dictionary
    read is atomic); insertions do.

    Examples
    --------
    >>> class Leaf:
    ...     pass
    >>> table = InternTable[Leaf]()
    >>> first = Leaf()
    >>> table.add("a", first) is first
    True
    >>> table.add("a", Leaf()) is first
    True
    >>> del first
    >>> table.get("a") is None
    True
    """

    __slots__ = ("_dead", "_entries", "_lock")

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[Hashable, _Entry[NodeT]] = {}
        self._dead: deque[Any] = deque()  # entries; the callback's type says only references
        self._lock = RLock()  # re-entrant: a finaliser may build terms while we hold it

    def get(self, key: Hashable) -> NodeT | None:
        """The live term with this structure, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, node: NodeT) -> NodeT:
        """Enter a term unless another thread was faster; return the one that is in the table."""
        entry: _Entry[NodeT] = _Entry(node, self._dead.append)
        entry.key = key
        with self._lock:
            if len(self._dead) > _SWEEP_AT:
                self._sweep()
            present = self._entries.get(key)
            if present is not None:
                other = present()
                if other is not None:
                    return other
            self._entries[key] = entry
        return node

    def __len__(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._entries)

    def _sweep(self) -> None:
        """Remove what died since the last insertion. The caller holds the lock."""
        entries, dead = self._entries, self._dead
        while dead:
            entry = dead.popleft()
            if entries.get(entry.key) is entry:
                del entries[entry.key]
