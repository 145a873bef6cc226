"""Shaders of whole kernels: results on the driver, and their text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.compiler import default_scheduled
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.codegen.lower.shaders import kernel_shaders
from tilewright.codegen.wgsl import from_bytes, to_bytes
from tilewright.ir.script import parse

from tests.codegen.gpu import kernels
from tests.codegen.wgsl import tint
from tests.codegen.wgsl.running import WEBGPU, agrees, compiled, shader_texts

SUM = """
n, m = symbols("n m", lower=0)

@prim_func
def sums(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in range(m):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
"""

BYTES = """
n = symbols("n", lower=0)

@prim_func
def bytes_(
    x: Buffer[(n,), {dtype}], b: Buffer[(n,), bool], y: Out[(n,), {dtype}], z: Out[(n,), bool]
):
    for i in range(n):
        with block("add"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]
    for i1 in range(n):
        with block("invert"):
            wi = spatial(i1)
            z[wi] = b[wi] ^ (wi % 3 == 0)
"""

WIDE = """
n, k = symbols("n k", lower=0)

@prim_func
def wide(x: Buffer[(n, k), i64], y: Out[(n, k), i64]):
    for i in range(n):
        for j in range(k):
            with block("scale"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 3000000000 + vi * 4000000000 - vj
"""

PACKED = """
n = symbols("n", lower=0)

@prim_func
def packed(x: Buffer[(n,), {dtype}], y: Out[(n,), f32]):
    for i in range(n):
        with block("decode"):
            vi = spatial(i)
            y[vi] = f32(x[vi]) * 2.0
"""

HOSTILE = """
select, fn = symbols("select fn", lower=0)

@prim_func
def main(loop: Buffer[(select, fn), f32], tw_exp: Out[(select, fn), f32]):
    for u32 in range(select):
        for var in range(fn):
            with block("größe"):
                vi, vj = spatial(u32), spatial(var)
                tw_exp[vi, vj] = exp(loop[vi, vj])
"""

SIZES = (0, 1, 2, 7, 31, 257)


@cache
def _executable(text: str):
    return compiled(text), parse(text).prims[0]


@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_reduction_over_threads(rows, columns):
    agrees(*_executable(SUM), {"n": rows, "m": columns})


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "f16", "bf16"])
@pytest.mark.parametrize("size", SIZES)
def test_invocations_write_parts_of_words(dtype, size):
    agrees(*_executable(BYTES.format(dtype=dtype)), {"n": size})


@pytest.mark.parametrize("size", SIZES)
def test_integers_of_64_bits(size):
    agrees(*_executable(WIDE), {"n": size, "k": 3})


@pytest.mark.parametrize("dtype", ["i4", "u4", "i2", "u2", "f8_e4m3", "f8_e5m2"])
@pytest.mark.parametrize("size", [0, 1, 7, 257])
def test_packed_operands(dtype, size):
    agrees(*_executable(PACKED.format(dtype=dtype)), {"n": size})


def test_names_that_are_words_of_the_language():
    agrees(*_executable(HOSTILE), {"select": 3, "fn": 5}, tolerance=1e-6)


SCHEDULED = [
    *(("elementwise", {"m": m, "n": n}, 1e-5) for m, n in [(1, 1), (3, 5), (33, 31)]),
    *(("softmax", {"rows": r, "columns": c}, 1e-6) for r, c in [(1, 1), (2, 256), (3, 99)]),
    *(
        ("matmul", {"M": m, "N": n, "K": k}, 0.0)
        for m, n, k in [(1, 1, 1), (16, 20, 16), (65, 30, 17), (7, 70, 3)]
    ),
]


@cache
def _scheduled(name: str):
    return compiled(kernels.scheduled(name)), parse(kernels.PROGRAMS[name]).prims[0]


@pytest.mark.parametrize(("name", "sizes", "tolerance"), SCHEDULED)
def test_scheduled_kernels(name, sizes, tolerance):
    """Vectors, workgroup memory, barriers, and registers of the kernels for other GPUs."""
    agrees(*_scheduled(name), sizes, tolerance=tolerance)


def test_halves_have_their_own_type_with_the_feature():
    target = tw.Target("webgpu", features=("f16",))
    text = BYTES.format(dtype="f16")
    exe = compiled(text, target)
    assert "enable f16;" in exe.artifact.text("bytes_")
    assert "enable" not in _executable(text)[0].artifact.text("bytes_")
    for size in SIZES:
        agrees(exe, parse(text).prims[0], {"n": size})


def test_a_grid_longer_than_one_dimension():
    """70,001 workgroups exceed the limit of 65,535 along one dimension."""
    text = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def long(y: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        with block("number"):
            vi = spatial(i)
            y[vi] = vi * 3
"""
    exe = compiled(text)
    for size in (0, 1, 65_535, 65_536, 70_001, 140_000):
        y = np.zeros(size, np.int32)
        exe["long"].into(y)
        np.testing.assert_array_equal(y, np.arange(size, dtype=np.int32) * 3)


def _shaders(text: str):
    ready, _ = default_scheduled(parse(text), WEBGPU)
    return [s for f in ready.prims for s in kernel_shaders(lower_kernel(f, WEBGPU), WEBGPU)]


DIVERGENT = """
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) thread: vec3<u32>) {
    if thread.x < 32u {
        workgroupBarrier();
    }
}
"""


@pytest.mark.browser
def test_tint_accepts_the_shaders(chromium):
    """Tint checks that barriers are in uniform control flow, as naga does not."""
    programs = [SUM, WIDE, HOSTILE]
    programs += [BYTES.format(dtype=d) for d in ("i8", "u8", "i16", "u16", "f16", "bf16")]
    programs += [PACKED.format(dtype=d) for d in ("i4", "u2", "f8_e4m3", "f8_e5m2")]
    texts = [t for p in programs for t in shader_texts(_executable(p)[0])]
    for name in ("elementwise", "softmax", "matmul"):
        texts += shader_texts(_scheduled(name)[0])
    assert sum("workgroupBarrier();" in t for t in texts) >= 4
    refused, *others = tint.messages([DIVERGENT, *texts], chromium)
    assert "must only be called from uniform control flow" in refused
    assert set(others) == {""}


def test_golden(golden):
    """The versions with 32-bit indices of a reduction, of bytes, and with 64-bit values."""
    texts = [
        s.text
        for program in (SUM, BYTES.format(dtype="u8"), WIDE)
        for s in _shaders(program)
        if s.name.endswith("$i32")
    ]
    golden("shaders.wgsl", "\n".join(texts))


def test_shaders_are_serialized():
    shaders = _shaders(SUM)
    assert from_bytes(to_bytes(shaders)) == tuple(shaders)
    assert {s.name.partition("$")[2] for s in shaders} == {"", "i32"}
