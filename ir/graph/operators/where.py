"""Choose between two tensors element by element."""

from __future__ import annotations

import numpy as np

from ...loop.nodes import Element, Where as WhereElement
from ...symbolic import Expr, ne, select
from .binary import EITHER
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .inference import CallFacts
from .operator import operator
from .signature import OperandSpec, Signature


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
