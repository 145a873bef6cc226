"""Unary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import DType, bool_
from ...loop.nodes import Element, Unary, UnaryOp
from ...symbolic import Expr, ne, select
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .operator import register
from .shape_inference import CallFacts
from .signature import DTypeClass, OperandSpec, Signature
from .special import erf, rounded, sigmoid

Apply = Callable[[Any], Any]
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
    op : str
        The loop-level function.
    apply : callable
        The NumPy reference.
    symbolic : callable, optional
        The function on symbolic integers, for tensors with symbolic element values.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``round`` rounds halves to even.

    =============== ==================== ======= ================ ==============
    Operator        Formula              Dtypes  NumPy            ONNX
    =============== ==================== ======= ================ ==============
    ``negative``    ``-x``               number  ``negative``     ``Neg``
    ``abs``         ``|x|``              number  ``abs``          ``Abs``
    ``sign``        ``-1, 0 or 1``       number  ``sign``         ``Sign``
    ``exp``         ``e ** x``           float   ``exp``          ``Exp``
    ``expm1``       ``e ** x - 1``       float   ``expm1``
    ``log``         ``ln(x)``            float   ``log``          ``Log``
    ``log1p``       ``ln(1 + x)``        float   ``log1p``
    ``sqrt``        ``x ** 0.5``         float   ``sqrt``         ``Sqrt``
    ``rsqrt``       ``1 / sqrt(x)``      float
    ``sigmoid``     ``1 / (1 + e**-x)``  float                    ``Sigmoid``
    ``tanh``        ``tanh(x)``          float   ``tanh``         ``Tanh``
    ``erf``         ``erf(x)``           float                    ``Erf``
    ``sin``         ``sin(x)``           float   ``sin``          ``Sin``
    ``cos``         ``cos(x)``           float   ``cos``          ``Cos``
    ``floor``       ``floor(x)``         float   ``floor``        ``Floor``
    ``ceil``        ``ceil(x)``          float   ``ceil``         ``Ceil``
    ``round``       nearest integer      float   ``rint``         ``Round``
    ``trunc``       ``trunc(x)``         float   ``trunc``
    ``isnan``       ``x != x``           float   ``isnan``        ``IsNaN``
    ``isinf``       ``|x| == inf``       float   ``isinf``        ``IsInf``
    ``logical_not`` ``not x``            bool    ``logical_not``  ``Not``
    ``bitwise_not`` ``~x``               integer ``invert``       ``BitwiseNot``
    =============== ==================== ======= ================ ==============

    Examples
    --------
    >>> next(op for op in UNARY if op.name == "round").reference((np.array([0.5, 1.5, 2.6]),))
    array([0., 2., 3.])
    """

    name: str
    signature: Signature
    op: UnaryOp
    apply: Apply
    symbolic: Symbolic | None = None

    def result_dtype(self, dtype: DType) -> DType:
        """Return bool for predicates, else the dtype of the operand."""
        return bool_ if self.op in ("isnan", "isinf", "not") else dtype

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the symbolic form, or None if the function has none."""
        return None if self.symbolic is None else self.symbolic(values[0])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to an element."""
        del call
        return Unary(self.op, operands[0])

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function; a non-bool result has the dtype of the operand."""
        del run
        x = operands[0]
        out = np.asarray(rounded(self.apply, x))
        return out if out.dtype == np.bool_ else out.astype(x.dtype)


def _inverse_root(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _unary(
    name: str,
    op: UnaryOp,
    apply: Apply,
    dtypes: DTypeClass = "float",
    symbolic: Symbolic | None = None,
) -> UnaryOperator:
    signature = Signature((OperandSpec("x", dtypes=dtypes),))
    return UnaryOperator(name, signature, op, apply, symbolic)


UNARY = (
    _unary("negative", "neg", np.negative, "number", lambda v: -v),
    _unary("abs", "abs", np.abs, "number"),
    _unary("sign", "sign", np.sign, "number"),
    _unary("exp", "exp", np.exp),
    _unary("expm1", "expm1", np.expm1),
    _unary("log", "log", np.log),
    _unary("log1p", "log1p", np.log1p),
    _unary("sqrt", "sqrt", np.sqrt),
    _unary("rsqrt", "rsqrt", _inverse_root),
    _unary("sigmoid", "sigmoid", sigmoid),
    _unary("tanh", "tanh", np.tanh),
    _unary("erf", "erf", erf),
    _unary("sin", "sin", np.sin),
    _unary("cos", "cos", np.cos),
    _unary("floor", "floor", np.floor),
    _unary("ceil", "ceil", np.ceil),
    _unary("round", "round", np.rint),
    _unary("trunc", "trunc", np.trunc),
    _unary("isnan", "isnan", np.isnan),
    _unary("isinf", "isinf", np.isinf),
    _unary("logical_not", "not", np.logical_not, "bool", lambda v: select(ne(v, 0), 0, 1)),
    _unary("bitwise_not", "bitnot", np.invert, "integer"),
)
for _operator in UNARY:
    register(_operator)
