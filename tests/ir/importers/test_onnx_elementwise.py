"""Element-wise ONNX operators return the results of the test cases of the ONNX package."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_nodes import node_cases

FILES = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitshift", "bitwiseand",
    "bitwisenot", "bitwiseor", "bitwisexor", "ceil", "cos", "cosh", "div", "erf", "exp", "floor",
    "isinf", "isnan", "log", "max", "min", "mod", "mul", "neg", "not_", "reciprocal", "round",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh",
)  # fmt: skip
CASES = node_cases(*FILES)


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    case = CASES[name]
    found = run_graph(from_onnx(case.model()), list(case.inputs))
    for have, want in zip(found, case.outputs, strict=True):
        half = want.dtype == np.float16
        np.testing.assert_allclose(have, want, rtol=2e-3 if half else 1e-6, atol=1e-7, strict=True)


def test_every_function_has_a_case() -> None:
    operators = {case.node.op_type for case in CASES.values()}
    assert {"Sin", "Asinh", "Acosh", "Atanh", "Erf", "BitShift", "Mod", "IsInf"} <= operators
