"""Exclusive access to LLVM: across forks, and without interrupts.

llvmlite has one lock for all calls. A thread that forks acquires it first, so that no other thread
is inside of LLVM at that moment; else the child would inherit a locked lock. An interrupt inside of
llvmlite would leave the lock locked, so Ctrl+C is delayed until the section ends.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from typing import Any, Final

from ...locks import uninterrupted
from ..errors import LLVMNotLoadedError

try:
    from llvmlite import binding
except OSError as error:
    raise LLVMNotLoadedError(
        f"LLVM's library could not be loaded: {error}",
        hint="check the limits of this process, such as `ulimit -v` shows, and the installation "
        "of llvmlite",
    ) from error

__all__ = ["binding", "exclusive"]

PATIENCE: Final = 10.0
"""The time in seconds after which a fork does not wait longer for another thread in LLVM."""

_held: list[Any] = []


class _Exclusive:
    """The lock of sections; a forked child may have another one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_SECTION: Final = _Exclusive()


@contextlib.contextmanager
def exclusive() -> Generator[None]:
    """Let no other thread of this process use LLVM in such a section, and none fork.

    Examples
    --------
    >>> with exclusive():
    ...     pass
    """
    with uninterrupted(), _SECTION.lock:
        yield


def _llvmlite_lock() -> Any:
    return binding.ffi.lib._lock._lock  # noqa: SLF001  # llvmlite has no public access to it


def _before_fork() -> None:
    locks = (_SECTION.lock, _llvmlite_lock())
    _held.extend(lock for lock in locks if lock.acquire(timeout=PATIENCE))


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    held = list(_held)
    _after_fork_in_parent()
    if _SECTION.lock not in held:
        _SECTION.lock = threading.RLock()
    if _llvmlite_lock() not in held:
        binding.ffi.lib._lock._lock = threading.RLock()  # noqa: SLF001  # a thread of the parent holds it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
