"""The node cases of ONNX for sums of products, determinants, and counts of terms."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("det", "einsum", "tfidfvectorizer", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-6)


def einsum(equation: str, *shapes: str):
    names = [f"x{k}" for k in range(len(shapes))]
    inputs = ", ".join(f"float[{s}] {n}" for s, n in zip(shapes, names, strict=True))
    body = f'y = Einsum<equation = "{equation}">({", ".join(names)})'
    return tw.compile(from_onnx(parsed(body, 14, inputs)))


@pytest.mark.parametrize(
    ("equation", "shapes", "sizes"),
    [
        ("bij,bjk->bik", ("b, i, j", "b, j, k"), ((2, 3, 4), (2, 4, 5))),
        ("ij,jk,kl->il", ("i, j", "j, k", "k, l"), ((2, 3), (3, 4), (4, 5))),
        ("...ij,...j->...i", ("a, b, i, j", "b, j"), ((2, 3, 4, 5), (3, 5))),
        ("iij->j", ("i, i, j",), ((3, 3, 2),)),
        ("ij,kl->", ("i, j", "k, l"), ((2, 3), (4, 5))),
        ("ab,cd->dbca", ("a, b", "c, d"), ((2, 3), (4, 5))),
        ("ba", ("b, a",), ((2, 3),)),
        ("ijkl,lkm->mij", ("i, j, k, l", "l, k, m"), ((2, 3, 4, 5), (5, 4, 2))),
    ],
)
def test_a_compiled_sum_of_products_of_symbolic_shapes(equation: str, shapes, sizes) -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s).astype(np.float32) for s in sizes]
    expected = np.einsum(equation, *given, optimize=False)
    found = einsum(equation, *shapes)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", ("i, j",), "2 terms for 1 operands"),
        ("ijk->i", ("i, j",), "does not match an operand of rank 2"),
        ("ij->ii", ("i, j",), "has a label twice"),
        ("ij->k", ("i, j",), "labels that no operand has"),
    ],
)
def test_a_wrong_equation_is_rejected(equation: str, shapes, text: str) -> None:
    with pytest.raises(TilewrightError, match=text):
        einsum(equation, *shapes)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_one_compiled_determinant_serves_every_size(size: int) -> None:
    run = tw.compile(from_onnx(parsed("y = Det(x)", 22, "float[b, n, n] x")))
    x = np.random.default_rng(size).standard_normal((3, size, size)).astype(np.float32)
    np.testing.assert_allclose(run(x), np.linalg.det(x), rtol=1e-4, atol=1e-5)
    if size > 1:
        x[:, 0] = 0
        np.testing.assert_array_equal(run(x), np.zeros(3, np.float32))


def test_pivots_that_are_zero_are_exchanged() -> None:
    x = np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 2, 0], [3, 0, 0], [0, 0, 1]]], np.float32)
    (found,) = run_graph(from_onnx(parsed("y = Det(x)", 22, "float[b, n, n] x")), [x])
    np.testing.assert_array_equal(found, [1, -6])
