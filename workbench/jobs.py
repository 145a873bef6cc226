"""Background jobs with progress and cancellation."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ..errors import TilewrightError
from .protocol import Job, JobKind
from .short_turns import short_turns

MAX_FINISHED = 4
"""The number of finished jobs that remain listed."""


class JobCanceledError(TilewrightError):
    """The cancellation of a job, raised by its next progress report."""

    title = "Canceled job"


class Progress:
    """Progress reports and the cancellation flag of one job."""

    def __init__(self, report: Callable[[float, str], None]) -> None:
        """Forward progress to ``report``."""
        self._forward = report
        self._canceled = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def canceled(self) -> bool:
        """True if the job was canceled."""
        return self._canceled.is_set()

    def cancel(self) -> None:
        """Run the cancel callbacks now and raise at the next progress report."""
        self._canceled.set()
        for callback in tuple(self._callbacks):
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Add a cancel callback, which stops work that does not report progress."""
        self._callbacks.append(callback)
        if self.canceled:
            callback()

    def within(self, report: Callable[[float, str], None]) -> Progress:
        """Return the progress of a part of the job, which reports elsewhere and is canceled too."""
        part = Progress(report)
        self.on_cancel(part.cancel)
        return part

    def report(self, fraction: float, message: str) -> None:
        """Report progress without raising, for threads that must not be interrupted."""
        self._forward(fraction, message)

    def __call__(self, fraction: float, message: str) -> None:
        """Report progress in 0..1, or -1 if it is unknown.

        Raises
        ------
        JobCanceledError
            If the job was canceled.
        """
        if self.canceled:
            raise JobCanceledError(f"canceled at: {message}")
        self._forward(fraction, message)


Work = Callable[[Progress], None]


class Jobs:
    """The jobs of one session, each on its own thread, which also runs the callbacks."""

    def __init__(
        self,
        changed: Callable[[], None],
        failed: Callable[[str, Exception], None],
        reported: Callable[[], None] | None = None,
    ) -> None:
        """Call ``changed`` at the end of a job, and ``failed`` with its title and error.

        ``reported`` is called after each report of progress; by default it is ``changed``.
        """
        self._changed = changed
        self._failed = failed
        self._reported = reported or changed
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, Progress] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._started: dict[str, float] = {}
        self._numbers = itertools.count(1)

    def view(self) -> list[Job]:
        """Return all running jobs and the last finished ones."""
        with self._lock:
            return list(self._jobs.values())

    @property
    def busy(self) -> bool:
        """True while compiled code is built or run; lowering for display does not count."""
        return any(
            job.kind == "run" and job.state in ("running", "canceling") for job in self.view()
        )

    def start(self, title: str, work: Work, kind: JobKind = "run") -> str:
        """Run ``work`` on a new thread and return the key of the job."""
        key = f"job{next(self._numbers)}"
        progress = Progress(lambda done, message: self._report(key, done, message))
        with self._lock:
            self._remove_finished()
            self._jobs[key] = Job(key, kind, title, "running", -1.0, "", 0.0)
            self._started[key] = time.monotonic()
            self._running[key] = progress
        thread = threading.Thread(
            target=self._run,
            args=(key, title, work, progress),
            name=f"tilewright-{key}",
            daemon=True,
        )
        self._threads[key] = thread
        thread.start()
        return key

    def cancel(self, key: str) -> None:
        """Request that a job stop, which it does at its next progress report."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.state != "running":
                return
            self._jobs[key] = replace(job, state="canceling")
        self._running[key].cancel()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all jobs have finished."""
        for thread in list(self._threads.values()):
            thread.join(timeout)

    def _run(self, key: str, title: str, work: Work, progress: Progress) -> None:
        try:
            with short_turns():
                work(progress)
        except Exception as error:  # noqa: BLE001 - the user has to see any error of the thread
            if progress.canceled:
                self._set(key, state="canceled", message="canceled")
                self._changed()
                return
            self._set(key, state="failed", message=str(error))
            self._failed(title, error)
        else:
            self._set(key, state="done", progress=1.0)
        self._changed()

    def _report(self, key: str, done: float, message: str) -> None:
        self._set(key, progress=done, message=message)
        self._reported()

    def _set(self, key: str, **changes: object) -> None:
        with self._lock:
            seconds = time.monotonic() - self._started[key]
            self._jobs[key] = replace(self._jobs[key], seconds=seconds, **changes)  # pyright: ignore[reportArgumentType]

    def _remove_finished(self) -> None:
        finished = [k for k, job in self._jobs.items() if job.state not in ("running", "canceling")]
        for key in finished[: max(0, len(finished) - MAX_FINISHED)]:
            for table in (self._jobs, self._running, self._threads, self._started):
                table.pop(key, None)
