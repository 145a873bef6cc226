"""Work off the main thread, with progress and cancelling."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace

from ..ir.errors import TilewrightError
from .protocol import Job

KEPT = 4
"""Finished jobs that are still told of."""


class JobCancelledError(TilewrightError):
    """Raised inside of a job at its next report of progress after somebody cancelled it."""

    title = "Cancelled"


class Progress:
    """What a job is handed: where it says how far it is, and learns that it was cancelled."""

    def __init__(self, report: Callable[[float, str], None]) -> None:
        """Report to ``report``."""
        self._report = report
        self._cancelled = threading.Event()
        self._stops: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled the job."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Stop the job at its next report, and at once what it said how to stop."""
        self._cancelled.set()
        for stop in tuple(self._stops):
            stop()

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Say how to stop a part that does not report."""
        self._stops.append(stop)
        if self.cancelled:
            stop()

    def tell(self, fraction: float, message: str) -> None:
        """Say how much is done from a thread that must not be disturbed."""
        self._report(fraction, message)

    def __call__(self, fraction: float, message: str) -> None:
        """Say how much is done, in 0..1 or -1 for not known.

        Raises
        ------
        JobCancelledError
            If the job was cancelled meanwhile.
        """
        if self.cancelled:
            raise JobCancelledError(f"cancelled at: {message}")
        self._report(fraction, message)


Work = Callable[[Progress], None]


class Jobs:
    """The jobs of one session, one thread each; ``changed`` is called from those threads."""

    def __init__(
        self, changed: Callable[[], None], failed: Callable[[str, Exception], None]
    ) -> None:
        """Tell of changes, and of errors with the job's title."""
        self._changed = changed
        self._failed = failed
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, Progress] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._numbers = itertools.count(1)

    def view(self) -> list[Job]:
        """All running jobs and the last finished ones."""
        with self._lock:
            return list(self._jobs.values())

    @property
    def busy(self) -> bool:
        """Whether any job is under way."""
        return any(job.state in ("running", "cancelling") for job in self.view())

    def start(self, title: str, work: Work) -> str:
        """Run ``work`` on a thread of its own; give the key of the job."""
        key = f"job{next(self._numbers)}"
        progress = Progress(lambda done, message: self._set(key, progress=done, message=message))
        with self._lock:
            self._forget()
            self._jobs[key] = Job(key, title, "running", -1.0, "")
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
        """Ask a job to stop; it does at its next report."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.state != "running":
                return
            self._jobs[key] = replace(job, state="cancelling")
        self._running[key].cancel()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all jobs have ended."""
        for thread in list(self._threads.values()):
            thread.join(timeout)

    def _run(self, key: str, title: str, work: Work, progress: Progress) -> None:
        try:
            work(progress)
        except Exception as error:  # noqa: BLE001 - a thread's error has to reach the person
            if progress.cancelled:
                self._set(key, state="cancelled", message="cancelled")
                return
            self._set(key, state="failed", message=str(error))
            self._failed(title, error)
            self._changed()
        else:
            self._set(key, state="done", progress=1.0)

    def _set(self, key: str, **changes: object) -> None:
        with self._lock:
            self._jobs[key] = replace(self._jobs[key], **changes)  # pyright: ignore[reportArgumentType]
        self._changed()

    def _forget(self) -> None:
        over = [k for k, job in self._jobs.items() if job.state not in ("running", "cancelling")]
        for key in over[: max(0, len(over) - KEPT)]:
            for table in (self._jobs, self._running, self._threads):
                table.pop(key, None)
