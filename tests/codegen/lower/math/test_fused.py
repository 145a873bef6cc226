"""fma and ldexp are rounded once: the bits of exact references."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DType, bf16, f8_e4m3, f8_e5m2, f16, f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import apply, elementwise
from tests.codegen.kernels import LEVELS
from tests.codegen.lower.math.test_bits import expected
from tests.codegen.lower.math.test_remainder import operands, same_bits

FLOATS = (f16, bf16, f32, f64)


def triples(dtype: DType) -> list[np.ndarray]:
    """Return random bits, products that almost cancel, and ties of two roundings."""
    rng = np.random.default_rng(1)
    x, y = operands(dtype)
    z = np.roll(x, 5)
    with np.errstate(all="ignore"):
        a, b = rng.normal(size=(2, 2000)).astype(dtype.numpy)
        near = (-(a * b)).astype(dtype.numpy)
        tiny = (rng.normal(size=2000) * 1e-30).astype(dtype.numpy)
        odd = rng.integers(1, 1 << dtype.precision, 2000).astype(dtype.numpy)
        half = (np.full(2000, 1.5) * 2.0 ** rng.integers(-3, 4, 2000)).astype(dtype.numpy)
    return [
        np.concatenate(parts)
        for parts in ((x, a, odd, odd), (y, b, half, half), (z, near, tiny, -tiny))
    ]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_and_sums_are_rounded_once(dtype: DType, level: str) -> None:
    arrays = triples(dtype)
    found = apply(elementwise("fma", dtype, level, arity=3), *arrays)
    same = same_bits(found, expected("fma", *arrays))
    assert same.all(), [a[~same][:4] for a in (*arrays, found)]


def test_a_second_rounding_would_be_wrong() -> None:
    one = np.array([bf16.numpy.type(1.0)])
    above, tiny = bf16.numpy.type(1 + 2.0**-7), bf16.numpy.type(2.0**-60)
    product = (one * above, np.array([bf16.numpy.type(1 + 2.0**-1)]))
    found = apply(elementwise("fma", bf16, arity=3), *product, np.array([tiny]))
    single = np.float32(above) * np.float32(1.5)
    assert float(found[0]) == float(FUNCTIONS["fma"].reference(above, product[1][0], tiny))
    assert single + np.float32(tiny) == single


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_powers_of_two_scale_with_one_rounding(dtype: DType, level: str) -> None:
    rng = np.random.default_rng(2)
    x, _ = operands(dtype)
    n = (rng.integers(-2300, 2300, x.size) >> rng.integers(0, 11, x.size)).astype(np.int32)
    n[:4] = [2**31 - 1, -(2**31), 0, 1]
    found = apply(elementwise("ldexp", dtype, level, arity=2), x, n)
    same = same_bits(found, expected("ldexp", x, n))
    assert same.all(), (x[~same][:4], n[~same][:4], found[~same][:4])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [f8_e4m3, f8_e5m2], ids=str)
def test_products_and_sums_of_eight_bits_are_rounded_once(dtype: DType, level: str) -> None:
    """Near a tie of products of large numbers, single precision loses the smallest numbers."""
    every = np.arange(256, dtype=np.uint8)
    x, y, z = (np.random.default_rng(k).permutation(np.tile(every, 24)) for k in range(3))
    large = every[(every & 0x7F) > 0x60]
    tiny = np.resize(every[(every & 0x7F) < 4], x.size)
    arrays = [
        np.concatenate(parts).view(dtype.numpy)
        for parts in ((x, x), (y, np.resize(large, x.size)), (z, tiny))
    ]
    found = apply(elementwise("fma", dtype, level, arity=3), *arrays)
    same = same_bits(found, expected("fma", *arrays))
    assert same.all(), [a[~same][:4] for a in (*arrays, found)]
