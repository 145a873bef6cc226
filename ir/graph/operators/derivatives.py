"""Derivatives of element functions, stated in graph-level operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ..nodes import Operand, ScalarLiteral, Value, operand_info
from .composition import Composer
from .gradients import zeros

UnaryRule: TypeAlias = Callable[[Composer, Operand, Operand, Operand], Operand]
"""The cotangent of ``x`` from ``(graph, x, y, g)``: the operand, the result, its cotangent."""

BinaryRule: TypeAlias = Callable[[Composer, Operand, Operand, Operand, Operand], Operand]
"""The cotangent of one operand from ``(graph, x, y, z, g)``, with the result ``z``."""

_LN_2: Final = math.log(2.0)
_LN_10: Final = math.log(10.0)
_TWO_OVER_ROOT_PI: Final = 2.0 / math.sqrt(math.pi)


def _times(graph: Composer, x: Operand | float, *factors: Operand | float) -> Value:
    value = graph.emit("multiply", x, factors[0])
    for factor in factors[1:]:
        value = graph.emit("multiply", value, factor)
    return value


def _over(graph: Composer, x: Operand | float, y: Operand | float) -> Value:
    return graph.emit("divide", x, y)


def _minus(graph: Composer, x: Operand) -> Value:
    return graph.emit("negative", x)


def _square(graph: Composer, x: Operand) -> Value:
    return graph.emit("multiply", x, x)


def _plus_one(graph: Composer, x: Operand) -> Value:
    return graph.emit("add", x, 1.0)


def _one_minus(graph: Composer, x: Operand) -> Value:
    return graph.emit("subtract", 1.0, x)


def _root(graph: Composer, x: Operand) -> Value:
    return graph.emit("rsqrt", x)


def _erf(graph: Composer, x: Operand, g: Operand) -> Value:
    bell = graph.emit("exp", _minus(graph, _square(graph, x)))
    return _times(graph, g, bell, _TWO_OVER_ROOT_PI)


def _flat(graph: Composer, x: Operand, y: Operand, g: Operand) -> Value:
    """Return the derivative of a piecewise constant function."""
    del y, g
    return zeros(graph, operand_info(x))


UNARY_DERIVATIVES: Final[Mapping[str, UnaryRule]] = {
    "negative": lambda b, _x, _y, g: _minus(b, g),
    "abs": lambda b, x, _y, g: _times(b, g, b.emit("sign", x)),
    "exp": lambda b, _x, y, g: _times(b, g, y),
    "exp2": lambda b, _x, y, g: _times(b, g, y, _LN_2),
    "expm1": lambda b, _x, y, g: _times(b, g, _plus_one(b, y)),
    "log": lambda b, x, _y, g: _over(b, g, x),
    "log2": lambda b, x, _y, g: _over(b, g, _times(b, x, _LN_2)),
    "log10": lambda b, x, _y, g: _over(b, g, _times(b, x, _LN_10)),
    "log1p": lambda b, x, _y, g: _over(b, g, _plus_one(b, x)),
    "sqrt": lambda b, _x, y, g: _over(b, _times(b, g, 0.5), y),
    "rsqrt": lambda b, _x, y, g: _times(b, g, y, y, y, -0.5),
    "sigmoid": lambda b, _x, y, g: _times(b, g, y, _one_minus(b, y)),
    "tanh": lambda b, _x, y, g: _times(b, g, _one_minus(b, _square(b, y))),
    "erf": lambda b, x, _y, g: _erf(b, x, g),
    "erfc": lambda b, x, _y, g: _minus(b, _erf(b, x, g)),
    "erfinv": lambda b, _x, y, g: _times(
        b, g, b.emit("exp", _square(b, y)), 1.0 / _TWO_OVER_ROOT_PI
    ),
    "lgamma": lambda b, x, _y, g: _times(b, g, b.emit("digamma", x)),
    "sin": lambda b, x, _y, g: _times(b, g, b.emit("cos", x)),
    "cos": lambda b, x, _y, g: _minus(b, _times(b, g, b.emit("sin", x))),
    "tan": lambda b, _x, y, g: _times(b, g, _plus_one(b, _square(b, y))),
    "asin": lambda b, x, _y, g: _times(b, g, _root(b, _one_minus(b, _square(b, x)))),
    "acos": lambda b, x, _y, g: _minus(b, _times(b, g, _root(b, _one_minus(b, _square(b, x))))),
    "atan": lambda b, x, _y, g: _over(b, g, _plus_one(b, _square(b, x))),
    "sinh": lambda b, x, _y, g: _times(b, g, b.emit("cosh", x)),
    "cosh": lambda b, x, _y, g: _times(b, g, b.emit("sinh", x)),
    "asinh": lambda b, x, _y, g: _times(b, g, _root(b, _plus_one(b, _square(b, x)))),
    "acosh": lambda b, x, _y, g: _times(b, g, _root(b, b.emit("subtract", _square(b, x), 1.0))),
    "atanh": lambda b, x, _y, g: _over(b, g, _one_minus(b, _square(b, x))),
    "floor": _flat,
    "ceil": _flat,
    "round": _flat,
    "trunc": _flat,
    "sign": _flat,
}
"""The derivative of each operator of one operand that has one, by name."""


def _product_of(graph: Composer, g: Operand, other: Operand) -> Operand:
    return graph.emit("multiply", g, other)


def _chosen(comparison: str) -> tuple[BinaryRule, BinaryRule]:
    """Return the rules of an extreme: equal operands share the cotangent equally."""

    def share(graph: Composer, own: Operand, other: Operand, g: Operand) -> Operand:
        half = graph.emit("where", graph.emit("equal", own, other), _times(graph, g, 0.5), 0.0)
        return graph.emit("where", graph.emit(comparison, own, other), g, half)

    return (
        lambda b, x, y, _z, g: share(b, x, y, g),
        lambda b, x, y, _z, g: share(b, y, x, g),
    )


def _radius(graph: Composer, x: Operand, y: Operand) -> Value:
    """Return the sum of the squares of the operands of ``atan2``."""
    return graph.emit("add", _square_of(graph, x), _square_of(graph, y))


def _square_of(graph: Composer, x: Operand) -> Operand | float:
    return float(x.value) ** 2 if isinstance(x, ScalarLiteral) else _square(graph, x)


BINARY_DERIVATIVES: Final[Mapping[str, tuple[BinaryRule, BinaryRule]]] = {
    "add": (lambda _b, _x, _y, _z, g: g, lambda _b, _x, _y, _z, g: g),
    "subtract": (lambda _b, _x, _y, _z, g: g, lambda b, _x, _y, _z, g: _minus(b, g)),
    "multiply": (
        lambda b, _x, y, _z, g: _product_of(b, g, y),
        lambda b, x, _y, _z, g: _product_of(b, g, x),
    ),
    "divide": (
        lambda b, _x, y, _z, g: _over(b, g, y),
        lambda b, _x, y, z, g: _minus(b, _over(b, _times(b, g, z), y)),
    ),
    "maximum": _chosen("greater"),
    "minimum": _chosen("less"),
    "atan2": (
        lambda b, x, y, _z, g: _over(b, _times(b, g, y), _radius(b, x, y)),
        lambda b, x, y, _z, g: _minus(b, _over(b, _times(b, g, x), _radius(b, x, y))),
    ),
    "hypot": (
        lambda b, x, _y, z, g: _over(b, _times(b, g, x), z),
        lambda b, _x, y, z, g: _over(b, _times(b, g, y), z),
    ),
}
"""The derivatives of each operator of two operands that has them, by name."""
