"""Interrupts of native calls that contain loops.

Python handles signals in the main thread between bytecodes, so a native loop would delay Ctrl+C
until its end. Python's C handler also writes the number of a signal to a file descriptor at once; a
thread reads it, and asks the running call to stop.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

_MOST_SIGNALS = 64


class Interrupts:
    """A thread that asks the running calls to stop when the process gets SIGINT."""

    def __init__(self) -> None:
        """Start without a thread; the first call starts it."""
        self._owner = 0
        self._pending = b""
        self._wake: socket.socket | None = None
        self._calls: list[Callable[[], None]] = []

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Generator[None]:
        """Call ``stop`` in another thread on SIGINT; only for calls of the main thread."""
        handled = callable(signal.getsignal(signal.SIGINT))
        if not handled or threading.current_thread() is not threading.main_thread():
            yield
            return
        wake = self._started()
        before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._calls.append(stop)
        try:
            yield
        finally:
            self._calls.remove(stop)
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            if before != -1 and self._pending:
                os.write(before, self._pending)  # the owner of the descriptor waits for it
            self._pending = b""

    def _started(self) -> socket.socket:
        if self._wake is None or self._owner != os.getpid():
            reader, self._wake = socket.socketpair()
            self._wake.setblocking(False)
            self._owner = os.getpid()
            threading.Thread(
                target=self._watch, args=(reader,), name="tilewright-interrupts", daemon=True
            ).start()
        return self._wake

    def _watch(self, reader: socket.socket) -> None:
        while True:
            numbers = reader.recv(_MOST_SIGNALS)
            if not numbers:
                return
            self._pending += numbers
            if signal.SIGINT in numbers:
                for stop in tuple(self._calls):
                    stop()


INTERRUPTS = Interrupts()
"""The interrupts of this process."""
