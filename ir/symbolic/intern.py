"""The intern table, which makes structurally equal terms the same object.

Entries are weak references: an unreferenced term is removed from the table. Finalization only
queues the entry, and a later insertion processes the queue, so freeing a deep term never recurses
through Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import RLock
from typing import Any, Final, Generic, TypeVar
from weakref import ref

from ...locks import renew_in_children

NodeT = TypeVar("NodeT")

_SWEEP_AT: Final = 256
"""The number of dead entries from which on an insertion removes them."""


class _Entry(ref[NodeT]):
    """A weak reference with its key."""

    __slots__ = ("key",)
    key: Hashable


class InternTable(Generic[NodeT]):
    """A weak map from a structural key to the only live term with that structure.

    Keys contain the children of a term, never the term itself. Lookups take no lock (a dictionary
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

    __slots__ = ("__weakref__", "_dead", "_entries", "_lock")

    def __init__(self) -> None:
        """Create an empty table."""
        self._entries: dict[Hashable, _Entry[NodeT]] = {}
        self._dead: deque[Any] = deque()  # entries; the callback is typed for plain references
        self._lock = RLock()  # re-entrant: a finalizer may build terms while the lock is held
        renew_in_children(self)

    def get(self, key: Hashable) -> NodeT | None:
        """Return the live term with this structure; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, node: NodeT) -> NodeT:
        """Insert a term unless the key is present; return the term in the table."""
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
        """Remove dead entries. The caller holds the lock."""
        entries, dead = self._entries, self._dead
        while dead:
            entry = dead.popleft()
            if entries.get(entry.key) is entry:
                del entries[entry.key]
