"""References of complex functions equal NumPy, but for quotients that NumPy loses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.ir.loop.complex_references import (
    angle,
    divide,
    exponential,
    magnitude,
    multiply,
    paired,
)

EDGES = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)
DTYPES = (np.complex64, np.complex128)


def edges(dtype):
    """Return two arrays with all pairs of numbers whose parts are edges."""
    parts = np.array(list(itertools.product(EDGES, repeat=4)), dtype(0).real.dtype).T.copy()
    return paired(parts[0], parts[1]), paired(parts[2], parts[3])


def assert_same(have, want):
    for a, b in ((have.real, want.real), (have.imag, want.imag)):
        np.testing.assert_allclose(a, b, rtol=3e-7)
        number = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_nan_and_signed_zeros_are_those_of_numpy(dtype):
    x, y = edges(dtype)
    with np.errstate(all="ignore"):
        assert_same(divide(x, y), x / y)
        assert_same(multiply(x, y), np.array([a * b for a, b in zip(x, y, strict=True)]))
        for ours, numpy in ((exponential, np.exp), (angle, np.angle), (magnitude, np.abs)):
            assert_same(ours(x), numpy(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_of_usual_size_have_the_bits_of_numpy(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((2, 999)) + 1j * rng.standard_normal((2, 999))).astype(dtype)
    np.testing.assert_array_equal(divide(x, y), x / y)
    assert divide(x[0], y[0]) == divide(x, y)[0]


def test_quotients_neither_overflow_nor_vanish_needlessly():
    tiny = np.float64(5e-324)
    assert divide(np.complex128(1e308 + 1e308j), np.complex128(2 + 2j)) == 5e307
    assert divide(paired(tiny, tiny), paired(tiny, tiny)) == 1
    assert divide(np.complex64(1e38 + 1e38j), np.complex64(3e38 + 3e38j)) == np.float32(1 / 3)
    with np.errstate(all="ignore"):
        assert not np.isfinite(np.complex64(1e-40 + 1e-40j) / np.complex64(1e-40 + 1e-40j))
