"""Calls of library functions by their references."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.graph.libraries import library_function
from tilewright.ir.interpreter.libraries import LibraryReferenceError, run_library, store_results


def test_an_exception_of_a_reference() -> None:
    def fail(_: object) -> None:
        raise KeyError("weights")

    library_function("test.fails", fail)
    with pytest.raises(LibraryReferenceError, match="the reference raised KeyError: 'weights'"):
        run_library("test.fails", [np.ones(2)], [np.ones(2)], ())


def test_a_reference_cannot_change_its_operand() -> None:
    library_function("test.in_place", lambda x: np.multiply(x, 2, out=x))
    x = np.ones(2)
    with pytest.raises(LibraryReferenceError, match="output array is read-only"):
        run_library("test.in_place", [x], [np.ones(2)], ())
    assert x.tolist() == [1.0, 1.0]


def test_the_workspace_of_a_launch_is_not_written() -> None:
    x, workspace = np.array([3.0, 1.0]), np.full(48, 7, np.uint8)
    values, positions = np.zeros(2), np.zeros(2, np.int64)
    run_library("std.sort", [x], [values, positions, workspace], (), launched=True)
    assert (values.tolist(), positions.tolist()) == ([1.0, 3.0], [1, 0])
    assert np.all(workspace == 7)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((np.ones(2), np.ones(2)), "expected 1 results, got 2"),
        (np.ones(3), r"result 0: expected shape \(2,\)"),
        (np.ones(2, np.complex64), "and dtype float32, got"),
    ],
)
def test_results_that_do_not_match(found: object, message: str) -> None:
    with pytest.raises(LibraryReferenceError, match=message):
        store_results("test.f", found, [np.ones(2, np.float32)])
