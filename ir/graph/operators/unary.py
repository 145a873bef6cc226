"""Functions of one element: arithmetic, exponentials, trigonometry, rounding, tests."""

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
from .inference import CallFacts
from .operator import register
from .signature import DTypeClass, OperandSpec, Signature
from .special import erf, rounded, sigmoid

Apply = Callable[[Any], Any]
Symbolic = Callable[[Expr], Expr]


@dataclass(frozen=True)
class UnaryOperator(Elementwise):
    """A function of one element that the loop level has itself."""

    name: str
    signature: Signature
    op: UnaryOp
    apply: Apply
    symbolic: Symbolic | None = None

    def result_dtype(self, dtype: DType) -> DType:
        """Bool for the tests, else the operand's."""
        return bool_ if self.op in ("isnan", "isinf", "not") else dtype

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Compute integers symbolically where the function has a symbolic form."""
        return None if self.symbolic is None else self.symbolic(values[0])

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Apply the loop-level function."""
        del call
        return Unary(self.op, operands[0])

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function, keeping the dtype."""
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
