"""Checks of cancellation and time limits during long work in this thread."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("polled check", default=None)


@contextmanager
def polled(check: Callable[[], None]) -> Generator[None]:
    """Let `poll` call a function in a with statement.

    Parameters
    ----------
    check : callable
        Raises an error to end the work.

    Examples
    --------
    >>> with polled(lambda: print("still wanted")):
    ...     poll()
    still wanted
    >>> poll()
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def poll() -> None:
    """Call the check of the enclosing `polled`, if any; long loops call this function."""
    check = _CHECK.get()
    if check is not None:
        check()
