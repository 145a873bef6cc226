"""Comparisons and logic, broadcasting; the results are truth values."""

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
from .inference import CallFacts
from .operator import register
from .signature import Signature


@dataclass(frozen=True)
class CompareOperator(Elementwise):
    """A comparison of two elements."""

    name: str
    signature: Signature
    op: CompareOp
    apply: Callable[[Any, Any], Any]
    symbolic: Callable[[Expr, Expr], Bool]

    def result_dtype(self, dtype: DType) -> DType:
        """Bool."""
        del dtype
        return bool_

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Give 1 or 0, or a choice between them."""
        return select(self.symbolic(*values), 1, 0)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Compare."""
        del call
        return Compare(self.op, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Compare."""
        del run
        return np.asarray(self.apply(*operands), dtype=np.bool_)


@dataclass(frozen=True)
class LogicOperator(Elementwise):
    """A function of two truth values."""

    name: str
    signature: Signature
    op: BinaryOp
    apply: Callable[[Any, Any], Any]
    symbolic: Callable[[Expr, Expr], Expr]

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Give 1 or 0."""
        return self.symbolic(*values)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Apply the loop-level function."""
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
