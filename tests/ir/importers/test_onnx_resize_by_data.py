"""The node cases of ONNX for images resized by scales and sizes that are inputs of the graph."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("resize", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name])


def test_whole_scales_keep_symbolic_sizes() -> None:
    body = (
        "r = Constant<value_floats = [0.0]>() s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() "
        'y = Resize<mode = "nearest">(x, , s)'
    )
    module = from_onnx(parsed(body, 18, "float[b, c, h, w] x"))
    assert "given" not in str(module)
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    (found,) = run_graph(module, [x])
    np.testing.assert_array_equal(found, x.repeat(2, 2).repeat(2, 3), strict=True)
