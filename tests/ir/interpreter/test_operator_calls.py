"""Requirements of operators in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import CheckError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.interpreter.graph import GraphCheckError
from tilewright.ir.script import parse

SUM = """
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], y: Tensor[(m,), f32]):
    z = add(x, y)
    return z
"""


@pytest.mark.parametrize(("n", "m"), [(3, 1), (1, 3), (0, 1), (2, 3)])
def test_a_symbolic_dimension_of_size_1_does_not_broadcast(n: int, m: int) -> None:
    arrays = [np.ones(n, np.float32), np.ones(m, np.float32)]
    with pytest.raises(GraphCheckError, match=f"m = {m}, n = {n}: add requires n == m"):
        run_graph(parse(SUM), arrays)
    with pytest.raises(CheckError, match="add requires n == m"):
        tw.compile(parse(SUM), target="cpu")(*arrays)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_dimensions_that_are_equal_at_run_time_are_added(n: int) -> None:
    (found,) = run_graph(parse(SUM), [np.ones(n, np.float32)] * 2)
    np.testing.assert_array_equal(found, np.full(n, 2, np.float32), strict=True)
