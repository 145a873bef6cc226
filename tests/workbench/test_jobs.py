"""Background jobs: progress, cancellation and errors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tilewright.workbench.jobs import JobCanceledError, Jobs, Progress

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_canceled_job_stops_at_its_next_report() -> None:
    started, stopped = threading.Event(), threading.Event()
    jobs = Jobs(lambda: None, lambda _title, _error: None)

    def endless(progress) -> None:
        progress.on_cancel(stopped.set)
        started.set()
        while True:
            progress(-1.0, "running")

    key = jobs.start("endless", endless)
    assert started.wait(5)
    assert jobs.busy
    jobs.cancel(key)
    jobs.wait(5)
    assert stopped.is_set()
    assert [job.state for job in jobs.view()] == ["canceled"]
    assert not jobs.busy


def test_failed_job_reports_its_error() -> None:
    seen: list[tuple[str, Exception]] = []
    jobs = Jobs(lambda: None, lambda title, error: seen.append((title, error)))

    def failing(_progress) -> None:
        raise ValueError("failure")

    jobs.start("title", failing)
    jobs.wait(5)
    assert [(title, str(error)) for title, error in seen] == [("title", "failure")]
    assert [job.state for job in jobs.view()] == ["failed"]


def test_second_job_is_rejected_while_one_is_running(matmul: Client) -> None:
    release = threading.Event()
    matmul.session.jobs.start("slow", lambda _progress: release.wait(5) or None)
    update = matmul.send("run", action="measure", function="")
    release.set()
    matmul.session.jobs.wait()
    assert update.problems is not None
    assert update.problems[0].hint == "wait until it finishes, or cancel it"


def test_a_part_of_a_job_is_canceled_with_it() -> None:
    whole, reports = Progress(lambda *_: None), list[tuple[float, str]]()
    part = whole.within(lambda fraction, message: reports.append((fraction, message)))
    part(0.5, "half")
    assert reports == [(0.5, "half")]
    whole.cancel()
    with pytest.raises(JobCanceledError):
        part(0.6, "more")
