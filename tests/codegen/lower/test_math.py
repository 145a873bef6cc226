"""Elementwise functions: error bounds over samples and exact special values, on both levels."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tilewright.ir.dtype import bf16, f16, f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import (
    SPECIAL,
    UNARY,
    apply,
    elementwise,
    error_in_ulps,
    reference,
    sample,
)
from tests.codegen.kernels import LEVELS

EXACT = tuple(op for op in UNARY if FUNCTIONS[op].units == 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", UNARY)
def test_single_precision_within_two_ulp(op: str, level: str, fuzz_factor: int) -> None:
    x = np.concatenate([sample(7, 20_011 // fuzz_factor), SPECIAL])
    error = error_in_ulps(apply(elementwise(op, f32, level), x), reference(op, x))
    if op in ("sin", "cos"):
        error = np.where(np.abs(x) <= 1e4, error, 0)
    assert error.max() <= (0.5 if op in EXACT else 2), x[np.argmax(error)]


@pytest.mark.parametrize("op", ["exp", "sigmoid", "tanh", "erf", "log", "log1p", "expm1"])
def test_dense_where_it_matters(op: str) -> None:
    x = np.linspace(-12, 12, 400_001, dtype=np.float32)
    assert error_in_ulps(apply(elementwise(op, f32), x), reference(op, x)).max() <= 2


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_angles_near_multiples_of_half_pi(op: str) -> None:
    x = (np.arange(-6366, 6367) * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(1e9))])
    x = x[np.abs(x) <= 1e4]
    assert error_in_ulps(apply(elementwise(op, f32), x), reference(op, x)).max() <= 2


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_large_angles_stay_in_range(op: str) -> None:
    y = apply(elementwise(op, f32), np.array([1e10, 1e20, 3e38, -3e38], np.float32))
    assert (np.abs(y) <= 1).all()


def exact(op: str, x: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        z = mpmath.mpf(x)
        match op:
            case "sigmoid":
                return 1 / (1 + mpmath.exp(-z))
            case "rsqrt":
                return 1 / mpmath.sqrt(z)
            case _:
                return getattr(mpmath, op)(z)


RANGES = {
    "exp": (-700, 700),
    "expm1": (-30, 700),
    "log": (1e-300, 1e300),
    "log1p": (-0.999, 30),
    "sqrt": (0, 1e30),
    "rsqrt": (1e-30, 1e30),
    "sin": (-1e4, 1e4),
    "cos": (-1e4, 1e4),
}


@pytest.mark.parametrize("op", UNARY)
def test_double_precision_within_three_ulp(op: str) -> None:
    rng = np.random.default_rng(3)
    low, high = RANGES.get(op, (-8, 8))
    x = np.concatenate([rng.uniform(low, high, 150), rng.uniform(max(low, -1), min(high, 1), 150)])
    if op == "log":
        x = np.concatenate([np.exp(rng.uniform(-600, 600, 200)), rng.uniform(0.5, 2, 200)])
    y = apply(elementwise(op, f64), x)
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        true = exact(op, a)
        unit = float(np.spacing(abs(float(true)))) or 5e-324
        assert abs(mpmath.mpf(b) - true) <= 3 * unit, (op, a, b, true)


@pytest.mark.parametrize("op", UNARY)
def test_double_precision_special_values(op: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e308, -1e308, 1.0, -1.0])
    if op in ("sin", "cos"):
        x = x[~(np.abs(x) == 1e308)]
    found, expected = apply(elementwise(op, f64), x), reference(op, x)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@pytest.mark.parametrize("op", ["exp", "tanh", "log", "rsqrt"])
def test_half_precision_is_rounded_once(op: str, dtype) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    found = apply(elementwise(op, dtype), x).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = reference(op, x).astype(np.float32).astype(dtype.numpy).astype(np.float64)
        off = ~((found == expected) | (np.isnan(found) & np.isnan(expected)))
        near = np.abs(found - expected) <= np.abs(expected) * 2.0 ** -(10 if dtype is f16 else 7)
    assert off.mean() < 1e-3
    assert (near | ~off).all()


@pytest.mark.parametrize("level", LEVELS)
def test_power(level: str) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.lognormal(0, 3, 20_000), SPECIAL, SPECIAL, -rng.lognormal(0, 1, 2000)])
    y = np.concatenate(
        [
            rng.normal(0, 8, 20_000),
            rng.permutation(SPECIAL),
            SPECIAL,
            rng.integers(-9, 9, 2000),
        ]
    )
    x, y = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    found = apply(elementwise("pow", f32, level, arity=2), x, y)
    error = error_in_ulps(found, expected)
    assert error.max() <= 2, (x[error.argmax()], y[error.argmax()])


def test_power_of_all_special_pairs() -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, np.append(SPECIAL, [2, 3, -2, -3])))
    x, y = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    error = error_in_ulps(apply(elementwise("pow", f32, arity=2), x, y), expected)
    assert error.max() <= 2, (x[error.argmax()], y[error.argmax()])


def test_arctangent_of_all_quadrants() -> None:
    rng = np.random.default_rng(6)
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    y, x = np.concatenate([pairs, rng.standard_cauchy((2, 20_000))], axis=1).astype(np.float32)
    expected = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    found = apply(elementwise("atan2", f32, arity=2), y, x)
    error = error_in_ulps(found, expected)
    assert error.max() <= 1, (y[error.argmax()], x[error.argmax()])


@pytest.mark.parametrize("op", ["floordiv", "mod"])
def test_floored_division_of_floats(op: str) -> None:
    rng = np.random.default_rng(7)
    pairs = np.array(np.meshgrid(SPECIAL[:9], SPECIAL[:9])).reshape(2, -1)
    x, y = np.concatenate([pairs, rng.normal(0, 30, (2, 5000))], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = (np.floor_divide if op == "floordiv" else np.mod)(x, y)
    found = apply(elementwise(op, f32, arity=2), x, y)
    np.testing.assert_array_equal(found, expected)
