"""Short turns of Python's threads during work in the background, so that requests are answered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

INTERVAL = 0.0005
"""The time in seconds after which work in the background lets another thread run.

A request waits for many turns of the threads that receive it and send its answer: one for each part
of a message.
"""


class _Turns:
    """The number of users of short turns, and the interval of Python without them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0.0

    def begin(self) -> None:
        """Make turns short for the first user."""
        with self._lock:
            if self._users == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, INTERVAL))
            self._users += 1

    def end(self) -> None:
        """Restore the interval after the last user."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setswitchinterval(self._before)


_TURNS = _Turns()


@contextmanager
def short_turns() -> Generator[None]:
    """Let other threads of this process run more often than usual.

    Examples
    --------
    >>> usual = sys.getswitchinterval()
    >>> with short_turns():
    ...     sys.getswitchinterval() <= INTERVAL
    True
    >>> sys.getswitchinterval() == usual
    True
    """
    _TURNS.begin()
    try:
        yield
    finally:
        _TURNS.end()
