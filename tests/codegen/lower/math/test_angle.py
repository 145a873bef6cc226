"""Angles are reduced exactly over the whole range."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tilewright.codegen.lower.math.angle import HALF_PI, TWO_OVER_PI_WORDS
from tilewright.ir.dtype import DType, f32, f64

from tests.codegen.functions import apply, elementwise
from tests.codegen.kernels import LEVELS

HARDEST = [
    6381956970095103 * 2.0**797,
    5319372648326541 * 2.0**-50,
    2.0**1023,
    1.7976931348623157e308,
]
"""Doubles that are very close to a multiple of pi/2, and the largest ones."""


def test_the_words_are_the_bits_of_two_over_pi() -> None:
    with mpmath.workprec(1400):
        scaled = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** (32 * len(TWO_OVER_PI_WORDS))))
        exact = float(mpmath.pi / 2 - sum(map(mpmath.mpf, HALF_PI)))
    words = [scaled >> (32 * k) & 0xFFFFFFFF for k in range(len(TWO_OVER_PI_WORDS))]
    assert tuple(reversed(words)) == TWO_OVER_PI_WORDS
    assert abs(exact) < 2.0**-160


def angles(dtype: DType) -> np.ndarray:
    """Return large angles, on both sides of the limit, and some that are hard to reduce."""
    rng = np.random.default_rng(2)
    sizes = np.exp2(rng.uniform(28, 127 if dtype is f32 else 1023, 200))
    limit = 2.0**30 * np.array([0.999, 1, 1.001])
    hard = np.array(HARDEST if dtype is f64 else [3.4e38, 1e17, 2.0**127])
    x = np.concatenate([sizes, limit, hard, np.arange(1, 40) * (np.pi / 2) * 2.0**27])
    return np.concatenate([x, -x]).astype(dtype.numpy)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_large_angles(op: str, dtype: DType, level: str) -> None:
    x = angles(dtype)
    for a, b in zip(x.tolist(), apply(elementwise(op, dtype, level), x).tolist(), strict=True):
        with mpmath.workprec(1300):
            exact = getattr(mpmath, op)(mpmath.mpf(a))
            unit = float(np.spacing(dtype.numpy.type(abs(float(exact)))))
            assert abs(mpmath.mpf(b) - exact) <= 2 * unit, (a, b)


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_infinite_angles_have_no_sine(dtype: DType) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e30, 0.0, -0.0], dtype.numpy)
    found = apply(elementwise("sin", dtype), x)
    assert np.isnan(found[:3]).all()
    assert np.isfinite(found[3:]).all()
    np.testing.assert_array_equal(np.signbit(found[4:]), [False, True])
