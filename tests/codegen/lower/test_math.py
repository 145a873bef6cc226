"""Elementwise functions: error bounds over samples and exact special values, on both levels."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tilewright.ir.dtype import bf16, f16, f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import (
    EXACT,
    SPECIAL,
    UNARY,
    apply,
    elementwise,
    error_in_ulps,
    reference,
    sample,
)
from tests.codegen.kernels import LEVELS


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", UNARY)
def test_single_precision_within_two_ulp(op: str, level: str, fuzz_factor: int) -> None:
    x = np.concatenate([sample(7, 20_011 // fuzz_factor), SPECIAL])
    error = error_in_ulps(apply(elementwise(op, f32, level), x), reference(op, x))
    assert error.max() <= FUNCTIONS[op].ulps(f32), x[np.argmax(error)]


@pytest.mark.parametrize("op", ["exp", "sigmoid", "tanh", "erf", "log", "log1p", "expm1"])
def test_dense_where_it_matters(op: str) -> None:
    x = np.linspace(-12, 12, 400_001, dtype=np.float32)
    assert error_in_ulps(apply(elementwise(op, f32), x), reference(op, x)).max() <= 2


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("center", [0.0, -1.98, -16.6, -17.3, 17.3, -87.3, -103.9, 40.0])
def test_sigmoid_where_its_sum_has_the_largest_errors(center: float, level: str) -> None:
    """Near 0, where 1 or e**-x is the last bit of the sum, and where the result is subnormal."""
    x = np.linspace(center - 0.4, center + 0.4, 200_003, dtype=np.float32)
    error = error_in_ulps(apply(elementwise("sigmoid", f32, level), x), reference("sigmoid", x))
    assert error.max() <= 2, x[np.argmax(error)]


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_angles_near_multiples_of_half_pi(op: str) -> None:
    x = (np.arange(-6366, 6367) * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(1e9))])
    x = x[np.abs(x) <= 1e4]
    assert error_in_ulps(apply(elementwise(op, f32), x), reference(op, x)).max() <= 2


def exact(op: str, *operands: float) -> mpmath.mpf:
    """Return the value of a function with 160 bits; angles are reduced with 1,300."""
    with mpmath.workprec(1300 if op in ("sin", "cos", "tan") else 160):
        return EXACT[op](*(mpmath.mpf(v) for v in operands))


def doubles(op: str, count: int) -> np.ndarray:
    """Return random bits and numbers of all relevant sizes in the domain of a function."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    with np.errstate(invalid="ignore"):  # signaling NaN
        bits = bits[np.isfinite(bits)]
    tiny = rng.normal(size=count) * 10.0 ** rng.uniform(-20, 0, count)
    extreme = [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 2.2e-308, 1e17, -1e17, 0.625, 2.0**30]
    x = np.concatenate([bits, rng.uniform(-750, 750, count), rng.normal(size=count), tiny, extreme])
    match op:
        case "log" | "log2" | "log10" | "sqrt" | "rsqrt":
            x = np.abs(x)
            return np.concatenate([x[x > 0], 1 + tiny[:count] * 1e-3])
        case "asin" | "acos" | "atanh" | "erfinv":
            near = np.concatenate([rng.uniform(-1, 1, 2 * count), 1 - np.abs(tiny)])
            return np.concatenate([x, near, -near])[np.abs(np.concatenate([x, near, -near])) < 1]
        case "acosh":
            return np.concatenate([x[x > 1], 1 + np.abs(tiny)])
        case "erfc":
            return np.concatenate([x[np.abs(x) < 40], rng.uniform(-1, 28, count)])
        case "lgamma" | "digamma":
            near = [np.abs(rng.normal(size=count)) + y for y in (0, 0.5, 1, 4, 8)]
            return np.concatenate([x[x > 0], 1 + tiny, 2 + tiny, *near])
        case "log1p":
            return np.concatenate([x[x > -1], 10.0 ** rng.uniform(-16, -1, count) - 1])
        case _:
            return x


def worst_of_doubles(op: str, found: np.ndarray, *operands: np.ndarray) -> tuple[float, object]:
    """Return the largest error in ulp and its operands; infinities have to be equal."""
    worst: tuple[float, object] = (0.0, None)
    for value, *at in zip(found.tolist(), *(a.tolist() for a in operands), strict=True):
        true = exact(op, *at)
        rounded = float(true)
        if not np.isfinite(rounded) or not np.isfinite(value):
            assert value == rounded, (op, at, value, rounded)
            continue
        unit = max(float(np.spacing(abs(rounded))), 5e-324)
        error = float(abs(mpmath.mpf(value) - true) / mpmath.mpf(unit))
        worst = max(worst, (error, at), key=lambda one: one[0])
    return worst


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", UNARY)
def test_double_precision_within_its_bound(op: str, level: str, fuzz_factor: int) -> None:
    x = doubles(op, 150 * fuzz_factor)
    error, at = worst_of_doubles(op, apply(elementwise(op, f64, level), x), x)
    assert error <= FUNCTIONS[op].ulps(f64), at


@pytest.mark.parametrize("op", UNARY)
def test_double_precision_special_values(op: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e308, -1e308, 1.0, -1.0])
    found = apply(elementwise(op, f64), x)
    with np.errstate(all="ignore"):
        expected = np.array([FUNCTIONS[op].reference(v) for v in x])
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


def test_powers_of_doubles_within_their_bound(fuzz_factor: int) -> None:
    rng, n = np.random.default_rng(5), 150 * fuzz_factor
    bases = [
        np.exp(rng.uniform(-700, 700, n)),
        rng.uniform(0.5, 2, n),
        1 + rng.normal(size=n) / 1e8,
    ]
    logs = [rng.uniform(-745, 709.7, n) for _ in bases]
    x = np.concatenate([*bases, rng.uniform(0, 1e-309, n), [2.0, 2.0, 0.5, 10.0]])
    y = np.concatenate([*(a / np.log(b) for a, b in zip(logs, bases, strict=True)),
                        rng.uniform(-1, 1, n), [1024, -1074, 1074, 308]])  # fmt: skip
    error, at = worst_of_doubles("pow", apply(elementwise("pow", f64, arity=2), x, y), x, y)
    assert error <= FUNCTIONS["pow"].ulps(f64), at


def test_arctangents_of_doubles_within_their_bound(fuzz_factor: int) -> None:
    rng, n = np.random.default_rng(5), 300 * fuzz_factor
    y, x = rng.standard_cauchy((2, n))
    error, at = worst_of_doubles("atan2", apply(elementwise("atan2", f64, arity=2), y, x), y, x)
    assert error <= FUNCTIONS["atan2"].ulps(f64), at


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
