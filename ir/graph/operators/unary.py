"""Unary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...dtype import DType
from ...loop.element_functions import FUNCTIONS, ElementFunction, ElementFunctionError
from ...loop.nodes import Element, Unary
from ...symbolic import Expr, ne, select
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .operator import register
from .shape_inference import CallFacts
from .signature import OperandSpec, Signature
from .special import rounded

Symbolic = Callable[[Expr], Expr]


@dataclass(frozen=True)
class UnaryOperator(Elementwise):
    """An element-wise operator of one operand, implemented by one loop-level function.

    Parameters
    ----------
    x : tensor
        A dtype of the class listed below, any shape ``(...,)``.

    Returns
    -------
    tensor
        Shape ``(...,)``; dtype bool for ``isnan``, ``isinf`` and ``logical_not``, else the dtype of
        `x`.

    Attributes
    ----------
    function : ElementFunction
        The loop-level function, with its NumPy reference.
    symbolic : callable, optional
        The function on symbolic integers, for tensors with symbolic element values.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``round`` rounds halves to even.

    [table]

    Examples
    --------
    >>> next(op for op in UNARY if op.name == "round").reference((np.array([0.5, 1.5, 2.6]),))
    array([0., 2., 3.])
    """

    name: str
    signature: Signature
    function: ElementFunction
    symbolic: Symbolic | None = None

    def result_dtype(self, dtype: DType) -> DType:
        """Return bool for predicates, else the dtype of the operand."""
        return self.function.result_dtype(dtype)

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the symbolic form, or None if the function has none."""
        return None if self.symbolic is None else self.symbolic(values[0])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to an element."""
        del call
        return Unary(self.function.name, operands[0])

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function; a non-bool result has the dtype of the operand."""
        del run
        x = operands[0]
        out = np.asarray(rounded(self.function.arrays or self.function.reference, x))
        return out if out.dtype == np.bool_ else out.astype(x.dtype)


_NAMES: Final = {"neg": "negative", "not": "logical_not", "bitnot": "bitwise_not"}
_SYMBOLIC: Final[dict[str, Symbolic]] = {
    "neg": lambda v: -v,
    "not": lambda v: select(ne(v, 0), 0, 1),
}
_ROUNDING: Final = ("floor", "ceil", "round", "trunc")
"""The functions whose operators accept floats only: integers are rounded already."""


def _operator(function: ElementFunction) -> UnaryOperator:
    dtypes = "float" if function.name in _ROUNDING else function.operands
    if dtypes == "bits":
        raise ElementFunctionError(
            f"element function {function.name!r} of one operand is defined for integers and bool",
            hint="no class of operands of a graph operator consists of integers and bool",
        )
    return UnaryOperator(
        _NAMES.get(function.name, function.name),
        Signature((OperandSpec("x", dtypes=dtypes),)),
        function,
        _SYMBOLIC.get(function.name),
    )


UNARY = tuple(_operator(function) for function in FUNCTIONS.values() if function.arity == 1)
"""One operator per element function of one operand."""

for _unary in UNARY:
    register(_unary)


def _table() -> str:
    """Return the operators as a table of the documentation."""
    rows = [
        (f"``{o.name}``", f"``{o.function.name}``", o.signature.operands[0].dtypes) for o in UNARY
    ]
    head = ("Operator", "Element function", "Dtypes")
    widths = [max(len(r[k]) for r in (head, *rows)) for k in range(len(head))]
    rule = "  ".join("=" * w for w in widths)
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in (head, *rows)]
    body = [rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule]
    return "\n    ".join(body)


UnaryOperator.__doc__ = (UnaryOperator.__doc__ or "").replace("[table]", _table())
