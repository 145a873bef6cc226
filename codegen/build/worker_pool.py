"""The pool of compile worker processes: start, run jobs, cancel, restart."""

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
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, Self

from ...locks import renew_in_children, uninterrupted
from ...target.target import Target
from ..errors import (
    CompileCanceledError,
    CompileError,
    CompileTimeoutError,
    WorkerDiedError,
    WorkerStartError,
)
from .protocol import PipeClosedError, PipeTimeoutError, read_frame, write_frame

DEFAULT_WORKERS = 2
DEFAULT_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One compilation.

    Parameters
    ----------
    name : str
        Name in error messages, such as the name of the kernel.
    text : str
        LLVM IR text.
    target : Target
        The target.
    output : {"object", "assembly", "optimized", "image"}
        Kind of the result: object file, assembly text, optimized LLVM text, or GPU image.
    opt : int
        Optimization level of LLVM, 0 to 3.
    """

    name: str
    text: str
    target: Target
    output: Literal["object", "assembly", "optimized", "image"] = "object"
    opt: int = 2


class UnoptimizedCodeWarning(UserWarning):
    """A kernel that was compiled with less or no optimization because LLVM aborted.

    The results are correct, but the kernel may be slow. Please report it as a bug.
    """


class CancelToken:
    """A flag that cancels an operation from another thread.

    Examples
    --------
    >>> cancel = CancelToken()
    >>> cancel.cancel()
    >>> cancel.canceled
    True
    """

    def __init__(self) -> None:
        """Create a token that is not canceled."""
        self._event = threading.Event()

    def cancel(self) -> None:
        """Request that the operations with this token stop."""
        self._event.set()

    @property
    def canceled(self) -> bool:
        """True once :meth:`cancel` was called."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise an error if the token is canceled.

        Raises
        ------
        CompileCanceledError
            If the token is canceled.
        """
        if self.canceled:
            raise CompileCanceledError("the compilation was canceled")


class Worker:
    """One worker process, started by its first job."""

    def __init__(self) -> None:
        """Create a worker without a process."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.stderr_tail = ""
        self.exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if it was not started."""
        return None if self._process is None else self._process.pid

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it is running.

        Raises
        ------
        WorkerStartError
            If the system does not start it, for example because of a limit.
        """
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        path = os.pathsep.join(p for p in sys.path if p)
        with uninterrupted():
            self._log = log_file()
            try:
                self._process = subprocess.Popen(  # noqa: S603  # our own module, no shell
                    [sys.executable, "-P", "-m", f"{__package__}.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    env={**os.environ, "PYTHONPATH": path},
                    start_new_session=True,
                )
            except OSError as error:
                self._log.close()
                raise WorkerStartError(
                    f"the compile worker did not start: {error}",
                    hint="check the limits of this process, such as `ulimit -a` shows",
                ) from error
        return self._process

    def run(self, job: CompileJob, timeout: float, poll: Callable[[], None]) -> bytes:
        """Run one job and return its output.

        Raises
        ------
        PipeClosedError
            If the process ends before it answers.
        PipeTimeoutError
            If the job exceeds the time limit; the process is killed.
        """
        process = self.start()
        if process.stdin is None or process.stdout is None:
            raise PipeClosedError
        request = {"output": job.output, "opt": job.opt, "target": asdict(job.target)}
        try:
            write_frame(process.stdin.fileno(), request, job.text.encode())
            deadline = time.monotonic() + timeout
            response, blob = read_frame(process.stdout.fileno(), deadline=deadline, poll=poll)
        except PipeClosedError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)  # for the exit code, which killing it now would hide
            self.stop()
            raise
        except BaseException:
            self.stop()
            raise
        if not response["ok"]:
            raise _as_error(job, response["error"])
        return blob

    def stop(self) -> None:
        """Kill the process and store the end of its standard error; the next job starts a new one.

        Nothing happens if no process was started.
        """
        process, log = self._process, self._log
        if process is None or log is None:
            return
        process.kill()
        self.exit_code = process.wait()
        self.stderr_tail = end_of_log(log)
        for pipe in (process.stdin, process.stdout, log):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = self._log = None


def log_file() -> IO[bytes]:
    """Return a new file for the standard error of a process; without one, output is lost."""
    try:
        return tempfile.TemporaryFile()
    except OSError:  # the disk is full, or no folder for temporary files can be written
        return Path(os.devnull).open("r+b", buffering=0)


def end_of_log(log: IO[bytes]) -> str:
    """Return the end of the standard error of a process."""
    with contextlib.suppress(OSError):
        log.seek(0)
    return log.read().decode(errors="replace").strip()[-600:]


def _as_error(job: CompileJob, data: dict[str, Any]) -> CompileError:
    return CompileError(
        f"{job.name}: {data['message']}", where=data["where"], hint=data["hint"],
        details={"kind": data["kind"]},
    )  # fmt: skip


class WorkerPool:
    """A pool of compile workers, shared by concurrent compilations."""

    def __init__(self, count: int = DEFAULT_WORKERS) -> None:
        """Create the workers without starting processes."""
        self.workers = tuple(Worker() for _ in range(count))
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self.workers:
            self._idle.put(worker)

    @property
    def idle(self) -> int:
        """The number of workers without a job."""
        return self._idle.qsize()

    def warm(self) -> None:
        """Start the processes of idle workers ahead of their first job.

        A process that does not start now is reported by its first job.
        """
        idle: list[Worker] = []
        with uninterrupted():
            try:
                with contextlib.suppress(queue.Empty):
                    while True:
                        idle.append(self._idle.get_nowait())
                with contextlib.suppress(WorkerStartError):
                    for worker in idle:
                        worker.start()
            finally:
                for worker in idle:
                    self._idle.put(worker)

    def run(
        self,
        job: CompileJob,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cancel: CancelToken | None = None,
    ) -> bytes:
        """Run one job and return its output; a crashed worker is restarted.

        The job runs again after a crash, and after two crashes with less optimization, at last
        without, because LLVM may abort in an optimization; an ``UnoptimizedCodeWarning`` reports
        it.

        Raises
        ------
        CompileError
            If LLVM rejects the text, the worker crashes each time, the job exceeds the time limit,
            or it is canceled.
        """
        return self.run_all([job], timeout=timeout, cancel=cancel)[0]

    def run_here(self, job: CompileJob, timeout: float, tokens: Sequence[CancelToken]) -> bytes:
        """Run one job on this thread, which Ctrl+C must not interrupt.

        The job stops when any of the tokens is canceled.
        """

        def poll() -> None:
            for token in tokens:
                token.check()

        worker = self._acquire(poll)
        try:
            return self._attempt(worker, job, timeout, poll)
        finally:
            self._idle.put(worker)

    def _acquire(self, poll: Callable[[], None]) -> Worker:
        while True:
            poll()
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=0.05)

    @staticmethod
    def _attempt(
        worker: Worker, job: CompileJob, timeout: float, poll: Callable[[], None]
    ) -> bytes:
        """Run a job; if the worker exits, a second time, then at the lower optimization levels."""
        tries = (job, job, *(replace(job, opt=k) for k in range(min(job.opt, 2) - 1, -1, -1)))
        reason = ""
        for left, tried in zip(range(len(tries) - 1, -1, -1), tries, strict=True):
            try:
                output = worker.run(tried, timeout, poll)
            except PipeTimeoutError as error:
                raise CompileTimeoutError(
                    f"compilation of {job.name} exceeded the time limit of {timeout:g} s",
                    hint="reduce tile sizes or unroll factors, or raise the time limit",
                ) from error
            except PipeClosedError as error:
                reason = worker.stderr_tail
                if not left:
                    raise WorkerDiedError(
                        f"the compile worker crashed while compiling {job.name} "
                        f"({_exit_reason(worker.exit_code)})",
                        hint=reason,
                    ) from error
            else:
                if tried.opt != job.opt:
                    text = _unoptimized(job, tried.opt, reason)
                    warnings.warn(UnoptimizedCodeWarning(text), stacklevel=2)
                return output
        raise CompileError(f"{job.name} was not compiled")

    def run_all(
        self,
        jobs: Sequence[CompileJob],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cancel: CancelToken | None = None,
        done: Callable[[int, float], None] | None = None,
    ) -> list[bytes]:
        """Run jobs on all workers and return their outputs; the first error stops the others.

        ``done`` is called as by :meth:`Batch.finish`.
        """
        with self.batch(timeout=timeout, cancel=cancel) as batch:
            for job in jobs:
                batch.add(job)
            return batch.finish(done)

    def batch(
        self, *, timeout: float = DEFAULT_TIMEOUT, cancel: CancelToken | None = None
    ) -> Batch:
        """Return a batch without jobs; the time limit is that of each job."""
        return Batch(self, timeout, cancel or CancelToken())

    def close(self) -> None:
        """Stop all workers."""
        for worker in self.workers:
            worker.stop()


class Batch:
    """Jobs that run while others are added, distributed over threads, one per worker.

    Only the main thread is interrupted by Ctrl+C, so that a thread always returns its worker. A
    batch is a context manager: at its end, jobs that still run are stopped.
    """

    def __init__(self, pool: WorkerPool, timeout: float, cancel: CancelToken) -> None:
        """Create a batch; the first job starts the first thread."""
        self._pool, self._timeout = pool, timeout
        self._stop = CancelToken()
        self._outer = cancel
        self._waiting: queue.SimpleQueue[tuple[int, CompileJob] | None] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()
        self._outputs: dict[int, bytes] = {}
        self._seconds: dict[int, float] = {}
        self._added = 0
        self._ready: list[int] = []
        self._threads: list[threading.Thread] = []
        self._most = len(pool.workers)

    def __enter__(self) -> Self:
        """Return the batch."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the running jobs and join the threads."""
        self._stop.cancel()
        for _thread in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def add(self, job: CompileJob) -> None:
        """Add a job, which runs as soon as a worker is idle; raise the error of an earlier one."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._ready.append(_position(self._events.get_nowait()))
        self._waiting.put((self._added, job))
        self._added += 1
        if len(self._threads) < self._most:
            self._start()

    def finish(self, done: Callable[[int, float], None] | None = None) -> list[bytes]:
        """Wait for all jobs, and return their outputs; the first error stops the others.

        ``done`` is called on this thread with the position of each finished job and the seconds
        that it took. If it raises, the other jobs are stopped at the end of the batch.
        """
        for k in range(self._added):
            if k == len(self._ready):
                self._ready.append(_position(self._events.get()))
            if done is not None:
                done(self._ready[k], self._seconds[self._ready[k]])
        return [self._outputs[k] for k in range(self._added)]

    def _start(self) -> None:
        """Start a thread; one is enough if the system starts no more."""
        thread = threading.Thread(target=self._work, daemon=True)
        self._threads.append(thread)
        try:
            thread.start()
        except RuntimeError as error:
            self._threads.pop()
            self._most = len(self._threads)
            if self._threads:
                return
            raise WorkerStartError(
                f"the thread of a compile worker did not start: {error}",
                hint="check the limits of this process, such as `ulimit -a` shows",
            ) from error

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None and not self._stop.canceled:
            position, job = waiting
            started = time.perf_counter()
            try:
                output = self._pool.run_here(job, self._timeout, (self._outer, self._stop))
            except BaseException as error:  # noqa: BLE001  # raised again on the thread of the batch
                self._events.put(error)
                return
            self._outputs[position] = output
            self._seconds[position] = time.perf_counter() - started
            self._events.put(position)


def _position(event: int | BaseException) -> int:
    """Return the position of a finished job, or raise its error."""
    if isinstance(event, BaseException):
        raise event
    return event


def _unoptimized(job: CompileJob, opt: int, reason: str) -> str:
    level = f"at optimization level {opt} instead of {job.opt}" if opt else "without optimization"
    return f"{job.name} was compiled {level}, because LLVM aborted: {reason.strip()}"


def _exit_reason(code: int | None) -> str:
    if code is None:
        return "the pipe was closed"
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


_POOL: dict[int, WorkerPool] = {}
_pool_lock = threading.Lock()
renew_in_children(sys.modules[__name__], "_pool_lock")


def default_pool() -> WorkerPool:
    """Return the pool of this process; a forked child process has its own."""
    pid = os.getpid()
    with _pool_lock:
        if pid not in _POOL:
            _POOL.clear()
            _POOL[pid] = WorkerPool()
        return _POOL[pid]


@atexit.register
def _close() -> None:
    pool = _POOL.get(os.getpid())
    if pool is not None:
        pool.close()
