"""Arithmetic of two elements, broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...loop.nodes import Binary, BinaryOp, Element, Number, Unary
from ...symbolic import Expr, const_value, maximum, minimum
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .inference import CallFacts
from .operator import operator, register
from .signature import DTypeClass, OperandKind, OperandSpec, Signature
from .special import rounded

Apply = Callable[[Any, Any], Any]
Symbolic = Callable[[Expr, Expr], "Expr | None"]
EITHER: tuple[OperandKind, ...] = ("tensor", "number")


def operands_of(dtypes: DTypeClass) -> Signature:
    """Give the signature of two operands that broadcast."""
    return Signature((OperandSpec("x", EITHER, dtypes), OperandSpec("y", EITHER, dtypes)))


def _exact_floordiv(x: Expr, y: Expr) -> Expr | None:
    return None if const_value(y) == 0 else x // y


def _exact_mod(x: Expr, y: Expr) -> Expr | None:
    return None if const_value(y) == 0 else x % y


@dataclass(frozen=True)
class BinaryOperator(Elementwise):
    """A function of two elements that the loop level has itself."""

    name: str
    signature: Signature
    op: BinaryOp
    apply: Apply
    symbolic: Symbolic | None = None

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Compute integers symbolically where the function has a symbolic form."""
        return None if self.symbolic is None else self.symbolic(*values)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Apply the loop-level function."""
        del call
        return Binary(self.op, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function, keeping the dtype."""
        del run
        return np.asarray(rounded(self.apply, *operands)).astype(operands[0].dtype)


_NUMBERS = operands_of("number")
_INTEGERS = operands_of("integer")

BINARY = (
    BinaryOperator("add", _NUMBERS, "add", np.add, lambda x, y: x + y),
    BinaryOperator("subtract", _NUMBERS, "sub", np.subtract, lambda x, y: x - y),
    BinaryOperator("multiply", _NUMBERS, "mul", np.multiply, lambda x, y: x * y),
    BinaryOperator("divide", operands_of("float"), "div", np.divide),
    BinaryOperator("floor_divide", _NUMBERS, "floordiv", np.floor_divide, _exact_floordiv),
    BinaryOperator("mod", _NUMBERS, "mod", np.mod, _exact_mod),
    BinaryOperator("maximum", _NUMBERS, "max", np.maximum, maximum),
    BinaryOperator("minimum", _NUMBERS, "min", np.minimum, minimum),
    BinaryOperator("bitwise_and", _INTEGERS, "and", np.bitwise_and),
    BinaryOperator("bitwise_or", _INTEGERS, "or", np.bitwise_or),
    BinaryOperator("bitwise_xor", _INTEGERS, "xor", np.bitwise_xor),
)
for _binary in BINARY:
    register(_binary)


@operator
class Power(Elementwise):
    """``x ** y`` of floats; the exponents 2, 0.5 and -0.5 as product and roots."""

    name = "power"
    signature = operands_of("float")

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Use the cheaper form where the exponent is a number that has one."""
        del call
        x, y = operands
        match y:
            case Number(value=2.0):
                return Binary("mul", x, x)
            case Number(value=0.5):
                return Unary("sqrt", x)
            case Number(value=-0.5):
                return Unary("rsqrt", x)
            case _:
                return Binary("pow", x, y)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Raise to the power."""
        del run
        return np.asarray(rounded(np.power, *operands)).astype(operands[0].dtype)
