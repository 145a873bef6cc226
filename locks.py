"""Locks in forked children, uninterrupted sections of code, and Python's parser in threads.

A forked child has only the thread that forked. A lock that another thread held at that moment stays
locked in the child forever, so the child needs a new one.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import TypeAlias
from weakref import WeakKeyDictionary

_Handler: TypeAlias = "Callable[[int, FrameType | None], object] | int | None"

_OWNERS: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def renew_in_children(owner: object, attribute: str = "_lock") -> None:
    """Replace a lock in forked children by a new one.

    Parameters
    ----------
    owner : object
        The object or module with the lock.
    attribute : str
        The name of the attribute; its value is a lock, and an ``RLock`` in children.

    Examples
    --------
    >>> class Counter:
    ...     def __init__(self) -> None:
    ...         self.lock = threading.Lock()
    ...         renew_in_children(self, "lock")
    >>> counter = Counter()
    """
    _OWNERS[owner] = attribute


def _renew() -> None:
    for owner, attribute in list(_OWNERS.items()):
        setattr(owner, attribute, threading.RLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextlib.contextmanager
def uninterrupted() -> Generator[None]:
    """Delay Ctrl+C to the end of a section, which must be short.

    The signal is delivered only to the main thread, so other threads need no delay.

    Examples
    --------
    >>> done = []
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("section")
    ... except KeyboardInterrupt:
    ...     done.append("interrupted")
    >>> done
    ['section', 'interrupted']
    """
    received: list[int] = []
    previous = _set_handler(lambda number, _: received.append(number))
    try:
        yield
    finally:
        if previous is not None:
            signal.signal(signal.SIGINT, previous)
        if received:
            signal.raise_signal(signal.SIGINT)


def _set_handler(handler: _Handler) -> _Handler:
    """Set the handler of Ctrl+C; return the previous one, or None if it is not set."""
    if threading.current_thread() is not threading.main_thread():
        return None
    previous = signal.getsignal(signal.SIGINT)
    if previous in (None, signal.SIG_IGN):  # not a handler of Python, or Ctrl+C has no effect
        return None
    try:
        signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main interpreter
        return None
    return previous


_parsing = threading.RLock()
renew_in_children(sys.modules[__name__], "_parsing")


def parse_module(text: str) -> ast.Module:
    """Return the syntax tree of statements.

    CPython counts the depth of trees per process, not per thread, so that concurrent calls of
    ``ast.parse`` may raise a ``SystemError``.

    Examples
    --------
    >>> len(parse_module("x = 1").body)
    1
    """
    with _parsing:
        return ast.parse(text)


def parse_expression(text: str) -> ast.Expression:
    """Return the syntax tree of an expression, as :func:`parse_module` does.

    Examples
    --------
    >>> type(parse_expression("x + 1").body).__name__
    'BinOp'
    """
    with _parsing:
        return ast.parse(text, mode="eval")
