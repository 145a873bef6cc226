"""Sizes that overflow: constant ones when a program is compiled, others when it is called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import tilewright as tw
from tilewright.codegen.errors import SizeError, StaticSizeError

HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[1] x) => (float[a, b] y) '
EXPANDED = """<int64[2] s = {2147483648, 2147483648}> { y = Expand(x, s) }"""
SUMMED = """<int64[2] s = {2147483648, 2147483648}, int64 axis = {1}> {
    t = Expand(x, s)
    u = CumSum(t, axis)
    y = ReduceMax<keepdims = 1>(u)
}"""
REDUCED = """<int64[2] s = {2147483648, 2147483648}> {
    t = Expand(x, s)
    y = ReduceMax<keepdims = 1>(t)
}"""
BITS = "18446744073709551616 bytes, a number of 65 bits; sizes must be less than 2\\*\\*60"


def imported(graph: str) -> tw.Module:
    return tw.from_onnx(parser.parse_model(HEAD + graph))


@pytest.mark.parametrize(("graph", "name"), [(EXPANDED, "result 'y'"), (SUMMED, "storage of '.*'")])
def test_a_constant_size_that_overflows_is_a_compile_error(
    graph: str, name: str, tmp_path: Path
) -> None:
    module = imported(graph)
    with pytest.raises(StaticSizeError, match=f"{name} has {BITS}") as caught:
        tw.compile(module)
    assert caught.value.where == "function 'main'"
    assert caught.value.details["bits"] == 65
    with pytest.raises(StaticSizeError, match=f"{name} has {BITS}"):
        tw.export(module, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_large_tensor_that_is_never_stored_compiles() -> None:
    assert tw.compile(imported(REDUCED)).names == ("main",)


OUT = """
n = symbols("n", lower=0)

@prim_func
def first(x: Buffer[(n,), f32], y: Out[({shape}), f32]):
    for i in range(n):
        y[i] = x[i]
"""


@pytest.mark.parametrize("size", [2**58, 2**61, 2**62, 2**64, 10**23])
def test_constant_sizes_of_a_kernel(size: int) -> None:
    text = OUT.format(shape=f"{size},").replace("range(n)", "range(1)")
    with pytest.raises(StaticSizeError, match=rf"result '\w+' has {4 * size} bytes"):
        tw.compile(tw.parse(text))


@pytest.mark.parametrize("shape", ["n * 18446744073709551616,", "n * 4611686018427387904,"])
def test_a_constant_factor_that_overflows_is_a_call_error(shape: str) -> None:
    exe = tw.compile(tw.parse(OUT.format(shape=shape)))
    assert exe(np.ones(0, np.float32)).shape == (0,)
    with pytest.raises(SizeError, match="overflows"):
        exe(np.ones(1, np.float32))


LONG = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(8,), f32], z: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[{index}] + z[i]
"""


@pytest.mark.parametrize(
    "index", ["min(i * 4611686018427387904, 7)", "min(n * n * n * n * n * n * n * n * i, 7)"]
)
def test_an_index_that_overflows_by_its_constants_or_dimensions_is_a_call_error(index: str) -> None:
    executable = tw.compile(tw.parse(LONG.format(index=index)))
    with pytest.raises(SizeError, match="overflows"):
        executable(np.arange(8, dtype=np.float32), np.zeros(512, np.float32))


def test_an_integer_that_does_not_fit_into_64_bits_is_a_compile_error() -> None:
    text = "@prim_func\ndef f(y: Out[(8,), i64]):\n"
    text += "    for i in range(8):\n        y[i] = index(9223372036854775808, i64)\n"
    with pytest.raises(StaticSizeError, match="integer 9223372036854775808 does not fit"):
        tw.compile(tw.parse(text))


DIVISION = """
@prim_func
def f(a: Int, b: Int, y: Out[(8,), i64]):
    for i in range(8):
        y[i] = where(condition(b != 0), index(a // b + i, i64), index(i, i64))
"""


def test_a_division_in_a_branch_that_does_not_run_is_not_checked() -> None:
    executable = tw.compile(tw.parse(DIVISION))
    for b, quotient in ((0, 0), (2, 3), (-2, -4)):
        np.testing.assert_array_equal(executable(7, b), np.arange(8) + quotient)
