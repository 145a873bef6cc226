"""Launches of library functions: descriptors, attributes, error codes, profiles."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen import compile
from tilewright.codegen.errors import LibraryError
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.libraries import UnknownLibraryFunctionError
from tilewright.ir.graph.nodes import CallDPSLibrary
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import var

from tests.codegen.runtime.helpers import tensor

GEMM = """
m, k, n = symbols("m k n", lower=0)

@graph_func
def main(a: Tensor[(m, k), {dtype}], b: Tensor[(k, n), {dtype}], c: Tensor[(m, n), {dtype}]):
    y: Tensor[(m, n), {dtype}] = call_library("blas.{name}", a, b{addend}, {attributes})
    return y
"""


def product_of(symbol: str) -> Module:
    m, k, n = (var(s) for s in "mkn")
    g = GraphBuilder("main")
    x, w = g.param("x", tensor(m, k)), g.param("w", tensor(k, n))
    y = g.bind("y", tensor(m, n), CallDPSLibrary(symbol, (x, w), (tensor(m, n),)))
    return Module().with_functions(g.finish((y,)))


def test_a_matrix_product_by_blas() -> None:
    exe = compile(product_of("blas.sgemm"))
    rng = np.random.default_rng(0)
    for m, k, n in ((3, 4, 5), (1, 1, 1), (64, 33, 17), (2, 0, 3), (0, 3, 2)):
        x, w = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        assert np.allclose(exe(x, w), x @ w, rtol=1e-5)
    ones = np.ones((64, 64), np.float32)
    (launch,) = exe.profile(ones, ones)
    assert launch.kernel == "blas.sgemm"
    assert launch.microseconds > 0


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_attributes_reach_the_function(target: str) -> None:
    """W11: with alpha = 2, the product of the identity and threes is 6."""
    text = """
@graph_func
def main(a: Tensor[(4, 4), f32], b: Tensor[(4, 4), f32]):
    c: Tensor[(4, 4), f32] = call_library("blas.sgemm", a, b, alpha=2.0)
    return c
"""
    module = parse(text)
    a, b = np.eye(4, dtype=np.float32), np.full((4, 4), 3, np.float32)
    assert np.all(compile(module, target)(a, b) == 6)
    assert np.all(np.asarray(run_graph(module, [a, b])[0]) == 6)
    schedule = tw.Schedule(module)
    schedule.plan_memory()
    assert "alpha=2.0, beta=0.0" in str(schedule)
    assert np.all(np.asarray(run_graph(schedule.module, [a, b])[0]) == 6)
    assert parse(str(schedule)).graph().stage == "memory"


@pytest.mark.parametrize(("name", "dtype"), [("sgemm", "f32"), ("dgemm", "f64")])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, -2.0), (0.0, 3.0), (1.1, 0.0)])
def test_alpha_and_beta(name: str, dtype: str, alpha: float, beta: float) -> None:
    attributes = f"alpha={alpha}, beta={beta}"
    module = parse(GEMM.format(name=name, dtype=dtype, addend=", c", attributes=attributes))
    exe, rng = compile(module), np.random.default_rng(1)
    for m, k, n in ((3, 4, 5), (2, 0, 3), (0, 2, 2), (1, 1, 1)):
        a, b, c = (
            rng.integers(-4, 4, shape).astype(dtype.replace("f", "float"))
            for shape in ((m, k), (k, n), (m, n))
        )
        expected = np.asarray(run_graph(module, [a, b, c])[0])
        assert np.allclose(expected, alpha * (a @ b) + beta * c, rtol=1e-6)
        assert np.allclose(exe(a, b, c), expected, rtol=1e-6)


def test_an_addend_with_factor_zero_is_not_read() -> None:
    module = parse(GEMM.format(name="sgemm", dtype="f32", addend=", c", attributes="beta=0.0"))
    a, c = np.eye(2, dtype=np.float32), np.full((2, 2), np.nan, np.float32)
    assert compile(module)(a, a, c).tolist() == a.tolist()
    assert np.array_equal(np.asarray(run_graph(module, [a, a, c])[0]), a)


def test_an_error_code_ends_the_call() -> None:
    g = GraphBuilder("main")
    p, q = var("p", lower=0), var("q", lower=0)
    x, w = g.param("x", tensor(p, q)), g.param("w", tensor(p, q))
    y = g.bind("y", tensor(p, q), CallDPSLibrary("blas.sgemm", (x, w), (tensor(p, q),)))
    exe = compile(Module().with_functions(g.finish((y,))))
    square = np.eye(3, dtype=np.float32)
    assert exe(square, square).tolist() == square.tolist()
    other = np.ones((2, 3), np.float32)
    with pytest.raises(LibraryError, match=r"'blas\.sgemm' returned error code 1"):
        exe(other, other)


def test_an_unknown_library_function_lists_those_there_are() -> None:
    with pytest.raises(
        UnknownLibraryFunctionError, match=r"no library function 'cudnn\.conv'"
    ) as caught:
        compile(product_of("cudnn.conv"))
    assert "blas.sgemm" in caught.value.hint
