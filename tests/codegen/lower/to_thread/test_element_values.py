"""Element semantics equal NumPy for all operations, dtypes, and edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u32
from tilewright.ir.graph.operators.casting import convert
from tilewright.ir.interpreter.elements import cast_to

from tests.codegen.functions import apply, apply_all, elementwise, several
from tests.codegen.kernels import BEST, LEVELS

LESS = LEVELS[:-1]
INTEGERS = [t for t in DTYPES.values() if t.is_integer]
FLOATS = [f16, bf16, f32, f64]
BY_NAME = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def edges(dtype) -> np.ndarray:
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_complex:
        return np.stack(all_pairs(dtype.part), axis=-1).view(dtype.numpy)[:, 0]
    if dtype.is_float:
        numbers = [0.0, -0.0, 1, -1, 0.1, 2.5, -3.75, 1e-3, 300, 65504, np.inf, -np.inf, np.nan]
        return np.array(numbers).astype(dtype.numpy)
    low, high, wide = dtype.lowest, dtype.highest, dtype.register.numpy
    rng = np.random.default_rng(1)
    some = rng.integers(low, high, 12, dtype=wide, endpoint=True)
    near = [v for v in (-3, -2, -1, 0, 1, 2, 3, 7, 8, 31, 63) if low <= v <= high]
    return np.concatenate([some, np.array([low, high, *near], wide)]).astype(dtype.numpy)


def as_doubles(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in double precision, complex ones as pairs."""
    if np.iscomplexobj(numbers):
        return numbers.astype(np.complex128).view(np.float64)
    return numbers.astype(np.float64)


def all_pairs(dtype) -> tuple[np.ndarray, np.ndarray]:
    values = edges(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


@pytest.mark.parametrize(
    ("dtype", "level"),
    [*((t, BEST) for t in INTEGERS), *((t, x) for t in (i32, u8) for x in LESS)],
    ids=str,
)
def test_integers(dtype, level: str) -> None:
    x, y = all_pairs(dtype)
    kernel = several(tuple((op, dtype) for op in BY_NAME), dtype, level, 2)
    for op, found in zip(BY_NAME, apply_all(kernel, x, y), strict=True):
        with np.errstate(all="ignore"):
            wide = [v.astype(dtype.register.numpy) for v in (x, y)]
            expected = BY_NAME[op](*wide)
            expected = expected if expected.dtype == np.bool_ else convert(expected, dtype.numpy)
        np.testing.assert_array_equal(found.astype(np.int64), expected.astype(np.int64), op)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype) -> None:
    x, y = all_pairs(dtype)
    ops = ("add", "sub", "mul", "div", "min", "max", "lt", "le", "eq", "ne")
    kernel = several(tuple((op, dtype) for op in ops), dtype, BEST, 2)
    for op, found in zip(ops, apply_all(kernel, x, y), strict=True):
        with np.errstate(all="ignore"):
            expected = np.divide(x, y) if op == "div" else BY_NAME[op](x, y)
        wide = (found.astype(np.float64), expected.astype(np.float64))
        np.testing.assert_array_equal(*wide, op)


def test_booleans() -> None:
    x, y = all_pairs(bool_)
    ops = ("and", "or", "xor", "add", "mul", "min", "max", "eq", "ne")
    kernel = several(tuple((op, bool_) for op in ops), bool_, BEST, 2)
    for op, found in zip(ops, apply_all(kernel, x, y), strict=True):
        np.testing.assert_array_equal(found, BY_NAME[op](x, y), op)


@pytest.mark.parametrize("dtype", [i8, i32, i64, u8, u32], ids=str)
def test_integer_division_truncates_and_is_total(dtype) -> None:
    x, y = all_pairs(dtype)
    found = apply(elementwise("div", dtype, arity=2), x, y)
    low, width = int(np.iinfo(dtype.numpy).min), 1 << dtype.bits
    for a, b, q in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        exact = 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        assert q == (exact - low) % width + low


@pytest.mark.parametrize("dtype", [i8, i16, i32, i64, u8], ids=str)
def test_integer_powers_wrap(dtype) -> None:
    x, y = all_pairs(dtype)
    found = apply(elementwise("pow", dtype, arity=2), x, y)
    low, width = int(np.iinfo(dtype.numpy).min), 1 << dtype.bits
    for a, b, p in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        exact = pow(a, b, width) if b >= 0 else 0
        assert p == (exact - low) % width + low


@pytest.mark.parametrize(
    ("source", "level"),
    [*((t, BEST) for t in DTYPES.values()), *((t, x) for t in (f16, f32, f64, i64) for x in LESS)],
    ids=str,
)
def test_conversions(source, level: str) -> None:
    x = edges(source)
    targets = tuple(t for t in DTYPES.values() if t.is_complex or not source.is_complex)
    with np.errstate(all="ignore"):
        if source.is_float:
            more = np.array([-129.5, 127.5, 255.9, 2e9, -3e9, 1e19]).astype(x.dtype)
            x = np.concatenate([x, more])
        kernel = several(tuple(("cast", t) for t in targets), source, level)
        for target, found in zip(targets, apply_all(kernel, x), strict=True):
            convert = cast_to(target, target.numpy)
            expected = np.array([convert(v) for v in x]).astype(target.numpy)
            np.testing.assert_array_equal(as_doubles(found), as_doubles(expected), str(target))


def test_doubles_are_rounded_to_half_once() -> None:
    rng = np.random.default_rng(2)
    base = rng.normal(0, 100, 4000).astype(np.float16).astype(np.float64)
    step = np.spacing(base.astype(np.float16)).astype(np.float64) / 2
    x = np.concatenate([base + step, base + step * (1 + 1e-12), base + step * (1 - 1e-12)])
    found = apply(several((("cast", f16),), f64, BEST), x)
    np.testing.assert_array_equal(found, x.astype(np.float16))


@pytest.mark.parametrize("dtype", [f32, f64, i32, i8], ids=str)
def test_signs(dtype) -> None:
    x = edges(dtype)
    functions = {"neg": np.negative, "abs": np.abs, "sign": np.sign}
    kernel = several(tuple((op, dtype) for op in functions), dtype, BEST)
    for op, found in zip(functions, apply_all(kernel, x), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, functions[op](x), op)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rounding_and_tests(dtype) -> None:
    x = np.concatenate([edges(dtype), np.array([0.5, 1.5, 2.5, -0.5, -1.5]).astype(dtype.numpy)])
    ops = ("floor", "ceil", "round", "trunc", "isnan", "isinf")
    kernel = several(tuple((op, dtype) for op in ops), dtype, BEST)
    for op, found in zip(ops, apply_all(kernel, x), strict=True):
        expected = np.rint(x) if op == "round" else getattr(np, op)(x)
        wide = (found.astype(np.float64), expected.astype(np.float64))
        np.testing.assert_array_equal(*wide, op)


@pytest.mark.parametrize("dtype", [i32, u8], ids=str)
def test_complement(dtype) -> None:
    x = edges(dtype)
    np.testing.assert_array_equal(apply(elementwise("bitnot", dtype), x), ~x)
