"""The node cases of ONNX for images that are read at computed positions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import CallError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("col2im", "deformconv", "gridsample", "roialign", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-6)


def test_a_grid_of_symbolic_shape_reads_images_of_symbolic_shape() -> None:
    import torch

    body = 'y = GridSample<mode = "linear", padding_mode = "reflection">(x, g)'
    run = tw.compile(from_onnx(parsed(body, 20, "float[n, c, h, w] x, float[n, p, q, 2] g")))
    rng = np.random.default_rng(0)
    for h, w, p, q in [(3, 4, 5, 2), (1, 7, 2, 3)]:
        x = rng.standard_normal((2, 3, h, w)).astype(np.float32)
        grid = rng.uniform(-2.5, 2.5, (2, p, q, 2)).astype(np.float32)
        expected = torch.nn.functional.grid_sample(
            torch.tensor(x), torch.tensor(grid), padding_mode="reflection", align_corners=False
        )
        np.testing.assert_allclose(run(x, grid), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_batch_index_out_of_range_is_rejected() -> None:
    run = tw.compile(
        from_onnx(
            parsed("y = RoiAlign(x, r, b)", 16, "float[n, 1, 4, 4] x, float[k, 4] r, int64[k] b")
        )
    )
    x, r = np.ones((2, 1, 4, 4), np.float32), np.array([[0, 0, 3, 3]], np.float32)
    np.testing.assert_allclose(run(x, r, np.array([1])), np.ones((1, 1, 1, 1)), rtol=1e-6)
    with pytest.raises(CallError):
        run(x, r, np.array([2]))
