"""Imported matrix products of 8-bit integers, compared with PyTorch and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_exported_program, from_onnx
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.script import to_text

RNG = np.random.default_rng(4)
ROWS, COLUMNS, DEPTH = 5, 6, 7


def numbers(dtype: type, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def model(a: Any, b: Any, zeros: dict[str, Any], *, vector: bool = False) -> Any:
    """Return a MatMulInteger with a constant right operand and constant zero points."""
    from onnx import helper, numpy_helper
    from onnx.helper import np_dtype_to_tensor_dtype

    names = ["a", "b", *("za" if "za" in zeros else "", "zb" if "zb" in zeros else "")]
    while not names[-1]:
        names.pop()
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", names, ["y"])],
        "product",
        [helper.make_tensor_value_info("a", np_dtype_to_tensor_dtype(a.dtype),
                                       [DEPTH] if vector else ["m", DEPTH])],
        [helper.make_tensor_value_info("y", 6, ["m", COLUMNS])],
        [numpy_helper.from_array(v, k) for k, v in {"b": b, **zeros}.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("left", [np.uint8, np.int8])
@pytest.mark.parametrize("right", [np.uint8, np.int8])
@pytest.mark.parametrize("zero_a", ["none", "zero", "one", "of one", "each"])
@pytest.mark.parametrize("zero_b", ["none", "zero", "one", "of one", "each"])
def test_matmul_integer_of_onnx(left: type, right: type, zero_a: str, zero_b: str) -> None:
    a, b = numbers(left, (ROWS, DEPTH)), numbers(right, (DEPTH, COLUMNS))
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    zeros: dict[str, Any] = {}
    for key, kind, dtype, each in (("za", zero_a, left, ROWS), ("zb", zero_b, right, COLUMNS)):
        shapes = {"zero": (), "one": (), "of one": (1,), "each": (each,)}
        if kind != "none":
            zeros[key] = numbers(dtype, shapes[kind]) * dtype(kind != "zero")
            zeros[key] = np.asarray(zeros[key], dtype)
    if "za" in zeros:
        za = zeros["za"].astype(np.int64)
        wide_a = wide_a - (za[:, None] if za.ndim else za)
    if "zb" in zeros:
        wide_b = wide_b - zeros["zb"].astype(np.int64)
    module = from_onnx(model(a, b, zeros))
    assert ("subtract(" in to_text(module)) == ({zero_a, zero_b} - {"none", "zero"} != set())
    (found,) = run_graph(module, [a])
    np.testing.assert_array_equal(found, wide_a @ wide_b)


def test_matmul_integer_agrees_with_the_reference_of_onnx() -> None:
    from onnx.reference import ReferenceEvaluator

    a, b = numbers(np.uint8, (ROWS, DEPTH)), numbers(np.int8, (DEPTH, COLUMNS))
    zeros = {"za": np.asarray(131, np.uint8), "zb": numbers(np.int8, (COLUMNS,))}
    made = model(a, b, zeros)
    (expected,) = ReferenceEvaluator(made).run(None, {"a": a})
    np.testing.assert_array_equal(tw.compile(from_onnx(made))(a), expected)


def test_a_vector_is_rejected_by_name() -> None:
    a, b = numbers(np.uint8, (DEPTH,)), numbers(np.int8, (DEPTH, COLUMNS))
    with pytest.raises(UnsupportedOperatorsError, match="MatMulInteger of a vector"):
        from_onnx(model(a, b, {}, vector=True))


def test_int_mm_of_pytorch() -> None:
    import torch
    from torch.export import Dim, export

    class Product(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch._int_mm(x, y)

    x, y = torch.from_numpy(numbers(np.int8, (24, 16))), torch.from_numpy(numbers(np.int8, (16, 8)))
    module = from_exported_program(
        export(Product(), (x, y), dynamic_shapes=({0: Dim("m", min=1)}, None))
    )
    assert "matmul_integer(" in to_text(module)
    run = tw.compile(module)
    for rows in (1, 17, 24):
        a = numbers(np.int8, (rows, 16))
        expected = a.astype(np.int32) @ y.numpy().astype(np.int32)
        np.testing.assert_array_equal(run(a, y.numpy()), expected)
