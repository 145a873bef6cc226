"""Invalid operator calls are rejected with a named error, a message and a location."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tilewright.ir.dtype import bool_, c64, f8_e4m3, f32, i4, i8, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import ObjectInfo, TensorInfo
from tilewright.ir.graph.operators import (
    OPERATORS,
    OperandError,
    OperatorAttributeError,
    ShapeMismatchError,
    UnknownOperatorError,
    get_operator,
)
from tilewright.ir.graph.operators.signature import Signature
from tilewright.ir.symbolic import as_expr, var


class Tensors:
    """Parameters by a short name: ``x23`` is f32 of shape (2, 3), ``i3`` is i64, ``b3`` is bool.

    ``q3`` is i8, ``p3`` is i4, ``f3`` is f8_e4m3 and ``c3`` is c64.
    """

    def __init__(self) -> None:
        self.builder = GraphBuilder("main")

    def __call__(self, text: str) -> Any:
        dtypes = {"x": f32, "i": i64, "b": bool_, "q": i8, "p": i4, "f": f8_e4m3, "c": c64}
        dtype = dtypes[text[0]]
        return self.builder.param(text, TensorInfo(tuple(as_expr(int(d)) for d in text[1:]), dtype))


WRONG: list[tuple[type[Exception], str, str, list[Any], dict[str, Any]]] = [
    (OperandError, "expected 2 operands, got 1", "add", ["x2"], {}),
    (OperandError, "expected 2 operands, got 3", "matmul", ["x22", "x22", "x22"], {}),
    (OperandError, "expected at least 1 operand, got 0", "concat", [], {}),
    (OperandError, "expected a tensor, got a number", "tanh", [2.0], {}),
    (OperandError, "expected a tuple of integers", "reshape", ["x2", "x2"], {}),
    (OperandError, "expected a floating-point or complex dtype, got i64", "exp", ["i2"], {}),
    (OperandError, "the operator is not defined for dtype i4", "popcount", ["p2"], {}),
    (OperandError, "elements of dtype c64 cannot be compared", "sort", ["c2"], {}),
    (OperandError, "elements of dtype c64 cannot be compared", "argsort", ["c2"], {}),
    (OperandError, "elements of dtype c64 cannot be compared", "topk", ["c2", (1,)], {}),
    (OperandError, "not defined for dtype f8_e4m3", "nextafter", ["f2", "f2"], {}),
    (OperandError, "expected dtype i8 or u8, got i64", "matmul_integer", ["i22", "i22"], {}),
    (OperandError, "expected a numeric dtype, got bool", "matmul", ["b22", "b22"], {}),
    (OperandError, "expected a dtype of real numbers, got c64", "maximum", ["c2", "c2"], {}),
    (OperandError, "expected a dtype of real numbers, got c64", "less", ["c2", "c2"], {}),
    (OperandError, "expected a dtype of real numbers, got c64", "max", ["c22"], {}),
    (OperandError, "expected a dtype of real numbers, got c64", "cast", ["c2"], {"dtype": "i32"}),
    (OperandError, "expected an integer dtype, got c64", "take", ["x22", "c2"], {}),
    (OperandError, "dtype f32 differs from dtype c64", "multiply", ["c2", "x2"], {}),
    (OperandError, "expected a complex dtype, got f32", "real", ["x2"], {}),
    (OperandError, "expected dtype f32 or f64, got c64", "complex", ["c2", "c2"], {}),
    (ShapeMismatchError, "last dimension of (2, 3): 3 != 2", "view_as_complex", ["x23"], {}),
    (OperandError, "expected dtype bool, got f32", "logical_not", ["x2"], {}),
    (OperandError, "expected an integer dtype, got f32", "take", ["x2", "x2"], {}),
    (OperandError, "dtype i64 differs from dtype f32 of operand 'x'", "add", ["x2", "i2"], {}),
    (OperandError, "number 2.5 is not a value of dtype i64", "add", ["i2", 2.5], {}),
    (OperandError, "number 1 is not a value of dtype bool", "equal", ["b2", 1], {}),
    (OperandError, "number 300 is not a value of dtype i8: its values are -128 to 127",
     "add", ["q2", 300], {}),
    (OperandError, "number -129 is not a value of dtype i8", "floor_divide", [-129, "q2"], {}),
    (OperandError, "number 8 is not a value of dtype i4: its values are -8 to 7",
     "mod", ["p2", 8], {}),
    (OperandError, "number 128 is not a value of dtype i8", "less", ["q2", 128], {}),
    (OperandError, "number 300 is not a value of dtype i8", "where", ["b2", "q2", 300], {}),
    (OperandError, "number 300 is not a value of dtype i8", "left_shift", ["q2", 300], {}),
    (OperandError, "number 9223372036854775808 is not a value of dtype i64",
     "add", ["i2", 2**63], {}),
    (OperandError, "number of 1329 bits is not a value of dtype f32: it is larger than the",
     "add", ["x2", 10**400], {}),
    (OperandError, "number of 1329 bits is not a value of dtype i8: its values are",
     "multiply", ["q2", 10**400], {}),
    (OperandError, "number 1000.0 is not a value of dtype f8_e4m3: its largest value is 448.0",
     "add", ["f2", 1000.0], {}),
    (OperandError, "number inf is not a value of dtype f8_e4m3", "minimum", ["f2", inf], {}),
    (OperandError, "number -500 is not a value of dtype f8_e4m3", "full", [(2,), -500],
     {"dtype": "f8_e4m3"}),
    (OperandError, "number of 1329 bits is not a value of dtype f16", "full", [(2,), -10**400],
     {"dtype": "f16"}),
    (OperandError, "number -1 is not a value of dtype u4: its values are 0 to 15",
     "full", [(2,), -1], {"dtype": "u4"}),
    (OperandError, "number nan is not a value of dtype i8", "full", [(2,), float("nan")],
     {"dtype": "i8"}),
    (OperandError, "expected at least one tensor operand", "add", [1, 2], {}),
    (OperandError, "same dtype (f32, i64 or bool), got i64 and f32", "where", ["b2", 1, 2.0], {}),
    (OperandError, "expected rank at least 2, got rank 1 (shape (2,))",
     "matmul", ["x2", "x22"], {}),
    (OperandError, "expected rank 2, got rank 1 (shape (2,))",
     "gather_elements", ["x22", "i2"], {}),
    (OperandError, "expected one integer per axis of (0,), got 2 integers",
     "strided_slice", ["x9", (1, 2), (4,)], {"axes": (0,)}),
    (OperandError, "expected one positive step per axis of (0,), got steps=(-1,)",
     "strided_slice", ["x9", (1,), (4,)],
     {"axes": (0,), "steps": (-1,)}),
    (OperandError, "expected 3 integers (start, stop, step), got 2", "arange", [(0, 3)], {}),
    (OperandError, "expected a positive or a negative step, got 0", "arange", [(0, 3, 0)], {}),
    (OperandError, "expected 3 integers (queries, keys, offset), got 2",
     "causal_mask", [(3, 3)], {}),
    (OperandError, "expected axes >= 1, got axes=0", "layer_norm", ["x22"], {"axes": 0}),
    (OperandError, "expected one integer per dimension of x (2), got 1",
     "update_slice", ["x33", "x11", (0,)], {}),
    (OperandError, "expected one axis per dimension (2), got axes=(0,)",
     "permute_dims", ["x22"], {"axes": (0,)}),
    (OperandError, "cannot broadcast (2, 2) to (2,)", "broadcast_to", ["x22", (2,)], {}),
    (OperatorAttributeError, "no attribute 'axes'", "softmax", ["x2"], {"axes": (0,)}),
    (OperatorAttributeError, "must be an int, got 'last'", "softmax", ["x2"], {"axis": "last"}),
    (OperatorAttributeError, "must be a bool, got 1", "sum", ["x2"], {"keepdims": 1}),
    (OperatorAttributeError, "axis 2 is out of range for rank 2", "softmax", ["x22"], {"axis": 2}),
    (OperatorAttributeError, "axes (1, 1) contains an axis twice",
     "sum", ["x22"], {"axes": (1, -1)}),
    (OperatorAttributeError, "attribute 'approximate' does not accept 'fast'", "gelu", ["x2"],
     {"approximate": "fast"}),
    (OperatorAttributeError, "required attribute 'dtype' is missing", "cast", ["x2"], {}),
    (ShapeMismatchError, "cannot broadcast (2,) with (3,): 2 != 3", "add", ["x2", "x3"], {}),
    (ShapeMismatchError, "cannot multiply (2, 3) by (2, 3); inner dimensions: 3 != 2",
     "matmul", ["x23", "x23"], {}),
    (ShapeMismatchError, "cannot reshape (2, 3) to (4,); number of elements: 6 != 4",
     "reshape", ["x23", (4,)], {}),
    (ShapeMismatchError, "expected non-negative dimensions, got -1", "reshape", ["x2", (-1,)], {}),
    (ShapeMismatchError, "expected non-negative dimensions, got -1",
     "full", [(-1,), 0.0], {"dtype": "f32"}),
    (ShapeMismatchError, "cannot broadcast (2,) to (3,)", "broadcast_to", ["x2", (3,)], {}),
    (ShapeMismatchError, "cannot concatenate (2, 2) and (2, 3); axis 1: 2 != 3",
     "concat", ["x22", "x23"], {"axis": 0}),
    (ShapeMismatchError, "slice [1, 4) must be within axis 0 of extent 3", "strided_slice",
     ["x3", (1,), (4,)], {"axes": (0,)}),
    (ShapeMismatchError, "sizes (2, 2) must sum to axis 0 of (5,): 4 != 5",
     "split", ["x5", (2, 2)], {}),
    (ShapeMismatchError, "cannot squeeze axis 0 of (2,): 2 != 1",
     "squeeze", ["x2"], {"axes": (0,)}),
    (ShapeMismatchError, "expected weight of shape (2,), got (3,): 3 != 2",
     "layer_norm", ["x2", "x3"], {}),
    (ShapeMismatchError, "indices of shape (1, 3) must not exceed x of shape (2, 2) in axis 1",
     "gather_elements", ["x22", "i13"], {}),
    (ShapeMismatchError, "expected updates of shape (2, 2), got (1, 2); axis 0: 1 != 2",
     "index_copy",
     ["x32", "i2", "x12"], {}),
    (ShapeMismatchError, "updates (1, 2) and indices (2, 2) differ in axis 0: 1 != 2",
     "scatter_elements",
     ["x22", "i22", "x12"], {}),
    (ShapeMismatchError, "update of shape (2,) at (2,) must be within x of shape (3,); axis 0",
     "update_slice", ["x3", "x2", (2,)], {}),
    (ShapeMismatchError, "axis 0 of shape (0,) must have at least one element",
     "argmax", ["x0"], {}),
    (OperandError, "expected dtype i4, that of the quantized elements, got i8",
     "dequantize_linear", ["p24", "x", "q"], {}),
    (OperandError, "expected dtype i8, that of the quantized elements, got i4",
     "quantize_linear", ["x24", "x", "p"], {"dtype": "i8"}),
    (OperandError, "zero point 8 is not in -8 to 7, the values of dtype i4",
     "dequantize_linear", ["p24", "x", 8], {}),
    (OperandError, "dtype f8_e4m3 has no zero point",
     "dequantize_linear", ["f24", "x", "f"], {}),
    (OperandError, "expected a floating-point dtype, got i8",
     "dequantize_linear", ["p24", "q"], {}),
    (OperandError, "expected an integer dtype of at most 32 bits or a float dtype of 8 bits, got",
     "dequantize_linear", ["x24", "x"], {}),
    (OperandError, "expected a floating-point dtype or i32, got i8",
     "quantize_linear", ["q24", "x"], {"dtype": "i8"}),
    (OperandError, "rank 1 for one scale per slice of a tensor of shape (2, 4), got shape (1, 4)",
     "dequantize_linear", ["p24", "x14"], {"axis": 0}),
    (OperandError, "rank 2 for one scale per block of 2 elements of a tensor of shape (2, 4), got",
     "dequantize_linear", ["p24", "x4"], {"block_size": 2}),
    (OperatorAttributeError, "the size of a block must be at least 0, got -1",
     "dequantize_linear", ["p24", "x"], {"block_size": -1}),
    (OperatorAttributeError, "axis 2 is out of range for rank 2",
     "dequantize_linear", ["p24", "x4"], {"axis": 2}),
    (OperatorAttributeError, "f32 is not a quantized dtype",
     "quantize_linear", ["x24", "x"], {"dtype": "f32"}),
    (OperatorAttributeError, "dtype must be a floating-point dtype, got i8",
     "dequantize_linear", ["p24", "x"], {"dtype": "i8"}),
    (OperatorAttributeError, "precision must be a floating-point dtype, got i8",
     "quantize_linear", ["x24", "x"], {"dtype": "i8", "precision": "i8"}),
    (ShapeMismatchError, "axis 1 of shape (2, 4) needs one scale each: 3 != 4",
     "dequantize_linear", ["p24", "x3"], {}),
    (ShapeMismatchError, "for (2, 4): dimension 1; blocks of 3 elements along axis 1: 1 != 2",
     "dequantize_linear", ["p24", "x21"], {"block_size": 3}),
    (ShapeMismatchError, "zero_point of shape (1, 2) for (2, 4): dimension 0: 1 != 2",
     "dequantize_linear", ["p24", "x22", "p12"], {"block_size": 2}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "message", "op", "args", "attributes"), WRONG, ids=[f"{w[2]}-{w[1]}" for w in WRONG]
)
def test_invalid_calls_are_rejected(
    error: type[Exception], message: str, op: str, args: list[Any], attributes: dict[str, Any]
) -> None:
    tensor = Tensors()
    given = [tensor(a) if isinstance(a, str) else a for a in args]
    with pytest.raises(error) as caught:
        tensor.builder.emit(op, *given, **attributes)
    assert message in str(caught.value)
    assert op in str(caught.value)


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_rejects_invalid_operands(op: str) -> None:
    """Reject an extra operand, a value that is not a tensor, and a tensor of unknown shape."""
    builder = GraphBuilder("main")
    signature: Signature = OPERATORS[op].signature
    unknown = builder.param("unknown", TensorInfo(None, f32))
    something = builder.param("something", ObjectInfo())
    takes_tensor = "tensor" in signature.operands[0].kinds
    count = len(signature.operands)
    with pytest.raises(OperandError, match=op):
        OPERATORS[op].infer((something,) * count)
    if takes_tensor:
        with pytest.raises(OperandError, match="unknown"):
            OPERATORS[op].infer((unknown,) * count)
    if not signature.operands[-1].variadic:
        with pytest.raises(OperandError, match="operands"):
            OPERATORS[op].infer((unknown,) * (count + 1))


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_rejects_unknown_attributes(op: str) -> None:
    from tests.ir.graph.cases import CASES
    from tests.ir.graph.test_operators import Program

    program = Program(next(c for c in CASES if c.op == op))
    call: Any = program.call
    with pytest.raises(OperatorAttributeError, match="no attribute 'color'"):
        OPERATORS[op].infer(call.args, (*call.attributes, ("color", "red")))


def test_the_error_of_an_unknown_operator_lists_similar_ones() -> None:
    with pytest.raises(UnknownOperatorError, match="no operator 'sofmax'") as caught:
        get_operator("sofmax")
    assert "softmax" in caught.value.hint


def test_the_reference_rejects_indices_out_of_range() -> None:
    import numpy as np

    for op, args in (
        ("take", [np.ones(3), np.array([3])]),
        ("take", [np.ones(3), np.array([-1])]),
        ("index", [np.ones(3), np.array([5])]),
    ):
        with pytest.raises(OperandError, match=r"is not in \[0, 3\)"):
            get_operator(op).reference(args)


def test_symbols_that_always_differ_are_rejected() -> None:
    n = var("n", lower=0)
    builder = GraphBuilder("main")
    x = builder.param("x", TensorInfo((n,), f32))
    y = builder.param("y", TensorInfo((n + 2,), f32))
    with pytest.raises(ShapeMismatchError, match="cannot broadcast"):
        builder.emit("add", x, y)
