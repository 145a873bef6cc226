"""Quantization operators of ONNX, on the test cases of the ONNX package for one node."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import MalformedModelError
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.script import to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES = (
    "quantizelinear", "dequantizelinear", "dynamicquantizelinear", "matmulinteger", "qlinearmatmul",
)  # fmt: skip
OTHERS = ("float4", "e4m3fnuz", "e5m2fnuz", "expanded")
"""Dtypes that Tilewright lacks, in names of cases."""
OPSET = 25


@cache
def cases() -> dict[str, tuple[Any, list[Any], list[Any]]]:
    """Return node, inputs and expected results of each case by its name."""
    found: dict[str, tuple[Any, list[Any], list[Any]]] = {}

    def expect(node: Any, inputs: Sequence[Any], outputs: Sequence[Any], name: str, **_: Any):
        found.setdefault(name, (node, list(map(array, inputs)), list(map(array, outputs))))

    for file in FILES:
        module = importlib.import_module(f"onnx.backend.test.case.node.{file}")
        kept, module.expect = module.expect, expect
        try:
            for class_ in vars(module).values():
                for name in vars(class_) if isinstance(class_, type) else ():
                    if name.startswith("export"):
                        getattr(class_, name)()
        finally:
            module.expect = kept
    return {n: c for n, c in found.items() if not any(o in n for o in OTHERS)}


def array(value: Any) -> np.ndarray[Any, Any]:
    from onnx import TensorProto, numpy_helper

    return np.asarray(numpy_helper.to_array(value) if isinstance(value, TensorProto) else value)


QUANTIZE = (
    "", "_axis", "_e4m3fn", "_e5m2", "_uint16", "_int16", "_uint4", "_int4", "_uint2", "_int2",
    "_blocked_asymmetric", "_blocked_symmetric",
)  # fmt: skip
DEQUANTIZE = (
    "", "_axis", "_e4m3fn", "_e4m3fn_float16", "_e4m3fn_zero_point", "_e5m2", "_uint16", "_int16",
    "_uint4", "_int4", "_uint2", "_int2", "_blocked",
)  # fmt: skip
NAMES = [
    *(f"test_quantizelinear{n}" for n in QUANTIZE),
    *(f"test_dequantizelinear{n}" for n in DEQUANTIZE),
    *(f"test_dynamicquantizelinear{n}" for n in ("", "_max_adjusted", "_min_adjusted")),
    "test_matmulinteger",
    *(
        f"test_qlinearmatmul_{rank}_{dtype}_{scale}"
        for rank in ("2D", "3D")
        for dtype in ("uint8", "int8")
        for scale in ("float32", "float16")
    ),
]


def model(node: Any, inputs: list[Any], outputs: list[Any], constants: tuple[int, ...]) -> Any:
    """Return a model of one node; some inputs are constants."""
    from onnx import helper, numpy_helper
    from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

    names = [n for n in node.input if n]
    values = dict(zip(names, inputs, strict=True))
    held = [names[k] for k in constants]
    infos = {
        n: make_tensor_value_info(n, np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in [*values.items(), *zip(node.output, outputs, strict=True)]
    }
    graph = helper.make_graph(
        [node], "node", [infos[n] for n in names if n not in held],
        [infos[n] for n in node.output],
        [numpy_helper.from_array(values[n], n) for n in held],
    )  # fmt: skip
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opset, ir_version=11)


def same(have: Any, want: np.ndarray[Any, Any]) -> bool:
    """Return whether arrays have one dtype and equal elements."""
    left, right = (np.asarray(a).astype(np.float64) for a in (have, want))
    return have.dtype == want.dtype and np.array_equal(left, right, equal_nan=True)


def test_all_cases_of_onnx_are_listed() -> None:
    assert set(cases()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    node, inputs, outputs = cases()[name]
    for constants in ((), tuple(range(1, len(inputs)))):
        module = from_onnx(model(node, inputs, outputs, constants))
        given = [a for k, a in enumerate(inputs) if k not in constants]
        found = run_graph(module, given)
        assert all(same(*pair) for pair in zip(found, outputs, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "test_quantizelinear_axis", "test_quantizelinear_e4m3fn", "test_quantizelinear_uint4",
        "test_quantizelinear_int2", "test_quantizelinear_blocked_asymmetric",
        "test_dequantizelinear_int4", "test_dequantizelinear_blocked",
        "test_dequantizelinear_e5m2", "test_dynamicquantizelinear_max_adjusted",
        "test_qlinearmatmul_2D_uint8_float32",
    ],
)  # fmt: skip
def test_compiled_code_returns_the_results_of_onnx(name: str) -> None:
    node, inputs, outputs = cases()[name]
    found = tw.compile(from_onnx(model(node, inputs, outputs, ())))(*inputs)
    results = found if isinstance(found, tuple) else (found,)
    assert all(same(*pair) for pair in zip(results, outputs, strict=True))


def single(op: str, names: list[str], values: list[Any], result: Any, **attributes: Any) -> Any:
    from onnx import helper

    node = helper.make_node(op, names, ["y"], **attributes)
    return model(node, values, [result], tuple(range(1, len(values))))


X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
Q = X.astype(np.int8)


def test_a_zero_point_of_another_dtype_than_the_operand_is_rejected() -> None:
    given = single("DequantizeLinear", ["x", "s", "z"], [Q, np.float32(1), np.uint8(3)], X)
    with pytest.raises(MalformedModelError, match=r"one dtype, got i8 and u8"):
        from_onnx(given)


def test_a_zero_point_of_another_dtype_than_the_result_is_rejected() -> None:
    given = single(
        "QuantizeLinear", ["x", "s", "z"], [X, np.float32(1), np.int8(3)], Q, output_dtype=2
    )
    with pytest.raises(MalformedModelError, match="output_dtype is u8, but the zero point has"):
        from_onnx(given)


def test_a_zero_point_of_8_bit_floats_other_than_0_is_rejected() -> None:
    from ml_dtypes import float8_e4m3fn

    zero = np.ones((), float8_e4m3fn)
    given = single(
        "QuantizeLinear", ["x", "s", "z"], [X, np.float32(1), zero], X.astype(float8_e4m3fn)
    )
    with pytest.raises(MalformedModelError, match=r"zero point of dtype f8_e4m3 must be 0, got 1"):
        from_onnx(given)


def test_scales_of_another_shape_are_rejected() -> None:
    each = single("DequantizeLinear", ["x", "s"], [Q, np.ones(3, np.float32)], X)
    with pytest.raises(tw.TilewrightError, match="needs one scale each: 3 != 4"):
        from_onnx(each)
    blocks = single(
        "DequantizeLinear", ["x", "s"], [Q, np.ones((3, 3), np.float32)], X, block_size=2
    )
    with pytest.raises(tw.TilewrightError, match="blocks of 2 elements along axis 1: 3 != 2"):
        from_onnx(blocks)


def test_a_partial_last_block_has_a_scale() -> None:
    scale = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    given = single("DequantizeLinear", ["x", "s"], [Q, scale], X, block_size=3)
    (found,) = run_graph(from_onnx(given), [Q])
    np.testing.assert_array_equal(found, Q * np.repeat(scale, 3, axis=1)[:, :4])


def test_a_product_of_8_bit_floats_is_rejected_by_name() -> None:
    from ml_dtypes import float8_e4m3fn
    from onnx import helper

    x, one = np.ones((2, 2), float8_e4m3fn), np.float32(1)
    zero = np.zeros((), float8_e4m3fn)
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    given = model(node, [x, one, zero, x, one, zero, one, zero], [x], ())
    with pytest.raises(UnsupportedOperatorsError, match="QLinearMatMul of dtype f8_e4m3"):
        from_onnx(given)


def test_quantized_weights_are_constants_of_the_graph() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=2),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    from ml_dtypes import int4
    from onnx import numpy_helper
    from onnx.helper import make_tensor_value_info

    w = np.arange(-8, 8).reshape(4, 4).astype(int4)
    s = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    graph = helper.make_graph(
        nodes, "product", [make_tensor_value_info("x", 1, ["m", 4])],
        [make_tensor_value_info("y", 1, ["m", 4])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(s, "s")],
    )  # fmt: skip
    opset = [helper.make_opsetid("", OPSET)]
    module = from_onnx(helper.make_model(graph, opset_imports=opset, ir_version=11))
    assert module.constants["w"].dtype.name == "i4"
    assert "dequantize_linear(" in to_text(module)
    run = tw.compile(module)
    weight = w.astype(np.float32) * np.repeat(s, 2, axis=0)
    for rows in (1, 3, 17):
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) - 5
        np.testing.assert_array_equal(run(x), x @ weight)
