"""Kernels with 32-bit and with 64-bit indices: results below and beyond 2**31, and the choice."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import SizeError
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.nvidia.ptxas import assemble
from tilewright.codegen.simt import NO_CHECKS, run_kernel
from tilewright.ir.script import parse
from tilewright.ir.thread.function import LONG
from tilewright.ir.thread.index_width import largest
from tilewright.ir.thread.text import to_text
from tilewright.schedules import Schedule
from tilewright.schedules.rules import apply_defaults
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, Kernel, load

LIMIT = 2**31
SIMT = Target("simt")
SHIFTED = """
@prim_func(scheduled=True)
def f(a: Int, y: Out[(16,), f64]):
    for i in vectorized(16):
        with block("y"):
            vi = spatial(i)
            y[vi] = index(vi + a, f64)
"""
SCALED = """
n = symbols("n", lower=0)
@prim_func
def f(a: Int, x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(condition(vi * a % 7 <= 3), index(vi * a // 1048576, f32), x[vi])
"""
THREADS = """
n = symbols("n", lower=0)
@prim_func(scheduled=True)
def f(a: Int, x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for b in thread(ceildiv(n, 32), "blockIdx.x"):
        for t in thread(32, "threadIdx.x"):
            if b * 32 + t < n:
                with block("y"):
                    vi = spatial(n, b * 32 + t)
                    y[vi] = where(condition(vi * a % 7 <= 3), index(vi * a // 1048576, f32), x[vi])
"""
SUMS = """
n, m = symbols("n m", lower=1)
@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    for b in thread(ceildiv(n, 64), "blockIdx.x"):
        for t in thread(64, "threadIdx.x"):
            if b * 64 + t < n:
                for k in range(m):
                    with block("s"):
                        vi, vk = spatial(n, b * 64 + t), reduce(m, k)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
"""


def scheduled(text, target):
    """Return the kernel of a program with the default schedule."""
    schedule = Schedule(parse(text), target)
    apply_defaults(schedule)
    return schedule.module.prims[0]


def kernels(text, level):
    """Return the two versions of a kernel for a CPU, loaded."""
    target = Target("cpu", features=(level,))
    source = scheduled(text, target)
    lowered = lower_kernel(source, target)
    made = []
    for function in lowered.function.versions:
        code = emit_module([function], target)
        engine, address = load(function.name, code, target)
        made.append(Kernel(source, lowered, code, target, engine, address))
    return lowered.function.width, made


def expected(x, a):
    terms = np.arange(len(x)) * a
    return np.where(terms % 7 <= 3, (terms // 2**20).astype(np.float32), x)


@pytest.mark.parametrize("level", LEVELS)
def test_the_boundary_of_a_version_is_exact(level):
    """The narrow version is right at the last legal value, and wrong at the next one."""
    width, (wide, narrow) = kernels(SHIFTED, level)
    (limit,) = width.limits
    (a,) = wide.artifact.symbols
    for value in (LIMIT - 16, -LIMIT + 1):
        assert largest(limit, {a: value}) < LIMIT or value < 0
        for kernel in (wide, narrow):
            y = np.zeros(16)
            assert kernel(y, scalars={a: value}) == 0
            np.testing.assert_array_equal(y, np.arange(16) + value)
    beyond = LIMIT - 15
    assert largest(limit, {a: beyond}) == LIMIT
    y, z = np.zeros(16), np.zeros(16)
    wide(y, scalars={a: beyond})
    narrow(z, scalars={a: beyond})
    np.testing.assert_array_equal(y, np.arange(16) + beyond)
    assert z[15] != y[15]


@pytest.mark.parametrize("target", [*(Target("cpu", features=(x,)) for x in LEVELS), SIMT])
def test_a_call_is_right_on_both_sides_of_the_limit(target):
    exe = tw.compile(parse(SHIFTED if target.kind == "cpu" else THREADS), target=target)
    if target.kind == "cpu":
        for a in (0, -7, LIMIT - 16, LIMIT - 15, LIMIT, -LIMIT, 2**40, -(2**58), 2**59):
            np.testing.assert_array_equal(exe(a), (np.arange(16) + a).astype(float))
        with pytest.raises(SizeError, match="overflow"):
            exe(-(2**61))
        return
    for n in (0, 1, 33):
        x = np.full(n, -1.0, np.float32)
        for a in (0, 3, -5, 2**26, LIMIT - 1, LIMIT, 2**33 + 1):
            np.testing.assert_array_equal(exe(a, x), expected(x, a))


@pytest.mark.parametrize("level", LEVELS)
def test_quotients_and_masks_beyond_32_bits(level):
    exe = tw.compile(parse(SCALED), target=Target("cpu", features=(level,)))
    for n in (0, 1, 15, 16, 100):
        x = np.full(n, -1.0, np.float32)
        for a in (0, 1, -3, LIMIT // 128, LIMIT // 64, LIMIT, 2**35 + 7, -(2**33)):
            np.testing.assert_array_equal(exe(a, x), expected(x, a))


@pytest.mark.parametrize("level", LEVELS)
def test_the_versions_agree_where_both_are_legal(level):
    width, (wide, narrow) = kernels(SCALED, level)
    assert width.guarded
    n, a = (next(s for s in wide.artifact.symbols if s.name == name) for name in "na")
    x = np.random.default_rng(0).random(77, np.float32)
    for value in (1, -9, LIMIT // 200):
        assert all(largest(limit, {n: 77, a: value}) < LIMIT for limit in width.limits)
        y, z = np.zeros_like(x), np.zeros_like(x)
        assert wide(x, y, scalars={a: value}) == narrow(x, z, scalars={a: value}) == 0
        np.testing.assert_array_equal(y, expected(x, value))
        np.testing.assert_array_equal(z, y)


def test_the_emulator_computes_narrow_terms_with_32_bits():
    """The guard is needed: beyond its limit the narrow version is wrong."""
    lowered = lower_kernel(parse(THREADS).prims[0], SIMT)
    wide, narrow = lowered.function.versions
    x = np.full(64, -1.0, np.float32)
    values = {"n": 64, "a": 2**27}
    results = []
    for function in (wide, narrow):
        y = np.zeros_like(x)
        sizes = [values[s.name] for s in lowered.symbols]
        run_kernel(function, (2, 1, 1), (32, 1, 1), [x, y, *sizes], checks=NO_CHECKS)
        results.append(y)
    known = {s: values[s.name] for s in lowered.symbols}
    assert max(largest(limit, known) for limit in wide.width.limits) >= LIMIT
    np.testing.assert_array_equal(results[0], expected(x, 2**27))
    assert (results[1] != results[0]).any()


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_elements_beyond_2_to_the_31_are_read(target):
    """An array of 2**31 + 64 bytes, of which only some pages are in memory."""
    text = """
n = symbols("n", lower=1)
@prim_func{scheduled}
def f(s: Int, x: Buffer[(n,), u8], y: Out[(8,), u8]):
    for i in {loop}:
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi * s % n]
"""
    loop = 'thread(8, "threadIdx.x")' if target == "simt" else "vectorized(8)"
    program = parse(text.format(scheduled="(scheduled=True)", loop=loop)).prims[0]
    n, s = LIMIT + 64, LIMIT // 4 + 3
    x = np.zeros(n, np.uint8)
    indices = np.arange(8) * s % n
    x[indices] = np.arange(1, 9)
    assert indices.max() > LIMIT - 2**30
    x[-1] = 77
    if target == "cpu":
        exe = tw.compile(parse(text.format(scheduled="(scheduled=True)", loop=loop)))
        np.testing.assert_array_equal(exe(s, x), np.arange(1, 9))
        np.testing.assert_array_equal(exe(n - 1, x)[:2], [1, 77])
        return
    lowered = lower_kernel(program, SIMT)
    for function in lowered.function.versions[:1]:
        y = np.zeros(8, np.uint8)
        sizes = [{"n": n, "s": s}[v.name] for v in lowered.symbols]
        run_kernel(function, (1, 1, 1), (8, 1, 1), [x, y, *sizes], checks=NO_CHECKS)
        np.testing.assert_array_equal(y, np.arange(1, 9))


def test_constant_sizes_need_no_second_version():
    text = """
@prim_func(scheduled=True)
def f(x: Buffer[(64, 8), f32], y: Out[(64, 8), f32]):
    for b in thread(2, "blockIdx.x"):
        for t in thread(32, "threadIdx.x"):
            for j in range(8):
                with block("y"):
                    vi, vj = spatial(64, b * 32 + t), spatial(j)
                    y[vi, vj] = x[vi, vj] * 2.0
"""
    function = lower_kernel(parse(text).prims[0], SIMT).function
    assert function.versions == (function,)
    assert function.width.proved


def test_cpu_kernels_without_such_terms_have_one_version():
    text = """
n, m = symbols("n m", lower=1)
@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""
    target = Target("cpu", features=(LEVELS[-1],))
    assert lower_kernel(scheduled(text, target), target).function.width == LONG


def test_vectors_that_would_not_be_faster_have_one_version():
    text = SHIFTED.replace("f64", "i64")
    target = Target("cpu", features=("avx2",))
    assert lower_kernel(parse(text).prims[0], target).function.width == LONG
    quotient = text.replace("vi + a", "(vi + a) // 3")
    assert lower_kernel(parse(quotient).prims[0], target).function.width != LONG


def test_facts_prove_the_limits():
    text = THREADS.replace("a: Int, ", "").replace("vi * a", "vi * 3")
    assert len(lower_kernel(parse(text).prims[0], SIMT).function.versions) == 2
    bounded = text.replace("    for b", "    fact(n <= 100000)\n    for b", 1)
    assert len(lower_kernel(parse(bounded).prims[0], SIMT).function.versions) == 1


def test_golden(golden):
    """Two versions in one launch record of a GPU, and the terms of a vector of a CPU."""
    target = Target("cuda", arch="sm_80")
    function = lower_kernel(parse(SUMS).prims[0], target).function
    narrow = emit_module([function.versions[1]], target)
    body = narrow[narrow.index("define") : narrow.index("declare")]
    cpu = Target("cpu", features=("avx2",))
    vectors = lower_kernel(parse(SHIFTED).prims[0], cpu).function.versions[1]
    llvm = emit_module([vectors], cpu)
    golden(
        "narrow_indices.txt",
        f"{to_text(function)}\n-- the version with 32-bit indices --\n\n{body}\n"
        f"{to_text(vectors)}\n{llvm[: llvm.index('attributes')]}",
    )


def counts(function, target):
    """Return the wide multiplications, other wide operations, and spilled bytes of a kernel."""
    ptx = assembly(emit_module([function], target), target)
    products = re.findall(r"(?:mul\.lo|mad\.lo|mul\.hi)\.[su]64", ptx)
    others = re.findall(r"(?:add|sub|shl|setp\.\w+)\.[sub]64", ptx)
    return len(products), len(others), assemble(ptx, target.arch).resources.spill_stores


def test_narrow_kernels_of_a_gpu_have_no_wide_multiplications():
    target = Target("cuda", arch="sm_90a")
    function = lower_kernel(parse(SUMS).prims[0], target).function
    products, others, _ = counts(replace(function, width=LONG), target)
    assert products > 0
    fewer, rest, spilled = counts(function.versions[1], target)
    assert fewer == 0
    assert rest < others / 2
    assert spilled == 0
