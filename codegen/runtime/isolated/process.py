"""One child process: the socket to it, what it notes, and its end."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any

from ....ir.errors import TilewrightError
from ..errors import RunCancelledError, RunFailedError, RunMemoryError
from ..protocol import PipeClosedError, read_frame, write_frame
from ..workers import Cancellation
from .notes import Notes

GRACE = 0.2
"""Seconds that a process whose socket closed has to end by itself, so that it is known how."""

_processes: weakref.WeakSet[Process] = weakref.WeakSet()


class Process:
    """A child process that does what it is asked, until it dies or is ended."""

    def __init__(self) -> None:
        """Start it; it begins when it is asked the first thing."""
        self.owner = os.getpid()
        self.exit_code: int | None = None
        self.budget = 0
        self.before = 0
        self._descriptor = os.memfd_create("tilewright-notes", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, mmap.PAGESIZE)
        self.notes = Notes(self._descriptor)
        self._ending = threading.Lock()
        self._link, theirs = socket.socketpair()
        watched, self._alive = os.pipe()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # until the process ends
        self._last_words = ""
        try:
            self._child = self._start(theirs, watched)
        finally:
            os.close(watched)
            theirs.close()
        _processes.add(self)
        self.send({"do": "begin"}, descriptors=[self._descriptor])

    def _start(self, theirs: socket.socket, watched: int) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(p for p in sys.path if p)
        command = "import os,sys;os.dup2(int(sys.argv[1]),3);" if watched != 3 else ""
        command += f"from {__package__}.child import main;main()"
        return subprocess.Popen(  # noqa: S603  # our own module, no shell
            [sys.executable, "-P", "-c", command, str(watched)],
            stdin=theirs.fileno(),
            stdout=self._log,
            stderr=self._log,
            pass_fds=(watched,),
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether it runs, and is this process's own."""
        return self.exit_code is None and self._child.poll() is None

    def send(
        self, message: dict[str, Any], blob: bytes = b"", descriptors: Sequence[int] = ()
    ) -> None:
        """Send a request, then the descriptors that belong to it."""
        self.reply({**message, "descriptors": len(descriptors)}, blob)
        if descriptors:
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(self._link, [b"\0"], list(descriptors))

    def reply(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Send a frame."""
        write_frame(self._link.fileno(), message, blob)

    def receive(self, deadline: float, cancel: Cancellation | None) -> dict[str, Any]:
        """Wait for a frame; an error in it is raised."""

        def poll() -> None:
            if cancel is not None and cancel.cancelled:
                raise RunCancelledError("the run was cancelled")

        try:
            answer, _ = read_frame(self._link.fileno(), deadline=deadline, poll=poll)
        except (OSError, ValueError):  # closed by another thread, too
            raise PipeClosedError from None
        poll()
        if not answer["ok"]:
            raise self._as_error(answer)
        self.before = int(answer.get("before", self.before))
        return answer

    def descriptor(self) -> int:
        """Take the descriptor that follows a frame."""
        try:
            _, found, _, _ = socket.recv_fds(self._link, 1, 1)
        except OSError:
            found = []
        if not found:
            raise PipeClosedError
        return found[0]

    def _as_error(self, answer: Mapping[str, Any]) -> TilewrightError:
        data: Mapping[str, Any] = answer["error"]
        message, hint = str(data.get("message", "")), data.get("hint") or ""
        details = {name: data.get(name) for name in ("kind", "title")}
        where = data.get("where") or ""
        if data.get("kind") in ("MemoryError", "OutOfMemoryError"):
            taken = max(int(answer["held"]) - int(answer["before"]), 0)
            limits = self.limits(int(answer["before"]))
            said = f"{message}; {limits}, {size_text(taken)} of which were taken"
            return RunMemoryError(said if limits else message, where=where, hint=hint)
        return RunFailedError(message, where=where, hint=hint, details=details)

    def limits(self, before: int | None = None) -> str:
        """Tell in words what it may allocate."""
        base = self.before if before is None else before
        if not self.budget or not base:
            return ""
        return f"it may take {size_text(self.budget)} beside the {size_text(base)} it began with"

    def stop(self, grace: float = 0.0) -> str:
        """End it and give its last words; nothing of it stays.

        ``grace`` are seconds to wait for its own end first, so that it is known how it ends.
        """
        with self._ending:
            if self.exit_code is None:
                self._end(grace)
            return self._last_words

    def _end(self, grace: float) -> None:
        if grace:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(grace)
        self._child.kill()
        self.exit_code = self._child.wait()
        self._log.seek(0)
        self._last_words = self._log.read().decode(errors="replace").strip()[-600:]
        self._close()

    def _close(self) -> None:
        self._log.close()
        self._link.close()
        os.close(self._alive)
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Let go of a process that belongs to the process that this one was forked from.

        It has to see its owner's end, so what keeps it alive is closed here.
        """
        self._ending = threading.Lock()
        if self.exit_code is None:
            self.exit_code = 0
            self._child.returncode = 0  # it is another's to wait for
            self._close()


def _after_fork() -> None:
    for process in tuple(_processes):
        process.abandon()
    _processes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def signal_name(number: int) -> str:
    """Give a signal's name."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return str(number)


_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(count: int) -> str:
    """Tell a number of bytes.

    Examples
    --------
    >>> size_text(3 << 29), size_text(12)
    ('1.5 GiB', '12 B')
    """
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"
