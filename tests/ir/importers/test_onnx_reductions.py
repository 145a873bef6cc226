"""The node cases of ONNX for reductions and running sums."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

FILES = (
    "argmax", "argmin", "cumprod", "cumsum", "hardmax", "reduce_log_sum", "reduce_log_sum_exp",
    "reducel1", "reducel2", "reducemean", "reducemin", "reduceprod", "reducesumsquare",
)  # fmt: skip
CASES = node_cases(*FILES, opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_one_compiled_running_sum_serves_all_axes(axis: int) -> None:
    run = tw.compile(
        from_onnx(parsed("y = CumSum<reverse = 1>(x, a)", 18, "float[n,m,k] x, int64 a"))
    )
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    np.testing.assert_array_equal(run(x, np.array(axis)), expected, strict=True)
