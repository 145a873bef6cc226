"""Comparison and logic operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import DType, bool_
from ...loop.nodes import Binary, BinaryOp, Compare, CompareOp, Element
from ...symbolic import Bool, Expr, eq, maximum, minimum, ne, select
from .binary import operands_of
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .operator import register
from .shape_inference import CallFacts
from .signature import Signature


@dataclass(frozen=True)
class CompareOperator(Elementwise):
    """An element-wise comparison of two operands.

    Parameters
    ----------
    x, y : tensor or number
        Shapes that broadcast and the same dtype, of the class listed below. At least one operand is
        a tensor; a number takes its dtype.

    Returns
    -------
    tensor
        The broadcast shape, dtype bool.

    Raises
    ------
    OperandError
        If the dtypes differ, or if both operands are numbers.
    ShapeMismatchError
        If the shapes do not broadcast.

    Attributes
    ----------
    op : str
        The loop-level comparison.
    apply : callable
        The NumPy reference.
    symbolic : callable
        The predicate on symbolic integers, for tensors with symbolic element values.

    Notes
    -----
    ================= ============ ======= ================= ==================
    Operator          Formula      Dtypes  NumPy             ONNX
    ================= ============ ======= ================= ==================
    ``equal``         ``x == y``   any     ``equal``         ``Equal``
    ``not_equal``     ``x != y``   any     ``not_equal``
    ``less``          ``x < y``    number  ``less``          ``Less``
    ``less_equal``    ``x <= y``   number  ``less_equal``    ``LessOrEqual``
    ``greater``       ``x > y``    number  ``greater``       ``Greater``
    ``greater_equal`` ``x >= y``   number  ``greater_equal`` ``GreaterOrEqual``
    ================= ============ ======= ================= ==================

    Examples
    --------
    >>> next(op for op in COMPARISONS if op.name == "less").reference((np.arange(3), 1))
    array([ True, False, False])
    """

    name: str
    signature: Signature
    op: CompareOp
    apply: Callable[[Any, Any], Any]
    symbolic: Callable[[Expr, Expr], Bool]

    def result_dtype(self, dtype: DType) -> DType:
        """Return bool."""
        del dtype
        return bool_

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return 1 if the predicate is true, else 0, as a symbolic term."""
        return select(self.symbolic(*values), 1, 0)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level comparison of two elements."""
        del call
        return Compare(self.op, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Compare with NumPy."""
        del run
        return np.asarray(self.apply(*operands), dtype=np.bool_)


@dataclass(frozen=True)
class LogicOperator(Elementwise):
    """An element-wise logical operator of two bool operands.

    Parameters
    ----------
    x, y : tensor or number
        Dtype bool, shapes that broadcast; at least one operand is a tensor.

    Returns
    -------
    tensor
        The broadcast shape, dtype bool.

    Attributes
    ----------
    op : str
        The loop-level function.
    apply : callable
        The NumPy reference.
    symbolic : callable
        The function on the integers 0 and 1, for tensors with symbolic element values.

    Notes
    -----
    =============== ============= ====== =============== =======
    Operator        Formula       Dtypes NumPy           ONNX
    =============== ============= ====== =============== =======
    ``logical_and`` ``x and y``   bool   ``logical_and`` ``And``
    ``logical_or``  ``x or y``    bool   ``logical_or``  ``Or``
    ``logical_xor`` ``x != y``    bool   ``logical_xor`` ``Xor``
    =============== ============= ====== =============== =======

    Examples
    --------
    >>> LOGIC[0].reference((np.array([True, False]), np.array([True])))
    array([ True, False])
    """

    name: str
    signature: Signature
    op: BinaryOp
    apply: Callable[[Any, Any], Any]
    symbolic: Callable[[Expr, Expr], Expr]

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the result as a symbolic term, 1 or 0."""
        return self.symbolic(*values)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to two elements."""
        del call
        return Binary(self.op, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function."""
        del run
        return np.asarray(self.apply(*operands), dtype=np.bool_)


_ANY, _NUMBERS, _BOOLS = operands_of("any"), operands_of("number"), operands_of("bool")

COMPARISONS = (
    CompareOperator("equal", _ANY, "eq", np.equal, eq),
    CompareOperator("not_equal", _ANY, "ne", np.not_equal, ne),
    CompareOperator("less", _NUMBERS, "lt", np.less, lambda x, y: x < y),
    CompareOperator("less_equal", _NUMBERS, "le", np.less_equal, lambda x, y: x <= y),
    CompareOperator("greater", _NUMBERS, "gt", np.greater, lambda x, y: x > y),
    CompareOperator("greater_equal", _NUMBERS, "ge", np.greater_equal, lambda x, y: x >= y),
)
LOGIC = (
    LogicOperator("logical_and", _BOOLS, "and", np.logical_and, minimum),
    LogicOperator("logical_or", _BOOLS, "or", np.logical_or, maximum),
    LogicOperator(
        "logical_xor", _BOOLS, "xor", np.logical_xor, lambda x, y: select(ne(x, y), 1, 0)
    ),
)
for _operator in (*COMPARISONS, *LOGIC):
    register(_operator)
