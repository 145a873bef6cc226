"""Indices of extreme values from numbers of 32 bits per lane."""

from __future__ import annotations

import numpy as np
import pytest

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

SIZES = (0, 1, 2, 7, 31, 63, 64, 65, 127, 131, 193, 4099)

BLOCK = 4096
"""The elements that are numbered together if the indices have the distance ``FAR``."""

FAR = 1 << 18


def rows(name: str, dtype: str, size: int) -> np.ndarray:
    """Return rows with one extreme value, ties, and for floats, NaN, infinities, and zeros."""
    rng, low = np.random.default_rng(size), name == "argmax"
    if dtype.startswith("i"):
        of = {"i8": np.int8, "i32": np.int32}[dtype]
        worst = np.iinfo(of).min if low else np.iinfo(of).max
        found = rng.integers(-100, 100, (4, size)).astype(of)
        found[1] //= 50
        found[2] = worst
        return found
    of = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]
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
    limits = {"i8": (-128, 127), "i32": (-(2**31), 2**31 - 1)}.get(dtype, ("-inf", "inf"))
    identity = limits[name == "argmin"]
    return tw.parse(PROGRAM.format(name=name, dtype=dtype, identity=identity, step=step))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32", "i8"])
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
        expected = find(x, axis=1)
        np.testing.assert_array_equal(at, expected + np.arange(len(x)))
        values = np.take_along_axis(x, expected[:, None], axis=1)[:, 0]
        np.testing.assert_array_equal(best, values)
        if x.dtype.kind == "f":
            missing = np.isnan(values)
            np.testing.assert_array_equal(np.signbit(best)[~missing], np.signbit(values)[~missing])


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
