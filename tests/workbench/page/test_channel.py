"""Calls of a page: answers, cancellation, silence, and pages that are loaded again."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tilewright.codegen.errors import LaunchError
from tilewright.workbench.jobs import JobCanceledError, Progress
from tilewright.workbench.page import channel as channels
from tilewright.workbench.page.channel import PageChannel, Pages
from tilewright.workbench.page.errors import (
    PageClosedError,
    PageGpuLostError,
    PageMessageError,
    PageNotAskedError,
    SecondPageError,
)
from tilewright.workbench.protocol_gpu import (
    GpuAnswer,
    GpuCall,
    GpuFailure,
    GpuFind,
    GpuOpen,
    GpuPing,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN = GpuOpen("open", [], [])
FIND = GpuFind("find", ["a"])


def answer(call: int, page: str = "first", kind: str = "", **fields: Any) -> GpuAnswer:
    failure = GpuFailure(kind, f"because {kind}", "") if kind else None
    return GpuAnswer("gpu_answer", "me", call, page, hidden=False, failure=failure, **fields)


class Link:
    """A channel whose page answers by a function of the call."""

    def __init__(self, respond: Callable[[GpuCall], list[GpuAnswer]], **options: Any) -> None:
        self.sent: list[GpuCall] = []
        self.respond = respond
        self.idle = True
        self.channel = PageChannel("me", self._send, self._probe, **options)

    def _send(self, call: GpuCall, _buffers: list[bytes]) -> None:
        self.sent.append(call)
        for each in self.respond(call):
            self.channel.receive(each, b"bytes")

    def _probe(self, action: Callable[[], None]) -> None:
        if self.idle:
            action()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pings without delay."""
    monkeypatch.setattr(channels, "PING", 0.02)
    monkeypatch.setattr(channels, "LOOK", 0.005)


def test_an_answer_has_content_and_failures_are_named() -> None:
    link = Link(lambda call: [answer(call.call, missing=["a"])])
    link.channel.open(OPEN, b"")
    found, content = link.channel.call(FIND)
    assert (found.missing, content) == (["a"], b"bytes")
    link.respond = lambda call: [answer(call.call, kind="invalid")]
    with pytest.raises(LaunchError, match="rejects an operation: because invalid"):
        link.channel.call(FIND)


def test_a_closed_page_is_noticed_only_while_messages_are_received() -> None:
    link = Link(lambda call: [answer(call.call)], silence=0.1)
    link.channel.open(OPEN, b"")
    link.respond, link.idle = lambda _call: [], False  # a cell runs
    timer = threading.Timer(0.4, setattr, (link, "idle", True))
    timer.start()
    started = time.monotonic()
    with pytest.raises(PageClosedError, match=r"has not answered call 'find' for 0\.1 s"):
        link.channel.call(FIND)
    assert time.monotonic() - started >= 0.4
    assert any(isinstance(call.work, GpuPing) for call in link.sent)


def test_a_page_that_answers_pings_is_waited_for() -> None:
    link = Link(lambda call: [answer(call.call)], silence=0.1)
    link.channel.open(OPEN, b"")
    started = time.monotonic()

    def late(call: GpuCall) -> list[GpuAnswer]:
        if not isinstance(call.work, GpuPing):
            return []
        found = [answer(0)]
        if time.monotonic() - started > 0.5:
            found.append(answer(2))
        return found

    link.respond = late
    link.channel.call(FIND)
    assert time.monotonic() - started > 0.5


def test_a_canceled_job_ends_its_call() -> None:
    link = Link(lambda _call: [])
    progress = Progress(lambda _done, _message: None)
    threading.Timer(0.05, progress.cancel).start()
    with link.channel.job(progress), pytest.raises(JobCanceledError):
        link.channel.call(FIND)


def test_reports_of_a_page_end_a_call() -> None:
    for kind, error in (("lost", PageGpuLostError), ("closed", PageClosedError)):
        link = Link(lambda call: [answer(call.call)])
        link.channel.open(OPEN, b"")
        link.respond = lambda _call, kind=kind: [answer(0, kind=kind)]
        with pytest.raises(error, match=f"because {kind}"):
            link.channel.call(FIND)
        with pytest.raises(error):  # until it is opened again
            link.channel.call(FIND)
        link.respond = lambda call: [answer(call.call)]
        link.channel.open(OPEN, b"")
        link.channel.call(FIND)


def test_a_reload_and_a_second_page_are_noticed() -> None:
    link = Link(lambda call: [answer(call.call)])
    link.channel.open(OPEN, b"")
    link.respond = lambda call: [answer(call.call, "second", kind="not_requested")]
    with pytest.raises(PageClosedError, match="loaded again during the run"):
        link.channel.call(FIND)
    link.respond = lambda call: [answer(call.call)]
    link.channel.open(OPEN, b"")
    link.respond = lambda call: [answer(call.call), answer(call.call, "second")]
    with pytest.raises(SecondPageError, match="two pages answer"):
        link.channel.call(FIND)


def test_a_page_without_a_request_of_the_user_refuses() -> None:
    link = Link(lambda call: [answer(call.call, kind="not_requested")])
    with pytest.raises(PageNotAskedError):
        link.channel.open(OPEN, b"")


def test_messages_are_checked_and_those_of_unknown_pages_ignored() -> None:
    with pytest.raises(PageClosedError, match="no page displays"):
        Pages().of("me")
    sent: list[GpuCall] = []
    pages = Pages(lambda call, _buffers: sent.append(call))
    with pytest.raises(PageMessageError, match="has no field 'page'"):
        pages.receive({"type": "gpu_answer", "client": "me", "call": 1}, [])
    message = {"type": "gpu_answer", "client": "me", "call": 1, "page": "p", "hidden": True}
    pages.receive(message, [])  # of a page that was not called
    channel = pages.of("me")
    pages.receive(message, [memoryview(b"ab")])
    assert channel.hidden
    assert pages.of("me") is channel
    with pytest.raises(PageMessageError, match="expected"):
        pages.receive({**message, "failure": {"kind": "none", "message": "", "subject": ""}}, [])
