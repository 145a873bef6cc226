"""The machine-wide lock of measurements, which would affect each other if they ran concurrently."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..build.private_files import (
    NotPrivateError,
    make_folder,
    open_file,
    temporary_folder,
    user_folder,
)
from ..build.worker_pool import CancelToken
from ..errors import RunCanceledError

PATIENCE = 30.0
"""The maximum waiting time in seconds; then the measurement runs, and its result reports this."""

_POLL = 0.02


def lock_path() -> Path:
    """Return the lock file of this user; the system releases the lock if a process crashes.

    It is in a folder that no other user can write: ``XDG_RUNTIME_DIR``, or the user's cache folder,
    or a folder for temporary files. Machines may share a folder, so its name contains the name of
    the machine.

    Raises
    ------
    OSError
        If this user cannot write any of the folders, or other users can write all of them.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    name = f"tilewright-measuring-{platform.node().replace('/', '_')}.lock"
    own = [Path(runtime)] if runtime else []
    for folder in (*own, user_folder(), temporary_folder()):
        with contextlib.suppress(OSError):
            make_folder(folder)
            if os.access(folder, os.W_OK):
                return folder / name
    raise NotPrivateError("no folder that only this user can write")


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
        descriptor = open_file(lock_path(), os.O_RDWR | os.O_CREAT)
    except OSError:  # no folder can be written, or the file belongs to another user
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
