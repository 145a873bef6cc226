"""Element-wise ONNX operators return the results of the test cases of the ONNX package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import NodeCase, node_cases

FILES = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitshift", "bitwiseand",
    "bitcast", "bitwisenot", "bitwiseor", "bitwisexor", "ceil", "cos", "cosh", "div",
    "erf", "exp", "floor",
    "isinf", "isnan", "log", "max", "min", "mod", "mul", "neg", "not_", "pow",
    "reciprocal", "round",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh",
)  # fmt: skip
CASES = node_cases(*FILES, opset=newest_opset())


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


def test_powers_of_integers_by_a_constant_and_by_themselves() -> None:
    from onnx import TensorProto, helper, numpy_helper

    def model(*nodes: Any) -> Any:
        inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])]
        outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, ["n"])]
        exponent = numpy_helper.from_array(np.float32(5), "five")
        graph = helper.make_graph(list(nodes), "powers", inputs, outputs, [exponent])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])

    x = np.arange(-4, 5)
    (found,) = run_graph(from_onnx(model(helper.make_node("Pow", ["x", "five"], ["y"]))), [x])
    np.testing.assert_array_equal(found, x**5, strict=True)
    (found,) = run_graph(from_onnx(model(helper.make_node("Pow", ["x", "x"], ["y"]))), [x])
    np.testing.assert_array_equal(found, [0, 0, 0, -1, 1, 1, 4, 27, 256], strict=True)


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


def test_powers_of_integers_wrap_and_truncate() -> None:
    module = from_onnx(parsed("y = Pow(x, k)", 15, "int64[n] x, int64[m, 1] k"))
    x = np.array([0, 1, -1, 2, -3, 7, 10**10])
    with np.errstate(over="ignore"):
        for k in (0, 1, 2, 3, 5, 62, 63, 64, 2**62 + 1):
            (found,) = run_graph(module, [x, np.array([[k]])])
            expected = [pow(int(v), k, 1 << 64) for v in x]
            wrapped = [v - (1 << 64) if v >= 1 << 63 else v for v in expected]
            np.testing.assert_array_equal(found[0], wrapped)
    (found,) = run_graph(module, [x, np.array([[-1], [-2]])])
    np.testing.assert_array_equal(found, [[0, 1, -1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0]])


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_floats_beyond_packed_integers_wrap(name: str) -> None:
    import ml_dtypes
    from onnx import helper

    dtype = np.dtype(getattr(ml_dtypes, name))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    x = np.array([-9.7, -9, -8, -2, -1, 0, 1, 2, 3, 4, 7.9, 8, 15, 16, 17, np.nan], np.float32)
    node = helper.make_node("Cast", ["x"], ["y"], to=kind)
    (found,) = run_graph(from_onnx(NodeCase(node, (x,), (x.astype(dtype),), 25).model()), [x])
    bits = int(name[-1])
    whole = np.nan_to_num(np.trunc(x)).astype(int) % (1 << bits)
    expected = np.where(whole >= 1 << (bits - 1), whole - (1 << bits), whole)
    np.testing.assert_array_equal(found.astype(int), whole if name[0] == "u" else expected)
