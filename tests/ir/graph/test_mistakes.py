"""Calls that cannot be right are refused by a named error that says what and where."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.ir.dtype import bool_, f32, i64
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
    """Parameters by a short name: ``x23`` is f32 of (2, 3), ``i3`` is i64, ``b3`` is bool."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("main")

    def __call__(self, text: str) -> Any:
        dtype = {"x": f32, "i": i64, "b": bool_}[text[0]]
        return self.builder.param(text, TensorInfo(tuple(as_expr(int(d)) for d in text[1:]), dtype))


WRONG: list[tuple[type[Exception], str, str, list[Any], dict[str, Any]]] = [
    (OperandError, "add takes 2 operands, 1 given", "add", ["x2"], {}),
    (OperandError, "matmul takes 2 operands, 3 given", "matmul", ["x22", "x22", "x22"], {}),
    (OperandError, "concat takes 1 to any number", "concat", [], {}),
    (OperandError, "expected a tensor, got a number", "tanh", [2.0], {}),
    (OperandError, "expected a tuple of integers", "reshape", ["x2", "x2"], {}),
    (OperandError, "dtype i64 is not float", "exp", ["i2"], {}),
    (OperandError, "dtype i64 is no byte", "matmul_integer", ["i22", "i22"], {}),
    (OperandError, "dtype bool is not number", "matmul", ["b22", "b22"], {}),
    (OperandError, "dtype f32 is not bool", "logical_not", ["x2"], {}),
    (OperandError, "dtype f32 is not integer", "take", ["x2", "x2"], {}),
    (OperandError, "dtype i64 differs from f32 of operand 'x'", "add", ["x2", "i2"], {}),
    (OperandError, "number 2.5 does not fit dtype i64", "add", ["i2", 2.5], {}),
    (OperandError, "number 1 does not fit dtype bool", "equal", ["b2", 1], {}),
    (OperandError, "at least one operand has to be a tensor", "add", [1, 2], {}),
    (OperandError, "expected one of f32, i64, bool", "where", ["b2", 1, 2.0], {}),
    (OperandError, "rank 1, shape (2,); expected at least 2", "matmul", ["x2", "x22"], {}),
    (OperandError, "rank 1, shape (2,); expected 2", "gather_elements", ["x22", "i2"], {}),
    (OperandError, "2 integers for 1 axes", "strided_slice", ["x9", (1, 2), (4,)], {"axes": (0,)}),
    (OperandError, "have to be positive", "strided_slice", ["x9", (1,), (4,)],
     {"axes": (0,), "steps": (-1,)}),
    (OperandError, "2 integers; expected start, stop and step", "arange", [(0, 3)], {}),
    (OperandError, "step 0 has to be positive", "arange", [(0, 3, 0)], {}),
    (OperandError, "expected queries, keys and offset", "causal_mask", [(3, 3)], {}),
    (OperandError, "0 normalised axes", "layer_norm", ["x22"], {"axes": 0}),
    (OperandError, "1 integers for rank 2", "update_slice", ["x33", "x11", (0,)], {}),
    (OperandError, "does not fit the 1 axes", "permute_dims", ["x22"], {"axes": (0,)}),
    (OperandError, "cannot broadcast (2, 2) to (2,)", "broadcast_to", ["x22", (2,)], {}),
    (OperatorAttributeError, "no attribute 'axes'", "softmax", ["x2"], {"axes": (0,)}),
    (OperatorAttributeError, "has to be of type int", "softmax", ["x2"], {"axis": "last"}),
    (OperatorAttributeError, "has to be of type bool", "sum", ["x2"], {"keepdims": 1}),
    (OperatorAttributeError, "axis 2 is out of range for rank 2", "softmax", ["x22"], {"axis": 2}),
    (OperatorAttributeError, "axes (1, 1) repeats an axis", "sum", ["x22"], {"axes": (1, -1)}),
    (OperatorAttributeError, "attribute 'approximate' is 'fast'", "gelu", ["x2"],
     {"approximate": "fast"}),
    (OperatorAttributeError, "attribute 'dtype' is missing", "cast", ["x2"], {}),
    (ShapeMismatchError, "cannot broadcast (2,) with (3,): 2 and 3", "add", ["x2", "x3"], {}),
    (ShapeMismatchError, "inner dimensions are: 3 and 2", "matmul", ["x23", "x23"], {}),
    (ShapeMismatchError, "cannot reshape (2, 3) to (4,)", "reshape", ["x23", (4,)], {}),
    (ShapeMismatchError, "dimension -1 is negative", "reshape", ["x2", (-1,)], {}),
    (ShapeMismatchError, "dimension -1 is negative", "full", [(-1,), 0.0], {"dtype": "f32"}),
    (ShapeMismatchError, "cannot broadcast (2,) to (3,)", "broadcast_to", ["x2", (3,)], {}),
    (ShapeMismatchError, "axis 1 has: 2 and 3", "concat", ["x22", "x23"], {"axis": 0}),
    (ShapeMismatchError, "slice [1, 4) of axis 0 of 3 elements", "strided_slice",
     ["x3", (1,), (4,)], {"axes": (0,)}),
    (ShapeMismatchError, "do not make up axis 0", "split", ["x5", (2, 2)], {}),
    (ShapeMismatchError, "cannot drop axis 0 of (2,)", "squeeze", ["x2"], {"axes": (0,)}),
    (ShapeMismatchError, "weight (3,) does not fit (2,)", "layer_norm", ["x2", "x3"], {}),
    (ShapeMismatchError, "exceed (2, 2) in axis 1", "gather_elements", ["x22", "i13"], {}),
    (ShapeMismatchError, "updates (1, 2) do not fit (2, 2)", "index_copy",
     ["x32", "i2", "x12"], {}),
    (ShapeMismatchError, "axis 0 of updates and indices: 1 and 2", "scatter_elements",
     ["x22", "i22", "x12"], {}),
    (ShapeMismatchError, "leaves (3,) in axis 0", "update_slice", ["x3", "x2", (2,)], {}),
    (ShapeMismatchError, "has no elements", "argmax", ["x0"], {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "message", "op", "args", "attributes"), WRONG, ids=[f"{w[2]}-{w[1]}" for w in WRONG]
)
def test_wrong_calls_are_refused(
    error: type[Exception], message: str, op: str, args: list[Any], attributes: dict[str, Any]
) -> None:
    tensor = Tensors()
    given = [tensor(a) if isinstance(a, str) else a for a in args]
    with pytest.raises(error) as caught:
        tensor.builder.emit(op, *given, **attributes)
    assert message in str(caught.value)
    assert op in str(caught.value)


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_refuses_wrong_operands(op: str) -> None:
    """One operand too many, a value that is no tensor, a tensor of unknown shape."""
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
def test_every_operator_refuses_unknown_attributes(op: str) -> None:
    from tests.ir.graph.cases import CASES
    from tests.ir.graph.test_operators import Program

    program = Program(next(c for c in CASES if c.op == op))
    call: Any = program.call
    with pytest.raises(OperatorAttributeError, match="no attribute 'colour'"):
        OPERATORS[op].infer(call.args, (*call.attributes, ("colour", "red")))


def test_an_unknown_operator_is_told_its_neighbours() -> None:
    with pytest.raises(UnknownOperatorError, match="no operator 'sofmax'") as caught:
        get_operator("sofmax")
    assert "softmax" in caught.value.hint


def test_indices_out_of_range_are_refused_by_the_reference() -> None:
    import numpy as np

    for op, args in (
        ("take", [np.ones(3), np.array([3])]),
        ("take", [np.ones(3), np.array([-1])]),
        ("index", [np.ones(3), np.array([5])]),
    ):
        with pytest.raises(OperandError, match=r"is outside \[0, 3\)"):
            get_operator(op).reference(args)


def test_symbols_that_can_never_agree_are_refused() -> None:
    n = var("n", lower=0)
    builder = GraphBuilder("main")
    x = builder.param("x", TensorInfo((n,), f32))
    y = builder.param("y", TensorInfo((n + 2,), f32))
    with pytest.raises(ShapeMismatchError, match="cannot broadcast"):
        builder.emit("add", x, y)
