"""Masks of vector accesses: literals, their parts, and their results in machine code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.llvm.masks import constant_mask, is_literal
from tilewright.ir.dtype import bf16, f16, f32, f64, i8, i16, i32, i64, u8
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import Address, Cast, Load, Predicate, Reg, Return, Store
from tilewright.ir.thread.types import POINTER, VectorType
from tilewright.target.target import Target

from tests.codegen.guarded_memory import GuardedMemory
from tests.codegen.kernels import LEVELS, build, load

CAST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
X, Y = Reg("x", POINTER), Reg("y", POINTER)
N, LANE = var("n", lower=0), var("lane", lower=0)


def masked_cast(source, dtype, lanes, mask):
    """Return a function that stores some lanes of converted elements."""
    of, start = VectorType(dtype, lanes), as_expr(0)
    value = Load(VectorType(source, lanes), Address(X, start, source.alignment))
    store = Store(Address(Y, start, dtype.alignment), Cast(of, value), mask=mask)
    return ThreadFunc("cast", (X, Y, N), (store, Return(None)), None, distinct=(X, Y))


def between(first, last, lanes):
    return Predicate((first <= LANE) & (last >= LANE), LANE, lanes)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize(
    ("source", "dtype"),
    [(i32, i16), (i32, u8), (i16, i8), (i64, i32), (i64, u8), (f32, bf16), (f64, i32), (f32, f16)],
    ids=str,
)
def test_a_masked_store_of_converted_elements_writes_its_lanes_only(source, dtype, lanes, level):
    """LLVM 22 stores elements before truncation if one lane of a constant mask is set."""
    target = Target("cpu", features=(level,))
    given = np.arange(1, lanes + 1).astype(source.numpy)
    for first, last in ((0, 0), (1, 1), (lanes - 1, lanes - 1), (0, lanes - 1)):
        function = masked_cast(source, dtype, lanes, between(first, last, lanes))
        engine, address = load("cast", emit_module([function], target), target)
        found = np.full(lanes + 8, 77).astype(dtype.numpy)
        wanted = found.copy()
        wanted[first : last + 1] = given[first : last + 1].astype(dtype.numpy)
        CAST(address)(given.ctypes.data, found.ctypes.data)
        np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
        engine.close()


CHOSEN = """
@prim_func(scheduled=True)
def f(x: Buffer[({n},), {s}], c: Buffer[({n},), {t}], y: Out[({n},), {d}]):
    for i in vectorized(8):
        with block("y"):
            v = spatial({n}, i)
            guard(i < {n})
            y[v] = where(c[v] != {t}(0), {d}(c[v]), {d}(x[v]))
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", [1, 3, 4, 5])
@pytest.mark.parametrize(
    ("source", "chosen", "dtype"),
    [("f16", "u64", "i32"), ("f32", "i64", "i32"), ("u8", "f64", "f32"), ("i32", "i64", "i8")],
)
def test_a_masked_load_reads_no_byte_beyond_the_buffer(source, chosen, dtype, count, level):
    """LLVM 22 loads lanes that are never set and whose values are not used."""
    text = CHOSEN.format(n=count, s=source, t=chosen, d=dtype)
    kernel = build(parse(text).prims[0], level)
    x, c, y = (np.arange(count, dtype=b.dtype.numpy) for b in kernel.source.buffer_params)
    wanted = [x, c, y.copy()]
    run_prim(kernel.source, wanted)
    memory = GuardedMemory()
    for at_end in (False, True):
        found = [memory.copy(a, at_end=at_end) for a in (x, c, y)]
        assert kernel(*found) == 0
        np.testing.assert_array_equal(found[2], wanted[2])
    memory.close()


def masks_of(function, target):
    """Return the masks of the masked stores of a function."""
    text = emit_module([function], target)
    calls = [line for line in text.splitlines() if "call void @llvm.masked.store" in line]
    return [line.split(" x i1> ")[-1].removesuffix(")") for line in calls], text


@pytest.mark.parametrize("level", LEVELS)
def test_a_constant_mask_is_a_literal_and_its_halves_are(level):
    target = Target("cpu", features=(level,))
    lanes = 1024 // (8 if level == "avx512" else 16)
    function = masked_cast(f32, f64, lanes, between(0, 2, lanes))
    masks, _ = masks_of(function, target)
    assert len(masks) > 1
    assert all(is_literal(mask) for mask in masks)
    assert ", ".join(mask.strip("<>") for mask in masks) == constant_mask(
        [k < 3 for k in range(lanes)]
    ).strip("<>")


@pytest.mark.parametrize(("level", "register"), [("avx2", "v"), ("avx512", "k")])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_a_mask_known_at_run_time_is_hidden_from_llvm(lanes, level, register):
    target = Target("cpu", arch="x86_64", features=(level,))
    function = masked_cast(i32, f32, lanes, Predicate(LANE < N, LANE, lanes))
    masks, text = masks_of(function, target)
    assert not is_literal(masks[0])
    assert f'asm "", "={register},0"' in text


def test_targets_without_this_defect_use_masks_as_they_are():
    function = masked_cast(i32, f32, 4, Predicate(LANE < N, LANE, 4))
    for arch in ("aarch64", "riscv64", "wasm32"):
        assert "asm" not in masks_of(function, Target("cpu", arch=arch))[1]


UPDATE = """
@prim_func(scheduled=True)
def f(x: Buffer[(4, 11), f32], w: Buffer[(4,), f32], y: Out[(11,), f32]):
    s = alloc((16,), f32, scope="local")
    for i in vectorized(16):
        with block("s_init"):
            v = spatial(16, i)
            s[v] = 0.0
    for k in range(4):
        for j in vectorized(16):
            with block("s"):
                vj, vk = spatial(16, j), reduce(k)
                guard(j < 11)
                s[vj] += x[vk, vj] * w[vk]
    for l in vectorized(16):
        with block("y"):
            vl = spatial(11, l)
            guard(l < 11)
            y[vl] = s[vl]
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_masked_sum_in_a_register_is_one_instruction(level):
    kernel = build(parse(UPDATE).prims[0], level)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 11), (4,)))
    y = np.zeros(11, np.float32)
    assert kernel(x, w, y) == 0
    np.testing.assert_array_equal(y, w @ x)
    text = assembly(kernel.text, Target("cpu", features=(level,)))
    assert "vshuff64x2" not in text
