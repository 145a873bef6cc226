"""The owner's side of the compile workers: start, ask, cancel, restart."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, Literal

from ...ir.target import Target
from .errors import (
    CompileCancelledError,
    CompileError,
    CompileTimeoutError,
    WorkerDiedError,
)
from .protocol import PipeClosedError, PipeTimeoutError, read_frame, write_frame

DEFAULT_WORKERS = 2
DEFAULT_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to make: ``name`` is what errors call it, ``text`` is LLVM."""

    name: str
    text: str
    target: Target
    want: Literal["object", "assembly", "optimized", "image"] = "object"
    opt: int = 2


class Cancellation:
    """A switch that stops a compilation from another thread.

    Examples
    --------
    >>> cancel = Cancellation()
    >>> cancel.cancel()
    >>> cancel.cancelled
    True
    """

    def __init__(self) -> None:
        """Start switched off."""
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask what runs with this switch to stop."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    def check(self) -> None:
        """Stop here if somebody asked to.

        Raises
        ------
        CompileCancelledError
            If so.
        """
        if self.cancelled:
            raise CompileCancelledError("the compilation was cancelled")


class Worker:
    """One worker process, started when it is first asked."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.last_words = ""
        self.exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """The process, if one was started."""
        return None if self._process is None else self._process.pid

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        path = os.pathsep.join(p for p in sys.path if p)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603  # our own module, no shell
            [sys.executable, "-P", "-m", f"{__package__}.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        return self._process

    def ask(self, job: Job, timeout: float, poll: Callable[[], None]) -> bytes:
        """Have one job done.

        Raises
        ------
        PipeClosedError
            If the process ends before it answers.
        PipeTimeoutError
            If it takes too long; the process is ended.
        """
        process = self.start()
        if process.stdin is None or process.stdout is None:
            raise PipeClosedError
        request = {"want": job.want, "opt": job.opt, "target": asdict(job.target)}
        try:
            write_frame(process.stdin.fileno(), request, job.text.encode())
            deadline = time.monotonic() + timeout
            response, blob = read_frame(process.stdout.fileno(), deadline=deadline, poll=poll)
        except PipeClosedError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)  # for how it ended; stopping it now would hide that
            self.stop()
            raise
        except BaseException:
            self.stop()
            raise
        if not response["ok"]:
            raise _as_error(job, response["error"])
        return blob

    def stop(self) -> None:
        """End the process at once, keeping its last words; the next job starts another one."""
        process, log = self._process, self._log
        if process is None or log is None:
            return
        process.kill()
        self.exit_code = process.wait()
        log.seek(0)
        self.last_words = log.read().decode(errors="replace").strip()[-600:]
        for pipe in (process.stdin, process.stdout, log):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = self._log = None


def _as_error(job: Job, data: dict[str, Any]) -> CompileError:
    return CompileError(
        f"{job.name}: {data['message']}", where=data["where"], hint=data["hint"],
        details={"kind": data["kind"]},
    )  # fmt: skip


class Pool:
    """A few workers, lent to whoever compiles."""

    def __init__(self, count: int = DEFAULT_WORKERS) -> None:
        """Start nothing yet."""
        self.workers = tuple(Worker() for _ in range(count))
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self.workers:
            self._idle.put(worker)

    def warm(self) -> None:
        """Start the processes that no one is using, so that they are ready when asked."""
        borrowed: list[Worker] = []
        with contextlib.suppress(queue.Empty):
            while True:
                borrowed.append(self._idle.get_nowait())
        for worker in borrowed:
            worker.start()
            self._idle.put(worker)

    def run(
        self,
        job: Job,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cancel: Cancellation | None = None,
        also: Cancellation | None = None,
    ) -> bytes:
        """Have one job done; a worker that dies is replaced once. Either switch stops it.

        Raises
        ------
        CompileError
            If LLVM refuses the text, the worker dies twice, time is up or somebody cancels.
        """
        switches = [s for s in (cancel, also) if s is not None]

        def poll() -> None:
            for switch in switches:
                switch.check()

        worker = self._borrow(poll)
        try:
            return self._attempt(worker, job, timeout, poll)
        finally:
            self._idle.put(worker)

    def _borrow(self, poll: Callable[[], None]) -> Worker:
        while True:
            poll()
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=0.05)

    @staticmethod
    def _attempt(worker: Worker, job: Job, timeout: float, poll: Callable[[], None]) -> bytes:
        for last in (False, True):
            try:
                return worker.ask(job, timeout, poll)
            except PipeTimeoutError as error:
                raise CompileTimeoutError(
                    f"{job.name} took longer than {timeout:g} s to compile",
                    hint="smaller tiles and unroll factors compile faster",
                ) from error
            except PipeClosedError as error:
                if last:
                    raise WorkerDiedError(
                        f"the compile worker died while compiling {job.name} "
                        f"({_ending(worker.exit_code)})",
                        hint=worker.last_words,
                    ) from error
        raise CompileError(f"{job.name} was not compiled")

    def run_all(
        self,
        jobs: Sequence[Job],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cancel: Cancellation | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[bytes]:
        """Have jobs done by all workers at once; the first error stops the others.

        ``done`` is called on the calling thread with the position of each job that is ready; what
        it raises stops the others, too, and is raised here.
        """
        batch = _Batch(self, jobs, timeout, cancel or Cancellation())
        batch.start()
        try:
            for position in batch.ready():
                if done is not None:
                    done(position)
        finally:
            batch.finish()
        return [batch.made[k] for k in range(len(jobs))]

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.stop()


class _Batch:
    """Jobs shared out among threads, one a worker; what happens is told through a queue."""

    def __init__(
        self, pool: Pool, jobs: Sequence[Job], timeout: float, cancel: Cancellation
    ) -> None:
        self.made: dict[int, bytes] = {}
        self._pool, self._jobs, self._timeout = pool, jobs, timeout
        self._stop = Cancellation()
        self._outer = cancel
        self._waiting = iter(range(len(jobs)))
        self._lock = threading.Lock()
        self._events: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()
        count = min(len(pool.workers), len(jobs))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Stop what still runs, and wait for it."""
        self._stop.cancel()
        for thread in self._threads:
            thread.join()

    def ready(self) -> Iterator[int]:
        """Give the positions of the jobs as they become ready."""
        for _ in self._jobs:
            event = self._events.get()
            if isinstance(event, BaseException):
                raise event
            yield event

    def _work(self) -> None:
        while not self._stop.cancelled:
            with self._lock:
                position = next(self._waiting, None)
            if position is None:
                return
            try:
                self.made[position] = self._pool.run(
                    self._jobs[position], timeout=self._timeout, cancel=self._outer, also=self._stop
                )
            except BaseException as error:  # noqa: BLE001  # raised again by ready()
                self._events.put(error)
                return
            self._events.put(position)


def _ending(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


_POOL: dict[int, Pool] = {}
_pool_lock = threading.Lock()


def default_pool() -> Pool:
    """Give this process's workers; a forked child gets its own."""
    pid = os.getpid()
    with _pool_lock:
        if pid not in _POOL:
            _POOL.clear()
            _POOL[pid] = Pool()
        return _POOL[pid]


def _forget_lock() -> None:
    global _pool_lock  # noqa: PLW0603  # the parent's may be held by a thread that is not here
    _pool_lock = threading.Lock()


@atexit.register
def _close() -> None:
    pool = _POOL.get(os.getpid())
    if pool is not None:
        pool.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
