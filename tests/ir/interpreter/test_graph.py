"""Symbols that are elements of integer tensors: bound by parameters and match_cast, or checked."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter import run_graph
from tilewright.ir.interpreter.graph import GraphCheckError
from tilewright.ir.script import parse

GIVEN = """
n, k = symbols("n k", lower=0)

@graph_func
def main(x: Tensor[(n + k,), f32], length: Tensor((2,), i64, elements=(k, n + k))):
    y = arange((0, k, 1), dtype="i64")
    return y
"""

COMPUTED = """
n, k = symbols("n k", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], count: Tensor[(1,), i32]):
    c = match_cast(count, Tensor((1,), i32, elements=(k,)))
    y = arange((0, k, 1), dtype="i64")
    return y
"""


def test_elements_of_parameters_bind_symbols() -> None:
    module = parse(GIVEN.replace("(n + k,), f32]", "(n,), f32]"))
    (y,) = run_graph(module, [np.ones(3, np.float32), np.array([2, 5])])
    assert np.asarray(y).tolist() == [0, 1]


def test_elements_of_a_match_cast_bind_symbols() -> None:
    (y,) = run_graph(parse(COMPUTED), [np.ones(3, np.float32), np.array([4], np.int32)])
    assert np.asarray(y).tolist() == [0, 1, 2, 3]


def test_elements_that_differ_from_their_terms_are_errors() -> None:
    module = parse(GIVEN.replace("(n + k,), f32]", "(n,), f32]"))
    with pytest.raises(GraphCheckError, match=r"element 1: expected n \+ k = 5, got 6"):
        run_graph(module, [np.ones(3, np.float32), np.array([2, 6])])
    with pytest.raises(GraphCheckError, match="k >= 0 is false for k = -1"):
        run_graph(parse(COMPUTED), [np.ones(3, np.float32), np.array([-1], np.int32)])


REST = """
n = symbols("n", lower=0)

@prim_func
def rest(x: Buffer[(n,), f32], y: Out[(n - 3,), f32]):
    for i in range(n - 3):
        y[i] = x[i + 3]

@graph_func
def main(x: Tensor[(n,), f32]):
    y = call_tir(rest, x, outputs=(Tensor[(n - 3,), f32],))
    return y
"""


def test_a_negative_size_of_a_result_is_an_error() -> None:
    module = parse(REST)
    (y,) = run_graph(module, [np.arange(5, dtype=np.float32)])
    assert np.asarray(y).tolist() == [3.0, 4.0]
    with pytest.raises(GraphCheckError, match="size n - 3 is negative: -1"):
        run_graph(module, [np.ones(2, np.float32)])
