"""The machine-wide lock of measurements, which would affect each other if they ran concurrently."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..build.worker_pool import CancelToken
from ..errors import RunCanceledError

PATIENCE = 30.0
"""The maximum waiting time in seconds; then the measurement runs, and its result reports this."""

_POLL = 0.02


def lock_path() -> Path:
    """Return the lock file of this user; the system releases the lock if a process crashes."""
    return Path(tempfile.gettempdir()) / f"tilewright-measuring-{os.getuid()}.lock"


@contextmanager
def exclusive_measurement(
    cancel: CancelToken | None = None,
    waiting: Callable[[], None] | None = None,
    patience: float = PATIENCE,
) -> Generator[bool]:
    """Acquire the machine-wide measurement lock; yield whether it was acquired.

    Parameters
    ----------
    cancel : CancelToken, optional
        A token that stops waiting.
    waiting : callable, optional
        A callback that is called once if another measurement holds the lock.
    patience : float
        The maximum waiting time in seconds.

    Raises
    ------
    RunCanceledError
        If it is canceled while waiting.

    Examples
    --------
    >>> with exclusive_measurement() as first:
    ...     with exclusive_measurement(patience=0) as second:
    ...         print(first, second)
    True False
    """
    try:
        descriptor = os.open(lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # the folder does not exist, or the file belongs to another user
        yield False
        return
    try:
        yield _acquired(descriptor, cancel, waiting, time.monotonic() + patience)
    finally:
        os.close(descriptor)


def _acquired(
    descriptor: int,
    cancel: CancelToken | None,
    waiting: Callable[[], None] | None,
    end: float,
) -> bool:
    notified = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if cancel is not None and cancel.canceled:
                raise RunCanceledError("canceled while waiting for another measurement") from None
            if not notified and waiting is not None:
                waiting()
            notified = True
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        else:
            return True
