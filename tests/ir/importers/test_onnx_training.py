"""Optimizers and operators on features of ONNX."""

from __future__ import annotations

import pytest

from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("adagrad", "adam", "momentum", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-6)
