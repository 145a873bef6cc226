"""Indices of extreme values from numbers of 32 bits per lane."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tilewright as tw
from tilewright.ir.interpreter.loops import call_prim

from tests.codegen.kernels import LEVELS

PROGRAM = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), {dtype}], best: Out[(n,), {dtype}], at: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("find"):
                vi, vk = spatial(i), reduce(k)
                with init(): best[vi], at[vi] = {identity}, 9223372036854775807
                best[vi], at[vi] = {name}(x[vi, vk], vk * {step} + vi)
"""

SIZES = (0, 1, 2, 7, 16, 17, 31, 63, 64, 65, 127, 131, 193, 768, 1000, 4099)

INTEGERS = {
    "i8": (-128, 127),
    "u8": (0, 255),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
}

BLOCK = 4096
"""The elements that are numbered together if the indices have the distance ``FAR``."""

FAR = 1 << 18


def rows(name: str, dtype: str, size: int) -> np.ndarray:
    """Return rows with one extreme value, ties, and for floats, NaN, infinities, and zeros."""
    rng, low = np.random.default_rng(size), name == "argmax"
    if dtype[0] in "iu":
        of = {"i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64}[dtype]
        worst = np.iinfo(of).min if low else np.iinfo(of).max
        found = rng.integers(-100 if dtype[0] == "i" else 0, 100, (4, size)).astype(of)
        found[1] //= 50
        found[2] = worst
        return found
    of = {"bf16": bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]
    found = rng.standard_normal((9, size)).astype(of)
    found[1] = np.round(found[1])
    found[2] = -np.inf if low else np.inf
    found[3] = np.nan
    found[4] = np.where(rng.random(size) < 0.5, 0.0, -0.0)
    for row, count in ((5, 1), (6, 3)):
        found[row, rng.integers(0, max(size, 1), count) if size else []] = np.nan
    if size:
        found[7, -1], found[8, -1] = np.nan, np.inf if low else -np.inf
    return found


def program(name: str, dtype: str, step: int = 1) -> tw.Module:
    limits = INTEGERS.get(dtype, ("-inf", "inf"))
    identity = limits[name == "argmin"]
    return tw.parse(PROGRAM.format(name=name, dtype=dtype, identity=identity, step=step))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i64", "i32", "i8", "u8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_are_those_of_numpy(name: str, dtype: str, level: str) -> None:
    run = tw.compile(program(name, dtype), tw.Target("cpu", features=(level,)))
    find = getattr(np, name)
    for size in SIZES:
        x = rows(name, dtype, size)
        best, at = run(x)
        if not size:
            assert (at == np.iinfo(np.int64).max).all()
            continue
        if dtype == "bf16":  # NumPy does not know its NaN
            x, best = x.astype(np.float32), best.astype(np.float32)
        expected = find(x, axis=1)
        np.testing.assert_array_equal(at, expected + np.arange(len(x)))
        values = np.take_along_axis(x, expected[:, None], axis=1)[:, 0]
        np.testing.assert_array_equal(best, values)
        if dtype not in INTEGERS:
            missing = np.isnan(values)
            np.testing.assert_array_equal(np.signbit(best)[~missing], np.signbit(values)[~missing])


ONE_ROW = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], best: Out[(1,), f32], at: Out[(1,), i64]):
    for i in range(1):
        for k in range(n):
            with block("find"):
                vi, vk = spatial(i), reduce(k)
                with init(): best[vi], at[vi] = {identity}, 9223372036854775807
                best[vi], at[vi] = {name}(x[vk], vk)
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equal_values_is_found(name: str, level: str) -> None:
    """The first of two zeros is the result, and the first NaN, also one with a sign."""
    identity = "-inf" if name == "argmax" else "inf"
    module = tw.parse(ONE_ROW.format(name=name, identity=identity))
    run = tw.compile(module, tw.Target("cpu", features=(level,)))
    cases = [np.full(150, np.inf if name == "argmin" else -np.inf, np.float32) for _ in range(6)]
    cases[0][[70, 133]] = -0.0, 0.0
    cases[1][[70, 133]] = 0.0, -0.0
    cases[2][[70, 90, 133]] = 0.0, np.uint32([0xFFC00001]).view(np.float32)[0], np.nan
    cases[3][[5, 70]] = np.nan
    cases[4][[69, 70, 6]] = np.nan, np.nan, 1.0
    for x in cases:
        best, at = run(x)
        assert at == getattr(np, name)(x)
        np.testing.assert_array_equal(best, x[at])
        assert np.isnan(best) or np.signbit(best) == np.signbit(x[at])


SHARED = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, 16), f32], best: InOut[(1,), f32], at: InOut[(1,), i64]):
    for i in range(n):
        for j in vectorized(16):
            with block("find"):
                v, vi, vj = spatial(1, 0), reduce(i), reduce(j)
                best[v], at[v] = argmax(x[vi, vj], vi * {step} + vj)
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("step", "distinct"), [(16, True), (17, True), (15, False), (1, False)])
def test_terms_with_equal_numbers_are_compared(step: int, level: str, *, distinct: bool) -> None:
    module, target = tw.parse(SHARED.format(step=step)), tw.Target("cpu", features=(level,))
    text = str(tw.lower(module, target, stop_after="vectorize_reducers", kernel="f"))
    assert ("most = alloc" in text) is distinct
    x = np.round(np.random.default_rng(step).standard_normal((9, 16))).astype(np.float32)
    best, at = np.float32([-np.inf]), np.int64([np.iinfo(np.int64).max])
    tw.compile(module, target)(x, best, at)
    assert best == x.max()
    assert at == min(i * step + j for i, j in np.argwhere(x == x.max()))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 61])
def test_iterations_with_distant_indices_are_numbered_in_blocks(size: int, level: str) -> None:
    module = program("argmax", "f32", FAR)
    run = tw.compile(module, tw.Target("cpu", features=(level,)))
    x = rows("argmax", "f32", size)
    expected = np.argmax(x, axis=1) * FAR + np.arange(len(x))
    np.testing.assert_array_equal(run(x)[1], expected)


@pytest.mark.parametrize("step", [FAR, 1 << 21, 1 << 40, 0])
def test_indices_that_are_too_distant_are_compared(step: int) -> None:
    module = program("argmax", "f32", step)
    target = tw.Target("cpu", features=(LEVELS[0],))
    text = str(tw.lower(module, target, stop_after="vectorize_reducers", kernel="f"))
    assert ("number" in text) is (step == FAR)
    x = rows("argmax", "f32", 131)
    expected = np.argmax(x, axis=1) * step + np.arange(len(x))
    np.testing.assert_array_equal(tw.compile(module, target)(x)[1], expected)


def test_the_interpreter_finds_the_same_indices() -> None:
    module = program("argmin", "f32", FAR)
    x = rows("argmin", "f32", 131)
    expected = call_prim(module.prim("f"), [x])
    for found, value in zip(tw.compile(module)(x), expected, strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    ("level", "dtype"), [("avx512", "f32"), ("avx512", "i32"), ("avx2", "f32")]
)
def test_lanes_number_nan_if_there_are_registers(level: str, dtype: str) -> None:
    """On AVX2, the lanes would take 12 of 16 registers. Integers have no NaN."""
    target = tw.Target("cpu", features=(level,))
    text = str(
        tw.lower(program("argmax", dtype), target, stop_after="vectorize_reducers", kernel="f")
    )
    assert ("missing = alloc" in text) is (level == "avx512" and dtype == "f32")
    assert ("isnan(best" in text) is (level == "avx2")
