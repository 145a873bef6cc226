"""Calls of one page and their answers, which arrive on another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from ...errors import TilewrightError
from ..jobs import JobCanceledError, Progress
from ..protocol_gpu import GpuAnswer, GpuCall, GpuPing, GpuWork
from ..serialization import decoded_as
from .errors import PageClosedError, PageMessageError, SecondPageError, error_of

Send: TypeAlias = "Callable[[GpuCall, list[bytes]], None]"
Probe: TypeAlias = "Callable[[Callable[[], None]], None]"
"""Runs a function on the thread that receives messages, as soon as it is idle."""

PING: Final = 2.0
"""The seconds without an answer after which a page is pinged."""

SILENCE: Final = 15.0
"""The seconds without an answer, while messages are received, after which a page is closed."""

LOOK: Final = 0.05
"""The seconds between two looks at the cancellation of a job."""


def run_at_once(action: Callable[[], None]) -> None:
    """Run an action now, where no cell delays the messages of pages."""
    action()


class PageChannel:
    """The calls of the page of one client.

    Parameters
    ----------
    client : str
        The name of the client.
    send : callable
        Sends a call and its binary buffers.
    probe : callable
        Runs a function on the thread that receives messages. While a cell runs, no message is
        received, and silence does not mean that it is closed.
    silence : float
        The seconds of silence after which a page counts as closed.
    """

    def __init__(self, client: str, send: Send, probe: Probe, *, silence: float = SILENCE) -> None:
        """Start without calls."""
        self.client = client
        self._send = send
        self._probe = probe
        self._silence = silence
        self._changed = threading.Condition()
        self._next = 0
        self._answers: dict[int, tuple[GpuAnswer, bytes]] = {}
        self._waiting = 0
        self._page = ""
        self._failed: TilewrightError | None = None
        self._answered = self._idle = 0.0
        self._progress: Progress | None = None
        self.hidden = False

    @contextmanager
    def job(self, progress: Progress) -> Generator[None]:
        """Raise the cancellation of a job in its calls; note whether the page is hidden."""
        self._progress, self.hidden = progress, False
        try:
            yield
        finally:
            self._progress = None

    def open(self, work: GpuWork, content: bytes) -> GpuAnswer:
        """Call a page for the first time, or again after a failure.

        Raises
        ------
        TilewrightError
            As :meth:`call`.
        """
        with self._changed:
            self._failed, self._page = None, ""
        answer, _ = self.call(work, content)
        return answer

    def call(self, work: GpuWork, content: bytes = b"") -> tuple[GpuAnswer, bytes]:
        """Return the answer of the page and its bytes.

        Raises
        ------
        JobCanceledError
            If the job was canceled; the page is not waited for.
        PageClosedError
            If the page does not answer, was left, or was loaded again.
        SecondPageError
            If two pages answer.
        TilewrightError
            If the call failed in the page, or its GPU was lost.
        """
        with self._changed:
            self._check()
            self._next += 1
            number = self._waiting = self._next
            self._idle, self._answered = 0.0, time.monotonic()
        self._send(GpuCall("gpu", self.client, number, work), [content] if content else [])
        return self._wait(number, work.kind)

    def _wait(self, number: int, kind: str) -> tuple[GpuAnswer, bytes]:
        pinged = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(self._ended(number), LOOK)
                self._check()
                if number in self._answers:
                    answer, content = self._answers.pop(number)
                    break
                self._check_silence(kind)
            if time.monotonic() - pinged > PING:
                pinged = time.monotonic()
                self._send(GpuCall("gpu", self.client, 0, GpuPing("ping")), [])
                self._probe(self._received_nothing)
        if answer.failure is not None:
            raise error_of(answer.failure)
        return answer, content

    def _ended(self, number: int) -> Callable[[], bool]:
        return lambda: number in self._answers or self._failed is not None

    def _check(self) -> None:
        """Raise why no call can be made or waited for."""
        if self._progress is not None and self._progress.canceled:
            raise JobCanceledError("canceled while the page was running kernels")
        if self._failed is not None:
            raise self._failed

    def _check_silence(self, kind: str) -> None:
        """Raise that the page is closed if messages are received, and none is from the page."""
        idle = max(self._idle, self._answered) if self._idle else 0.0
        if idle and time.monotonic() - idle > self._silence:
            raise PageClosedError(
                f"the page has not answered call {kind!r} for {self._silence:g} s: it is closed, "
                "or its computer sleeps",
                hint="open the notebook again, and run in its page",
            )

    def _received_nothing(self) -> None:
        """Note that the thread of messages is idle; only the first time after an answer counts."""
        with self._changed:
            self._idle = self._idle or time.monotonic()

    def post(self, work: GpuWork) -> None:
        """Send a call without waiting for its answer, such as the last one."""
        self._send(GpuCall("gpu", self.client, 0, work), [])

    def receive(self, answer: GpuAnswer, content: bytes) -> None:
        """Take an answer, or a report about the page."""
        with self._changed:
            self._answered, self._idle = time.monotonic(), 0.0
            self.hidden = self.hidden or answer.hidden
            self._check_page(answer)
            if answer.call and answer.call == self._waiting:
                self._answers[answer.call] = (answer, content)
            elif not answer.call and answer.failure is not None and self._is_of_page(answer):
                self._failed = error_of(answer.failure)
            self._changed.notify_all()

    def _is_of_page(self, answer: GpuAnswer) -> bool:
        return answer.page == self._page

    def _check_page(self, answer: GpuAnswer) -> None:
        """Remember the page of the first answer; another page replaces it, or is a second one."""
        asked = answer.failure is None or answer.failure.kind != "not_requested"
        if not self._page:
            if answer.call == self._waiting and asked:
                self._page = answer.page
            return
        if self._is_of_page(answer):
            return
        if asked and answer.call:
            self._failed = SecondPageError(
                "two pages answer for one view of the workbench",
                hint="close one of the pages, reload the other one, and run again",
            )
        elif answer.call:
            self._failed = PageClosedError(
                "the page was loaded again during the run", hint="run again in the loaded page"
            )


class Pages:
    """The pages of a session, by client.

    Parameters
    ----------
    send : callable, optional
        Sends a call and its binary buffers to all pages; without it there are none.
    probe : callable, optional
        Runs a function on the thread that receives messages.
    """

    def __init__(self, send: Send | None = None, probe: Probe | None = None) -> None:
        """Start without pages."""
        self._send = send
        self._probe: Probe = probe or run_at_once
        self._channels: dict[str, PageChannel] = {}

    def of(self, client: str) -> PageChannel:
        """Return the page of a client.

        Raises
        ------
        PageClosedError
            If the session is not displayed.
        """
        if self._send is None:
            raise PageClosedError(
                "no page displays the workbench", hint="display it in a notebook, and run there"
            )
        if client not in self._channels:
            self._channels[client] = PageChannel(client, self._send, self._probe)
        return self._channels[client]

    def receive(self, message: Mapping[str, object], buffers: Sequence[Any]) -> None:
        """Take the message of a page; an answer to no call is ignored.

        Raises
        ------
        PageMessageError
            If it does not conform to the protocol.
        """
        try:
            answer = decoded_as(GpuAnswer, message)
        except TilewrightError as error:
            raise PageMessageError(error.message, hint=error.hint) from error
        channel = self._channels.get(answer.client)
        if channel is not None:
            channel.receive(answer, b"".join(bytes(part) for part in buffers))
