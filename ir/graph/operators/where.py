"""Choose between two tensors element by element."""

from __future__ import annotations

import numpy as np

from ...dtype import DType, bool_, f32, i64
from ...loop.nodes import Element, Where as WhereElement
from ...symbolic import Expr, ne, select
from .binary import EITHER
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .inference import CallFacts
from .operator import operator
from .signature import OperandSpec, Signature, kind_of


@operator
class Where(Elementwise):
    """``x`` where the condition holds, else ``y``; all three broadcast."""

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
        """Two numbers have the dtype that numbers have by themselves: f32, i64 or bool."""
        if any(kind_of(a) == "tensor" for a in call.args[1:]):
            return super().common_dtype(call)
        first, second = call.literal(1), call.literal(2)
        if first.dtype not in (f32, i64, bool_) or second.dtype != first.dtype:
            message = f"numbers of {first.dtype} and {second.dtype}; expected one of f32, i64, bool"
            raise call.error(1, message, "use `full` for one of them")
        return first.dtype

    def evaluate(self, run: Evaluation) -> Array:
        """Choose; two numbers have the dtype that numbers have by themselves."""
        if any(isinstance(a, np.ndarray) for a in run.args[1:]):
            return super().evaluate(run)
        value = run.number(1)
        dtype = bool_ if isinstance(value, bool) else i64 if isinstance(value, int) else f32
        numbers = (np.asarray(run.number(k), run.dtype_of(dtype)) for k in (1, 2))
        return self.compute(run, (run.array(0), *numbers))

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Choose symbolically."""
        return select(ne(values[0], 0), values[1], values[2])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Choose."""
        del call
        return WhereElement(*operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Choose."""
        del run
        return np.where(*operands)
