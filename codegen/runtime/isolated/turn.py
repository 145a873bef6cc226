"""One measurement at a time on a machine: two at once would measure each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..errors import RunCancelledError
from ..workers import Cancellation

PATIENCE = 30.0
"""Seconds to wait for another measurement; then both go on, and the result says so."""

_POLL = 0.02


def lock_path() -> Path:
    """The file that a measurement of this user locks; the system unlocks it when one dies."""
    return Path(tempfile.gettempdir()) / f"tilewright-measuring-{os.getuid()}.lock"


@contextmanager
def alone(
    cancel: Cancellation | None = None,
    waiting: Callable[[], None] | None = None,
    patience: float = PATIENCE,
) -> Generator[bool]:
    """Wait until nobody else measures; give whether that came true.

    Parameters
    ----------
    cancel : Cancellation, optional
        Stops waiting.
    waiting : callable, optional
        Called once if there is something to wait for.
    patience : float
        Seconds to wait.

    Raises
    ------
    RunCancelledError
        If it was cancelled meanwhile.

    Examples
    --------
    >>> with alone() as first:
    ...     with alone(patience=0) as second:
    ...         print(first, second)
    True False
    """
    try:
        held = os.open(lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # no such folder, or not ours: nobody can be waited for
        yield False
        return
    try:
        yield _acquired(held, cancel, waiting, time.monotonic() + patience)
    finally:
        os.close(held)


def _acquired(
    held: int,
    cancel: Cancellation | None,
    waiting: Callable[[], None] | None,
    end: float,
) -> bool:
    told = False
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if cancel is not None and cancel.cancelled:
                raise RunCancelledError("cancelled while another measurement ran") from None
            if not told and waiting is not None:
                waiting()
            told = True
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        else:
            return True
