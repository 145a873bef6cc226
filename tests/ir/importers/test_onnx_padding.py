"""The node cases of ONNX for padding and cropping by widths that are inputs of the graph."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("center_crop_pad", "pad", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_one_compiled_padding_serves_all_widths(mode: str) -> None:
    body = f'y = Pad<mode = "{mode}">(x, p)'
    run = tw.compile(from_onnx(parsed(body, 19, "float[n, m] x, int64[4] p")))
    x = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    for widths in [(0, 0, 0, 0), (1, 2, 0, 1), (2, 0, 2, 3)]:
        expected = np.pad(x, (widths[0::2], widths[1::2]), mode=mode)
        np.testing.assert_array_equal(run(x, np.array(widths)), expected, strict=True)
    np.testing.assert_array_equal(run(x, np.array([-1, 0, 0, -2])), x[1:, :-2], strict=True)
