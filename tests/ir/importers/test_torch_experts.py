"""Imported operators of mixtures of experts equal PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tilewright.codegen import compile
from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph

ROWS = {0: torch.export.Dim("n", min=2, max=64)}


def imported(function: Any, *inputs: Any) -> Any:
    class Model(nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    axes = (tuple(ROWS if x.shape[0] == 7 else None for x in inputs),)
    return from_exported_program(torch.export.export(Model(), inputs, dynamic_shapes=axes))


@pytest.mark.parametrize("limits", [(4, 0.0, 3.0), (5, -1.0, 2.5), (1, 0.0, 1.0)])
def test_histograms(limits: tuple[int, float, float]) -> None:
    count, low, high = limits
    module = imported(lambda x: torch.histc(x, bins=count, min=low, max=high), torch.zeros(7))
    for x in (
        torch.tensor([0.0, 3, 3, 1, 2.5, -1, 4, 0.5]),
        torch.randn(40),
        torch.full((3,), high),
    ):
        expected = torch.histc(x, bins=count, min=low, max=high).numpy()
        (found,) = run_graph(module, [x.numpy()])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("limit", [0.0, 2.0])
def test_a_histogram_between_the_extremes_of_its_elements(limit: float) -> None:
    module = imported(lambda x: torch.histc(x, 3, limit, limit), torch.zeros(7))
    for x in (torch.tensor([1.0, 4, 2, 3.5]), torch.full((3,), 5.0), torch.randn(40)):
        (found,) = run_graph(module, [x.numpy()])
        np.testing.assert_array_equal(found, torch.histc(x, 3, limit, limit).numpy())


def test_a_histogram_of_no_elements() -> None:
    module = imported(lambda x: torch.histc(x, bins=3), torch.zeros(0))
    (found,) = run_graph(module, [np.zeros(0, np.float32)])
    np.testing.assert_array_equal(found, np.zeros(3, np.float32))


@pytest.mark.parametrize("ends", [(0, 2, 5), (0, 0, 0), (5, 5, 5), (1, 4, 4)])
def test_grouped_products(ends: tuple[int, ...]) -> None:
    """Rows after the last group are 0; groups may be empty."""
    from transformers.integrations import moe

    assert moe is not None
    w = torch.randn(3, 4, 6)
    function = torch.ops.transformers.grouped_mm_fallback
    x, offs = torch.randn(7, 4), torch.tensor([1, 2, 3], dtype=torch.int32)
    module = imported(lambda x, w, offs: function(x, w, offs), x, w, offs)
    compiled = compile(module)
    inputs = (torch.randn(5, 4), w, torch.tensor(ends, dtype=torch.int32))
    expected = function(*inputs).numpy()
    arrays = [v.numpy() for v in inputs]
    np.testing.assert_allclose(run_graph(module, arrays)[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compiled(*arrays), expected, rtol=1e-5, atol=1e-6)
