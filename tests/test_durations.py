"""Durations in messages have the units of the panels."""

from __future__ import annotations

import pytest

from tilewright.durations import duration


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0.0, "0 ns"),
        (0.9994, "999 ns"),
        (0.9996, "1.00 µs"),
        (99.94, "99.9 µs"),
        (99.96, "100 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (999_400.0, "999 ms"),
        (1e9, "1000 s"),
    ],
)
def test_three_digits_and_the_next_unit_after_rounding(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text
