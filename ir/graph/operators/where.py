"""The selection operator."""

from __future__ import annotations

import numpy as np

from ...dtype import DType, bool_, f32, i64
from ...loop.nodes import Element, Where as WhereElement
from ...symbolic import Expr, ne, select
from ..nodes import Operand
from .binary import EITHER
from .composition import Composer
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .operator import operator
from .shape_inference import CallFacts
from .signature import OperandSpec, Signature, kind_of


@operator
class Where(Elementwise):
    """Select elements by a condition: ``x`` if the condition is true, else ``y``.

    Parameters
    ----------
    condition : tensor
        Dtype bool; its shape broadcasts with those of `x` and `y`.
    x, y : tensor or number
        Any dtype, the same for both. A number takes the dtype of the tensor; two numbers have dtype
        f32, i64 or bool according to their Python type.

    Returns
    -------
    tensor
        The broadcast shape of all operands, the dtype of `x` and `y`.

    Raises
    ------
    OperandError
        If the dtypes of `x` and `y` differ.
    ShapeMismatchError
        If the shapes do not broadcast.

    Notes
    -----
    NumPy: ``where``; ONNX: ``Where``.

    Examples
    --------
    >>> Where().reference((np.array([True, False]), np.array([1.0, 2.0]), 0.0))
    array([1., 0.])
    """

    name = "where"
    same = (1, 2)
    signature = Signature(
        (
            OperandSpec("condition", dtypes="bool"),
            OperandSpec("x", EITHER),
            OperandSpec("y", EITHER),
        )
    )

    def common_dtype(self, call: CallFacts) -> DType:
        """Return the dtype of ``x`` and ``y``; that of the literals if both are numbers."""
        if any(kind_of(a) == "tensor" for a in call.args[1:]):
            return super().common_dtype(call)
        first, second = call.literal(1), call.literal(2)
        if first.dtype not in (f32, i64, bool_) or second.dtype != first.dtype:
            dtypes = f"{first.dtype} and {second.dtype}"
            message = f"expected numbers of the same dtype (f32, i64 or bool), got {dtypes}"
            raise call.error(1, message, "use `full` for one of the numbers")
        return first.dtype

    def evaluate(self, run: Evaluation) -> Array:
        """Select with NumPy; two numbers have the dtype of their Python type."""
        if any(isinstance(a, np.ndarray) for a in run.args[1:]):
            return super().evaluate(run)
        value = run.number(1)
        dtype = bool_ if isinstance(value, bool) else i64 if isinstance(value, int) else f32
        numbers = (np.asarray(run.number(k), run.dtype_of(dtype)) for k in (1, 2))
        return self.compute(run, (run.array(0), *numbers))

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the selection as a symbolic term."""
        return select(ne(values[0], 0), values[1], values[2])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level selection."""
        del call
        return WhereElement(*operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Select with NumPy."""
        del run
        return np.where(*operands)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Pass the cotangent where the operand is selected."""
        g = call.cotangent(graph)
        sides = (g, 0.0) if position == 1 else (0.0, g)
        return graph.emit("where", call.args[0], *sides)
