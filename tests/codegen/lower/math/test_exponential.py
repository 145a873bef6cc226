"""Exponentials: the ends of the range, and numbers that are not positive by fewer operations."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm import emit_module
from tilewright.codegen.lower import lower_kernel

from tests.codegen.kernels import LEVELS

NEGATIVE = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), {dtype}], y: Out[(n,), {dtype}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = exp(-abs(x[vi]))
"""
GENERAL = NEGATIVE.replace("exp(-abs(x[vi]))", "exp(x[vi])")


def numbers(dtype: str) -> np.ndarray:
    """Return numbers of all magnitudes and signs: also subnormal, infinite, and NaN."""
    if dtype == "f32":
        return np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    rng = np.random.default_rng(4)
    ranges = (-800 * rng.random(1 << 18), -(10.0 ** rng.uniform(-320, 308, 1 << 18)))
    special = (np.inf, -np.inf, np.nan, 0.0, -0.0, -745.13, -745.14, -708.4, -5e-324)
    return np.concatenate([*ranges, np.array(special)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_results_are_those_of_the_general_formula(dtype: str, level: str) -> None:
    target = tw.Target("cpu", features=(level,))
    shorter, general = (
        tw.compile(tw.parse(text.format(dtype=dtype)), target) for text in (NEGATIVE, GENERAL)
    )
    x = numbers(dtype)
    for size in (0, 1, 2, 7, 31, 131, len(x)):
        given = x[len(x) - size :]
        found, expected = shorter(given), general(-np.abs(given))
        missing = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), missing)
        words = {"f32": np.uint32, "f64": np.uint64}[dtype]
        np.testing.assert_array_equal(found.view(words)[~missing], expected.view(words)[~missing])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_formula_is_shorter(dtype: str, level: str) -> None:
    target = tw.Target("cpu", features=(level,))
    counts = []
    for text in (NEGATIVE, GENERAL):
        kernel = lower_kernel(tw.parse(text.format(dtype=dtype)).prims[0], target)
        counts.append(len(emit_module([kernel.function], target).splitlines()))
    assert counts[0] < counts[1]


BELOW_ONE = {"f32": (-103.98, -87.34), "f64": (-745.14, -708.40)}
"""Arguments of exp whose results are subnormal."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_subnormal_results_are_rounded_once(dtype: str, level: str) -> None:
    exp = tw.compile(tw.parse(GENERAL.format(dtype=dtype)), tw.Target("cpu", features=(level,)))
    numpy = np.dtype({"f32": np.float32, "f64": np.float64}[dtype])
    x = np.linspace(*BELOW_ONE[dtype], 4001).astype(numpy)
    found = exp(x)
    expected = np.exp(x.astype(np.longdouble))
    unit = np.longdouble(np.finfo(numpy).smallest_subnormal)
    assert 0 < found.max() < np.finfo(numpy).smallest_normal
    # The size has an error below one unit in its last place before it is scaled and rounded.
    error = np.abs(found.astype(np.longdouble) - expected)
    assert np.all(error <= 0.5 * unit + expected * np.finfo(numpy).eps)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_ends_of_the_range(dtype: str, level: str) -> None:
    exp = tw.compile(tw.parse(GENERAL.format(dtype=dtype)), tw.Target("cpu", features=(level,)))
    numpy = {"f32": np.float32, "f64": np.float64}[dtype]
    largest = {"f32": 88.72283, "f64": 709.782712893384}[dtype]
    above = {"f32": 88.72285, "f64": 709.7827128933841}[dtype]
    x = np.array([largest, above, np.inf, -np.inf, np.nan, -800, 800, 0, -0.0], numpy)
    found = exp(x)
    assert np.isfinite(found[0])
    np.testing.assert_array_equal(found[1:], [np.inf, np.inf, 0, np.nan, 0, np.inf, 1, 1])
