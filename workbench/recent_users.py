"""Processes of workbenches: only those of the last few that compiled a program are kept.

A workbench exists until its Jupyter kernel ends, also after its cell ran again. Without a limit,
each execution of a cell would leave processes behind.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Protocol
from weakref import WeakKeyDictionary

LIMIT: Final = 3
"""The number of workbenches that keep processes for the next run."""


class User(Protocol):
    """An owner of processes, which starts them again if it needs them."""

    def close(self) -> None:
        """Stop the processes."""
        ...


class RecentUsers:
    """The owners of processes in the order of their last use.

    Parameters
    ----------
    limit : int
        The number of owners that keep their processes.

    Examples
    --------
    >>> class Printer:
    ...     def close(self) -> None:
    ...         print("closed")
    >>> recent, first, second = RecentUsers(limit=1), Printer(), Printer()
    >>> with recent.using(first):
    ...     pass
    >>> with recent.using(second):
    ...     pass
    closed
    """

    def __init__(self, limit: int) -> None:
        """Start without owners."""
        self._limit = limit
        self._lock = threading.Lock()
        self._users: WeakKeyDictionary[User, None] = WeakKeyDictionary()
        self._active: Counter[int] = Counter()

    @contextmanager
    def using(self, user: User) -> Generator[None]:
        """Keep the processes of an owner while it works, and close those of older ones after it."""
        with self._lock:
            self._users.pop(user, None)
            self._users[user] = None
            self._active[id(user)] += 1
        try:
            yield
        finally:
            with self._lock:
                self._active[id(user)] -= 1
                self._active += Counter[int]()  # drops counts of 0
                self._close_older()

    def _close_older(self) -> None:
        """Close the owners beyond the limit that do not work; one that begins waits for it."""
        idle = [user for user in self._users if not self._active[id(user)]]
        for user in idle[: max(0, len(self._users) - self._limit)]:
            del self._users[user]
            user.close()


RECENT: Final = RecentUsers(LIMIT)
"""The workbenches of this process."""
