"""Relative CPU times."""

from __future__ import annotations

import statistics

import pytest

from tests.cpu_time import REFERENCE_MS, RUNS, _reference, relative_ms, timed


@timed
def test_the_reference_takes_its_own_time() -> None:
    times = [relative_ms(_reference) for _ in range(31)]
    assert REFERENCE_MS * 0.7 < statistics.median(times) < REFERENCE_MS * 1.4


@timed
def test_twice_the_work_takes_twice_the_time() -> None:
    once = statistics.median(relative_ms(_reference) for _ in range(31))
    twice = statistics.median(relative_ms(lambda: (_reference(), _reference())) for _ in range(31))
    assert 1.5 < twice / once < 2.7


def test_a_time_limit_is_tried_again_and_then_fails() -> None:
    runs: list[str] = []

    @timed
    def late(limit: int) -> None:
        runs.append("late")
        assert len(runs) >= limit

    late(2)
    assert len(runs) == 2
    runs.clear()
    with pytest.raises(AssertionError):
        late(RUNS + 1)
    assert len(runs) == RUNS
