"""Element-wise ONNX operators return the results of the test cases of the ONNX package."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_nodes import NodeCase, node_cases

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


@pytest.mark.parametrize("of", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("saturate", [None, 0, 1])
def test_conversions_to_8_bit_floats_saturate_as_in_onnx(of: str, saturate: int | None) -> None:
    import ml_dtypes
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    like = np.zeros(1, getattr(ml_dtypes, of))
    kind = helper.np_dtype_to_tensor_dtype(like.dtype)
    x = np.array([1e3, -465, 464, 1e5, -1e9, np.inf, -np.inf, np.nan, 1.0625, 2e-3], np.float32)
    options = {} if saturate is None else {"saturate": saturate}
    node = helper.make_node("Cast", ["x"], ["y"], to=kind, **options)
    model = NodeCase(node, (x,), (x.astype(like.dtype),), 23).model()
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    (have,) = run_graph(from_onnx(model), [x])
    np.testing.assert_array_equal(have.astype(np.float32), np.asarray(want, np.float32))
