"""A sandbox process as its owner sees it: socket, shared status and termination."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import TilewrightError
from ...locks import renew_in_children, uninterrupted
from ..build.protocol import PipeClosedError, read_frame, write_frame
from ..build.worker_pool import CancelToken, end_of_log, log_file
from ..errors import RunCanceledError, RunFailedError, RunMemoryError, RunStartError
from .shared_status import SharedStatus

GRACE = 0.2
"""The time in seconds that a process may take to exit after it closed its socket."""

_processes: weakref.WeakSet[Process] = weakref.WeakSet()


class Process:
    """A child process that answers requests until it exits or is killed.

    It is created in an :func:`~tilewright.locks.uninterrupted` section, so that it has an owner.

    Raises
    ------
    RunStartError
        If the system does not start it, for example because of a limit.
    """

    def __init__(self) -> None:
        """Start the process."""
        self.owner = os.getpid()
        self.exit_code: int | None = None
        self.budget = 0
        self.before = 0
        self._unanswered = 1
        self._ending = threading.Lock()
        self._output = ""
        with contextlib.ExitStack() as made:
            try:
                self._open(made)
            except OSError as error:
                raise RunStartError(
                    f"the sandbox process did not start: {error}",
                    hint="check the limits of this process, such as `ulimit -a` shows",
                ) from error
            made.pop_all()
        _processes.add(self)
        self.send({"do": "begin"}, descriptors=[self._descriptor])

    def prepare(self) -> None:
        """Let the process import the modules that run programs, without waiting for it."""
        self.send({"do": "prepare"})
        self._unanswered += 1

    def wait_started(self, deadline: float, cancel: CancelToken | None) -> None:
        """Wait until the process is started, and prepared if that was requested."""
        while self._unanswered:
            self.receive(deadline, cancel)
            self._unanswered -= 1

    def _open(self, made: contextlib.ExitStack) -> None:
        """Open all resources and start the process; ``made`` closes them if one is missing."""
        self._descriptor = os.memfd_create("tilewright-status", os.MFD_CLOEXEC)
        made.callback(os.close, self._descriptor)
        os.ftruncate(self._descriptor, mmap.PAGESIZE)
        self.status = SharedStatus(self._descriptor)
        self._link, child_link = socket.socketpair()
        made.callback(self._link.close)
        with child_link:
            watched, self._alive = os.pipe()
            made.callback(os.close, self._alive)
            try:
                self._log = log_file()
                made.callback(self._log.close)
                self._child = self._start(child_link, watched)
            finally:
                os.close(watched)

    def _start(self, child_link: socket.socket, watched: int) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(p for p in sys.path if p)
        command = "import os,sys;os.dup2(int(sys.argv[1]),3);" if watched != 3 else ""
        command += f"from {__package__}.child import main;main()"
        return subprocess.Popen(  # noqa: S603  # our own module, no shell
            [sys.executable, "-P", "-c", command, str(watched)],
            stdin=child_link.fileno(),
            stdout=self._log,
            stderr=self._log,
            pass_fds=(watched,),
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )

    def __del__(self) -> None:
        """Stop the process."""
        with contextlib.suppress(AttributeError, TypeError):  # not started, or at exit
            self.stop()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs and is a child of this process."""
        return self.exit_code is None and self._child.poll() is None

    def send(
        self, message: dict[str, Any], blob: bytes = b"", descriptors: Sequence[int] = ()
    ) -> None:
        """Send a request and its descriptors."""
        self.reply({**message, "descriptors": len(descriptors)}, blob)
        if descriptors:
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(self._link, [b"\0"], list(descriptors))

    def reply(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Send a frame."""
        write_frame(self._link.fileno(), message, blob)

    def receive(self, deadline: float, cancel: CancelToken | None) -> dict[str, Any]:
        """Wait for a frame and return it; raise the error that it contains."""

        def poll() -> None:
            if cancel is not None and cancel.canceled:
                raise RunCanceledError("the run was canceled")

        try:
            answer, _ = read_frame(self._link.fileno(), deadline=deadline, poll=poll)
        except (OSError, ValueError):  # also if another thread closed the socket
            raise PipeClosedError from None
        poll()
        if not answer["ok"]:
            raise self._as_error(answer)
        self.before = int(answer.get("before", self.before))
        return answer

    def descriptor(self) -> int:
        """Receive the descriptor that follows a frame."""
        try:
            _, descriptors, _, _ = socket.recv_fds(self._link, 1, 1)
        except OSError:
            descriptors = []
        if not descriptors:
            raise PipeClosedError
        return descriptors[0]

    def _as_error(self, answer: Mapping[str, Any]) -> TilewrightError:
        data: Mapping[str, Any] = answer["error"]
        message, hint = str(data.get("message", "")), data.get("hint") or ""
        details = {name: data.get(name) for name in ("kind", "title")}
        where = data.get("where") or ""
        if data.get("kind") in ("MemoryError", "OutOfMemoryError"):
            used = max(int(answer["held"]) - int(answer["before"]), 0)
            limits = self.limits(int(answer["before"]))
            full = f"{message}; {limits}; {size_text(used)} were in use"
            return RunMemoryError(full if limits else message, where=where, hint=hint)
        return RunFailedError(message, where=where, hint=hint, details=details)

    def limits(self, before: int | None = None) -> str:
        """Return the memory limit as text."""
        base = self.before if before is None else before
        if not self.budget or not base:
            return ""
        return f"the limit is {size_text(self.budget)} in addition to the initial {size_text(base)}"

    def stop(self, grace: float = 0.0) -> str:
        """Kill the process, release its resources, and return the end of its output.

        ``grace`` is the time in seconds to wait first, so that the exit code of a crash is known.
        """
        with self._ending:
            if self.exit_code is None:
                self._end(grace)
            return self._output

    def _end(self, grace: float) -> None:
        if grace:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(grace)
        self._child.kill()
        self.exit_code = self._child.wait()
        self._output = end_of_log(self._log)
        self._close()

    def _close(self) -> None:
        self._log.close()
        self._link.close()
        os.close(self._alive)
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Close the resources of a process that belongs to the parent of this forked process.

        The pipe is closed because the process must detect the exit of its owner.
        """
        self._ending = threading.Lock()
        if self.exit_code is None:
            self.exit_code = 0
            self._child.returncode = 0  # its owner waits for it
            self._close()


class PreparedProcess:
    """A process that is started in advance, so that the next runner does not wait for its imports.

    Examples
    --------
    >>> prepared = PreparedProcess()
    >>> prepared.start()
    >>> process = prepared.take()
    >>> process.alive
    True
    >>> process.stop()
    ''
    """

    def __init__(self) -> None:
        """Start no process yet."""
        self._lock = threading.Lock()
        renew_in_children(self, "_lock")
        self._process: Process | None = None
        self._surroundings: object = None

    def start(self) -> None:
        """Start the process, unless one is waiting that inherited the current environment."""
        with self._lock:
            if self._process is not None and self._is_current(self._process):
                return
            self._stop()
            with uninterrupted():
                process = self._process = Process()
            self._surroundings = _surroundings()
            process.prepare()

    def take(self) -> Process:
        """Return the process, which belongs to the caller from now on."""
        self.start()
        with self._lock:
            process, self._process = self._process, None
        return process or self.take()  # another thread took it

    def close(self) -> None:
        """Stop the process, if one is waiting."""
        with self._lock:
            self._stop()

    def _is_current(self, process: Process) -> bool:
        return process.alive and self._surroundings == _surroundings()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()


def _surroundings() -> object:
    """Return everything that a process inherits at its start."""
    return tuple(sys.path), dict(os.environ), Path.cwd()


def _after_fork() -> None:
    for process in tuple(_processes):
        process.abandon()
    _processes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return str(number)


_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(count: int) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> size_text(3 << 29), size_text(12)
    ('1.5 GiB', '12 B')
    """
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"
