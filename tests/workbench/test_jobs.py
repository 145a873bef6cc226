"""Background jobs: progress, cancellation and errors."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tilewright.workbench.jobs import JobCanceledError, Jobs, Progress
from tilewright.workbench.protocol import Document
from tilewright.workbench.serialization import update_to_plain
from tilewright.workbench.short_turns import INTERVAL

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


def test_progress_is_reported_apart_from_the_end() -> None:
    calls: list[str] = []
    jobs = Jobs(
        lambda: calls.append("changed"),
        lambda _title, _error: None,
        lambda: calls.append("reported"),
    )
    jobs.start("title", lambda progress: progress(0.5, "half"))
    jobs.wait(5)
    assert calls == ["reported", "changed"]


def test_a_report_of_progress_sends_the_jobs_only(matmul: Client) -> None:
    reported, release = threading.Event(), threading.Event()

    def work(progress: Progress) -> None:
        matmul.session.view.saved = Document("a.py", "python", "text")
        progress(0.5, "half")
        reported.set()
        release.wait(5)

    matmul.session.jobs.start("title", work)
    assert reported.wait(5)
    update = next(u for u, _ in reversed(matmul.received) if u.jobs)
    assert [(job.progress, job.message) for job in update.jobs or []] == [(0.5, "half")]
    sections = update_to_plain(update).keys() - {"version", "client", "reply", "revision"}
    assert sections == {"server_ms", "jobs"}
    release.set()
    matmul.session.jobs.wait(5)
    last = next(u for u, _ in reversed(matmul.received) if u.jobs)
    assert [job.state for job in last.jobs or []] == ["done"]
    assert any(u.document is not None for u, _ in matmul.received)
    revisions = [u.revision for u, _ in matmul.received]
    assert revisions == list(range(1, len(revisions) + 1))


def test_threads_take_short_turns_while_jobs_run() -> None:
    """A job that computes lets the threads of a request run sooner than usual."""
    usual, seen, both = sys.getswitchinterval(), list[float](), threading.Barrier(2)
    jobs = Jobs(lambda: None, lambda _title, _error: None)

    def work(_progress: Progress) -> None:
        both.wait(5)
        seen.append(sys.getswitchinterval())
        both.wait(5)

    for _ in range(2):
        jobs.start("title", work)
    jobs.wait(5)
    assert seen == pytest.approx([min(usual, INTERVAL)] * 2)
    assert sys.getswitchinterval() == pytest.approx(usual)
