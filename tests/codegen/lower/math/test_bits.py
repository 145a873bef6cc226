"""Functions of bits have the results of their references, on random bits and on edges."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import (
    DType,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import apply, apply_all, elementwise, several
from tests.codegen.kernels import LEVELS
from tests.codegen.lower.math.test_remainder import operands, same_bits

INTEGERS = (i8, i16, i32, i64, u8, u16, u32, u64)


def integers(dtype: DType, seed: int) -> np.ndarray:
    """Return random integers of all sizes, and edges."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 64, 1000, dtype=np.uint64)
    small = bits >> rng.integers(0, 64, 1000).astype(np.uint64)
    edges = np.array([0, 1, 2, 127, 128, 255, 1 << 31, 1 << 63, (1 << 64) - 1], np.uint64)
    return np.concatenate([bits, small, edges, np.roll(edges, seed)]).astype(dtype.numpy)


def expected(name: str, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([FUNCTIONS[name].reference(*row) for row in zip(*arrays, strict=True)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_counts_of_bits(dtype: DType, level: str) -> None:
    names, x = ("popcount", "clz", "ctz"), integers(dtype, 0)
    kernel = several(tuple((name, dtype) for name in names), dtype, level)
    for name, found in zip(names, apply_all(kernel, x), strict=True):
        np.testing.assert_array_equal(found, expected(name, x), name)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_truncated_remainder_of_integers(dtype: DType, level: str) -> None:
    x, y = integers(dtype, 1), integers(dtype, 2)[::-1].copy()
    found = apply(elementwise("fmod", dtype, level, arity=2), x, y)
    np.testing.assert_array_equal(found, expected("fmod", x, y))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("name", ["copysign", "nextafter", "fmod"])
def test_functions_of_the_bits_of_floats(name: str, dtype: DType, level: str) -> None:
    x, y = operands(dtype)
    same = same_bits(apply(elementwise(name, dtype, level, arity=2), x, y), expected(name, x, y))
    assert same.all(), (x[~same][:4], y[~same][:4])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [u32, u64], ids=str)
def test_random_bits_are_those_of_the_reference(dtype: DType, level: str) -> None:
    counter, key = integers(dtype, 3), integers(dtype, 4)
    found = apply(elementwise("random_bits", dtype, level, arity=2), counter, key)
    np.testing.assert_array_equal(found, expected("random_bits", counter, key))


def test_random_bits_are_uniform() -> None:
    count = 1 << 18
    counter, key = np.arange(count, dtype=np.uint32), np.full(count, 7, np.uint32)
    bits = apply(elementwise("random_bits", u32, arity=2), counter, key)
    ones = np.unpackbits(bits.view(np.uint8)).reshape(count, 32).sum(0)
    assert np.abs(ones - count / 2).max() < 5 * np.sqrt(count) / 2
    assert len(np.unique(bits)) > count - 40
