"""Element functions of shaders, compared with the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.wgsl.functions import NATIVE
from tilewright.ir.dtype import f16, f32
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.schedules.launch.check_shader import MISSING

from tests.codegen.wgsl import tint
from tests.codegen.wgsl.running import Functions, shader_texts, ulps

SPECIAL = np.array(
    [
        0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30,
        88.7, -88, 89, -104, 3.14159, 1e5, 1e10, 3e38, 100.5, -100.5, 0.3, 0.29, -0.29, 0.41, 1e-5,
        1.0000001, 0.9999999, 3, 5, 7, -3, 22.0, 1.5707964, 16777216.0, 16777217.0, -16777215.0,
    ],
    np.float32,
)  # fmt: skip

BOUNDS = {
    "div": 2.5, "expm1": 9, "erfc": 8, "floordiv": 2, "pow": 128, "rsqrt": 3, "sqrt": 3,
    "add": 0, "sub": 0, "mul": 0,
}  # fmt: skip
"""The largest errors in ulp that are more than those of other functions, or none."""

USUAL = 5
"""The largest error of other functions that are not exact, in ulp."""

OPERATIONS = [
    name
    for name, f in FUNCTIONS.items()
    if f.accepts(f32) and name not in MISSING and f.arity < 3 and f.operands != "part"
]


@pytest.fixture(scope="module")
def functions() -> Functions:
    """Return all functions of singles and of halves."""
    return Functions([(op, dtype, dtype) for op in OPERATIONS for dtype in (f32, f16)])


def _samples() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    normal = rng.normal(size=1000)
    values = np.concatenate(
        [SPECIAL, normal, normal * 30, np.exp(normal * 20), rng.uniform(-1, 1, 1000)]
    ).astype(np.float32)
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    left = np.concatenate([a.ravel(), values])
    right = np.concatenate([b.ravel(), rng.permutation(values)])
    return left, right


def _second(op: str, values: np.ndarray) -> np.ndarray:
    second = FUNCTIONS[op].second
    if second is None:
        return values
    with np.errstate(invalid="ignore"):
        return (np.nan_to_num(values, posinf=300, neginf=-300) % 400 - 200).astype(second.numpy)


def _bound(op: str) -> float:
    row = FUNCTIONS[op]
    return BOUNDS.get(op, USUAL if row.units else 0)


@pytest.mark.parametrize("op", OPERATIONS)
def test_singles(functions, op):
    left, right = _samples()
    actual, expected = functions.both((op, f32, f32), left, _second(op, right))
    if actual.dtype == np.bool_:
        np.testing.assert_array_equal(actual, expected)
        return
    error = ulps(actual, expected)
    if op == "pow":  # NumPy computes a square root, which is NaN; other powers of -inf are infinite
        error[(left == -np.inf) & (right == 0.5)] = 0.0
    worst = int(np.argmax(error))
    assert error[worst] <= _bound(op), (left[worst], right[worst], actual[worst], expected[worst])


@pytest.mark.parametrize("op", ["neg", "abs", "copysign", "round", "floor", "fmod", "trunc", "mod"])
def test_signs_of_zeros(functions, op):
    left, right = _samples()
    actual, expected = functions.both((op, f32, f32), left, right)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("op", OPERATIONS)
def test_halves(functions, op):
    """Halves are computed as singles and rounded once, so they differ by one unit at most."""
    with np.errstate(over="ignore"):
        left, right = (x.astype(np.float16) for x in _samples())
    actual, expected = functions.both((op, f16, f16), left, _second(op, right.astype(np.float32))
                                      if FUNCTIONS[op].second else right)  # fmt: skip
    if actual.dtype == np.bool_:
        np.testing.assert_array_equal(actual, expected)
        return
    a, b = actual.view(np.int16).astype(int), expected.view(np.int16).astype(int)
    equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    exact = not FUNCTIONS[op].units or op in ("add", "sub", "mul")
    distance = np.where(equal, 0, np.abs(a - b))
    if op == "pow":
        distance[(left == -np.inf) & (right == 0.5)] = 0
    assert distance.max() <= (0 if exact else 1)


@pytest.mark.browser
def test_tint_accepts_the_shaders(functions, chromium):
    texts = shader_texts(functions.exe)
    assert len(texts) > len(OPERATIONS)
    assert set(tint.messages(texts, chromium)) == {""}


def test_every_function_is_native_or_has_an_expansion_without_doubles(functions):
    assert set(OPERATIONS) >= NATIVE
