"""Relative CPU times."""

from __future__ import annotations

import statistics

from tests.cpu_time import REFERENCE_MS, _reference, relative_ms


def test_the_reference_takes_its_own_time() -> None:
    times = [relative_ms(_reference) for _ in range(31)]
    assert REFERENCE_MS * 0.7 < statistics.median(times) < REFERENCE_MS * 1.4


def test_twice_the_work_takes_twice_the_time() -> None:
    once = statistics.median(relative_ms(_reference) for _ in range(31))
    twice = statistics.median(relative_ms(lambda: (_reference(), _reference())) for _ in range(31))
    assert 1.5 < twice / once < 2.7
