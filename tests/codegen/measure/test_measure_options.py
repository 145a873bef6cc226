"""Options of measurements: invalid values, and options that a machine does not support."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.codegen.measure import MeasureOptions, MeasureOptionsError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"caches": "warm"}, "must be 'hot' or 'cold', got 'warm'"),
        ({"threads": -1}, "must not be negative, got -1"),
        ({"budget": 0.0}, "greater than 0 and at most 120 s, got 0 s"),
        ({"budget": float("nan")}, "at most 120 s, got nan s"),
        ({"budget": 1e9}, "at most 120 s, got 1e\\+09 s"),
    ],
)
def test_invalid_options(options, message) -> None:
    with pytest.raises(MeasureOptionsError, match=message):
        MeasureOptions(**options)


def test_unsupported_options() -> None:
    target = tw.Target("cpu")
    with pytest.raises(MeasureOptionsError, match=r"got 5000 threads, .* compiled for 2"):
        MeasureOptions(threads=5000).plan(2, target)
    with pytest.raises(MeasureOptionsError, match="cannot pin 5000 threads"):
        MeasureOptions(pin=True).plan(5000, target)
    with pytest.raises(MeasureOptionsError, match="apply to the CPU"):
        MeasureOptions(caches="cold").plan(1, tw.Target("simt"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"threads": "2"}, "threads must be an integer, got '2'"),
        ({"threads": True}, "threads must be an integer, got True"),
        ({"budget": "long"}, "budget must be a number of seconds, got 'long'"),
    ],
)
def test_an_option_of_another_type(option, message):
    with pytest.raises(MeasureOptionsError) as caught:
        MeasureOptions(**option)
    assert caught.value.message == message
