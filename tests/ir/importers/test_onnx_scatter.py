"""The node cases of ONNX for operators that write or select elements."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import CallError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

FILES = (
    "compress", "eyelike", "gathernd", "maxunpool", "onehot", "reversesequence",
    "scatterelements", "scatternd", "tensorscatter",
)  # fmt: skip
CASES = node_cases(*FILES, opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name])


def test_an_index_of_one_axis_beyond_it_is_rejected_even_within_the_tensor() -> None:
    body = "y = ScatterND(x, i, u)"
    run = tw.compile(from_onnx(parsed(body, 18, "float[n, m] x, int64[k, 2] i, float[k] u")))
    x, u = np.zeros((3, 4), np.float32), np.ones(1, np.float32)
    assert run(x, np.array([[-1, -4]]), u)[2, 0] == 1
    for at in ([0, 4], [3, 0], [0, -5]):
        with pytest.raises(CallError):
            run(x, np.array([at]), u)


def test_one_hot_of_symbolic_shape() -> None:
    body = "d = Constant<value_int = 5>() y = OneHot<axis = 0>(i, d, v)"
    run = tw.compile(from_onnx(parsed(body, 18, "int64[n, m] i, float[2] v")))
    i = np.array([[0, 4, -1], [5, -6, 2]])
    expected = np.where(np.arange(5)[:, None, None] == np.where(i < 0, i + 5, i), 3.0, 2.0)
    np.testing.assert_array_equal(run(i, np.array([2, 3], np.float32)), expected)
