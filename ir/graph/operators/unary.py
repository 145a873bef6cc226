"""Unary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...dtype import DType, from_numpy
from ...loop.element_functions import FUNCTIONS, ElementFunction, ElementFunctionError
from ...loop.nodes import Element, Unary
from ...symbolic import Expr, ne, select
from ..nodes import Operand
from .composition import Composer
from .derivatives import UNARY_DERIVATIVES
from .elementwise import Elementwise, table
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .operator import register
from .shape_inference import CallFacts
from .signature import DTypeClass, OperandSpec, Signature
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
        Shape ``(...,)``; dtype bool for ``isnan``, ``isinf`` and ``logical_not``, the dtype of the
        parts for ``abs``, ``real``, ``imag`` and ``angle`` of complex numbers, else the dtype of
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
        """Return the dtype of the result of the function."""
        return self.function.result_dtype(dtype)

    def accepts(self, dtype: DType) -> bool:
        """Return whether the function is defined for a dtype."""
        return self.function.accepts(dtype)

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the symbolic form, or None if the function has none."""
        return None if self.symbolic is None else self.symbolic(values[0])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to an element."""
        del call
        return Unary(self.function.name, operands[0])

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function; the result has the dtype that the table states."""
        del run
        x = operands[0]
        out = np.asarray(rounded(self.function.arrays or self.function.reference, x))
        return out.astype(self.function.result_dtype(from_numpy(x.dtype)).numpy)

    @property
    def has_gradient(self) -> bool:
        """Whether the function has a derivative."""
        return self.name in UNARY_DERIVATIVES

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Multiply the cotangent by the derivative of the function."""
        del position
        rule = UNARY_DERIVATIVES.get(self.name)
        return rule and rule(graph, call.args[0], call.result, call.cotangent(graph))


_SYMBOLIC: Final[dict[str, Symbolic]] = {
    "neg": lambda v: -v,
    "not": lambda v: select(ne(v, 0), 0, 1),
}
_ROUNDING: Final = ("floor", "ceil", "round", "trunc")
"""The functions whose operators accept floats only: integers are rounded already."""


_CLASSES: Final[Mapping[str, DTypeClass]] = {
    "field": "field",
    "number": "number",
    "inexact": "inexact",
    "float": "float",
    "integer": "integer",
    "bitwise": "integer",
    "bool": "bool",
    "complex": "complex",
}
"""The operands of an operator by those of its function."""


def _operator(function: ElementFunction) -> UnaryOperator:
    dtypes = "float" if function.name in _ROUNDING else _CLASSES.get(function.operands)
    if dtypes is None:
        raise ElementFunctionError(
            f"element function {function.name!r} of one operand has operands {function.operands!r}",
            hint=f"operators have operands {', '.join(_CLASSES)}",
        )
    return UnaryOperator(
        function.names.operator,
        Signature((OperandSpec("x", dtypes=dtypes),)),
        function,
        _SYMBOLIC.get(function.name),
    )


UNARY = tuple(
    _operator(function)
    for function in FUNCTIONS.values()
    if function.arity == 1 and function.names.operator
)
"""One operator per element function of one operand that names an operator."""

for _unary in UNARY:
    register(_unary)


def _table() -> str:
    """Return the operators as a table of the documentation."""
    rows = [
        (f"``{o.name}``", f"``{o.function.name}``", o.signature.operands[0].dtypes) for o in UNARY
    ]
    return table(("Operator", "Element function", "Dtypes"), rows)


UnaryOperator.__doc__ = (UnaryOperator.__doc__ or "").replace("[table]", _table())
