"""Tests of checks during long work."""

from __future__ import annotations

import threading

import pytest

from tilewright.polling import poll, polled


def test_the_innermost_check_is_called():
    calls: list[str] = []
    with polled(lambda: calls.append("outer")):
        with polled(lambda: calls.append("inner")):
            poll()
        poll()
    poll()
    assert calls == ["inner", "outer"]


def test_an_error_of_the_check_ends_the_work():
    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), polled(stop):
        poll()
    poll()


def test_other_threads_have_no_check():
    calls: list[str] = []
    with polled(lambda: calls.append("other")):
        thread = threading.Thread(target=poll)
        thread.start()
        thread.join()
    assert calls == []
