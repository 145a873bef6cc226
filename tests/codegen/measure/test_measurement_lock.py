"""The lock of measurements."""

from __future__ import annotations

import threading

import pytest

from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import RunCanceledError
from tilewright.codegen.measure import exclusive_measurement


def test_the_second_measurement_waits_for_the_first() -> None:
    order: list[str] = []
    waits = threading.Event()
    with exclusive_measurement() as first:
        thread = threading.Thread(target=lambda: _second(order, waits))
        thread.start()
        assert waits.wait(5)
        order.append("first")
    thread.join()
    assert first
    assert order == ["first", "second True"]


def _second(order: list[str], waits: threading.Event) -> None:
    with exclusive_measurement(waiting=waits.set) as exclusive:
        order.append(f"second {exclusive}")


def test_waiting_is_canceled() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with exclusive_measurement(), pytest.raises(RunCanceledError), exclusive_measurement(cancel):
        pass
