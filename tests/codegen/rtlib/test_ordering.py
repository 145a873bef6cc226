"""Sorting in the run-time library: keys of all dtypes, interpreted and compiled."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import ordering
from tilewright.codegen.rtlib.language import Ptr
from tilewright.ir.dtype import from_numpy
from tilewright.ir.graph.sorting import find_nonzero, find_unique, sort_rows

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, *([ctypes.c_int64] * 3))
DTYPES = [
    "float16", "float32", "float64", ml_dtypes.bfloat16, "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool",
]  # fmt: skip


def run(function: Any, arrays: list[np.ndarray], word: int = 0, *, native: bool = True) -> int:
    """Call a function with the descriptors of arrays and one attribute."""
    kept = []
    block = np.zeros(4 * len(arrays) + 4, np.int64)
    for k, array in enumerate(arrays):
        dims = np.array(array.shape, np.int64)
        kept.append(dims)
        dtype = from_numpy(array.dtype)
        words = [array.ctypes.data, array.ndim, dims.ctypes.data, dtype.dlpack * 256 + dtype.bits]
        block[4 * k : 4 * k + 4] = words
    attribute = np.array([word], np.int64)
    block[-4] = attribute.ctypes.data
    if native:
        return FUNCTION(rtlib_address(function))(0, block.ctypes.data, len(arrays))
    return function(Ptr(0), Ptr(block.ctypes.data), len(arrays))


def sort(x: np.ndarray, *, descending: bool, native: bool = True) -> tuple[Any, Any]:
    values, positions = np.zeros_like(x), np.zeros(x.shape, np.int64)
    memory = np.zeros(3 * x.shape[-1] + 1, np.int64)
    memory[-1] = 77
    arrays = [x, values, positions, memory]
    assert run(ordering.sort_rows, arrays, int(descending), native=native) == 0
    assert memory[-1] == 77
    return values, positions


def special(dtype: Any, count: int = 40) -> np.ndarray:
    """Random bits of a dtype, with ties, the limits, infinities, NaN, and both zeros."""
    rng = np.random.default_rng(3)
    size = np.dtype(dtype).itemsize
    if np.dtype(dtype) == bool:
        return rng.random(count) < 0.5
    bits = rng.integers(0, 256, count * size, np.uint8).view(dtype)
    few = np.array([0, 1, 2, 1, 0, 2], dtype)
    edges = [0, 1 << (8 * size - 1), (1 << (8 * size)) - 1, (1 << (8 * size - 1)) - 1]
    limits = np.array(edges, np.uint64).astype(f"uint{8 * size}").view(dtype)
    return np.concatenate([bits, few, limits])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_sorted_in_the_order_of_the_reference(dtype: Any, descending: bool) -> None:
    x = special(dtype).reshape(2, -1)
    with np.errstate(invalid="ignore"):
        expected = sort_rows(x, descending=descending)
    for native in (True, False):
        _, positions = sort(x, descending=descending, native=native)
        assert np.array_equal(positions, expected[1])


@given(st.lists(st.integers(-4, 4), max_size=30), st.booleans())
def test_sorting_is_stable(drawn: list[int], descending: bool) -> None:
    x = np.array(drawn, np.int64)
    values, positions = sort(x, descending=descending)
    order = sorted(range(len(x)), key=lambda k: -x[k] if descending else x[k])
    assert positions.tolist() == order
    assert values.tolist() == x[order].tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("native", [True, False])
def test_distinct_elements(dtype: Any, native: bool) -> None:
    x = special(dtype)
    n = len(x)
    found = [np.zeros(n, x.dtype), *(np.zeros(n, np.int64) for _ in range(3))]
    count, memory = np.zeros(1, np.int64), np.zeros(3 * n, np.int64)
    arrays = [x, *found, count, memory]
    assert run(ordering.find_unique, arrays, native=native) == 0
    with np.errstate(invalid="ignore"):
        expected = find_unique(x)
    k = int(count[0])
    assert k == expected[4][0]
    assert np.array_equal(found[1][:k], expected[1][:k])
    assert np.array_equal(found[2], expected[2])
    assert np.array_equal(found[3][:k], expected[3][:k])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("native", [True, False])
def test_nonzero_elements(dtype: Any, native: bool) -> None:
    x = special(dtype, 38 if dtype != "bool" else 40).reshape(2, 2, -1)
    indices, count = np.zeros((x.size, 3), np.int64), np.zeros(1, np.int64)
    assert run(ordering.find_nonzero, [x, indices, count], native=native) == 0
    expected = find_nonzero(x)
    assert count[0] == expected[1][0]
    assert np.array_equal(indices[: count[0]], expected[0][: count[0]])


@pytest.mark.parametrize("function", ["sort_rows", "find_unique", "find_nonzero"])
def test_elements_that_cannot_be_compared(function: str) -> None:
    x = np.zeros(2, ml_dtypes.float8_e5m2)
    arrays = [x, x, *(np.zeros(6, np.int64) for _ in range(5))]
    assert run(getattr(ordering, function), arrays) == ordering.UNSUPPORTED_DTYPE
