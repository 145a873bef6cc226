"""Operations and conversions of integers in shaders, equal to the interpreter bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tilewright.ir.dtype import (
    bf16,
    bool_,
    f8_e4m3,
    f8_e5m2,
    f16,
    f32,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.wgsl import tint
from tests.codegen.wgsl.running import COMPARED, Functions, shader_texts

INTEGERS = (i32, u32, i64, u64, i8, u8, i16, u16, bool_)
TARGETS = (*INTEGERS, f32, f16, bf16)
FLOATS = (f32, f16, bf16)


def _operations(dtype):
    names = [
        name
        for name, f in FUNCTIONS.items()
        if f.accepts(dtype)
        and f.arity < 3
        and f.operands not in ("part", "complex")
        and f.result != "complex"
        and name != "random_bits"
    ]
    return [*names, *COMPARED]


def _cases(dtype):
    ops = [] if dtype in FLOATS else [(op, dtype, dtype) for op in _operations(dtype)]
    wide = (f8_e4m3, f8_e5m2) if dtype in FLOATS else ()
    narrow = [t for t in TARGETS if not (t == bf16 and dtype.bits > 16 and dtype.is_integer)]
    return [*ops, *(("cast", dtype, to) for to in (*narrow, *wide))]


def _integers(dtype):
    rng = np.random.default_rng(3)
    if dtype is bool_:
        return np.array([False, True] * 20)
    info = np.iinfo(dtype.numpy)
    edges = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, info.max, info.max - 1, info.min]
    edges += [info.min + 1, info.max // 2, -1, -2, -3, -5, -7, -31, -32, -64]
    special = np.array([min(max(x, info.min), info.max) for x in edges], dtype.numpy)
    spread = rng.integers(info.min, info.max, 300, dtype=dtype.numpy, endpoint=True)
    small = rng.integers(0 if dtype.kind == "uint" else -100, 100, 300).astype(dtype.numpy)
    return np.concatenate([special, spread, small])


def _floats(dtype):
    rng = np.random.default_rng(5)
    special = [
        0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 127, 128, -128, -129, 255, 256, 65535, 65536,
        32767.9, 2147483647, 2147483648, -2147483648, -2147483904, 4294967295, 4294967296, 9.2e18,
        9.3e18, -9.3e18, 1.8e19, 1.9e19, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-8, 6e-8, 65504,
        65520, 65519, -65520, 5.96e-8, 2.98e-8, 1e-7, 3.3e38, 3.4e38, 448, 464, 465, 57344, 61440,
    ]  # fmt: skip
    values = rng.normal(size=2000) * np.exp(rng.normal(size=2000) * 8)
    with np.errstate(over="ignore"):
        return np.concatenate([special, values]).astype(np.float32).astype(dtype.numpy)


def _both_nan(a, b):
    return np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))


def _pairs(values):
    few = values[:40]
    a, b = np.meshgrid(few, few)
    rest = np.random.default_rng(1).permutation(values)
    return np.concatenate([a.ravel(), values]), np.concatenate([b.ravel(), rest])


@cache
def _compiled(dtype):
    return Functions(_cases(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_operations_and_conversions(dtype):
    cases, functions = _cases(dtype), _compiled(dtype)
    arrays = (_floats(dtype),) if dtype in FLOATS else _pairs(_integers(dtype))
    different = {}
    for case in cases:
        actual, expected = functions.both(case, *arrays)
        same = (actual == expected) | _both_nan(actual, expected)
        if not same.all():
            at = int(np.argmin(same))
            different[case] = [x[at] for x in arrays], actual[at], expected[at]
    assert different == {}


@pytest.mark.browser
def test_tint_accepts_the_shaders(chromium):
    texts = [t for d in (*INTEGERS, *FLOATS) for t in shader_texts(_compiled(d).exe)]
    found = tint.messages(list(dict.fromkeys(texts)), chromium)
    assert set(found) == {""}
