"""Functions of complex numbers as compositions of functions of their parts.

The formulas are those of W. Kahan, "Branch cuts for complex elementary functions" (1987): they
keep the sign of zeros, so both sides of a branch cut have their limits, and the error of a result
is relative to its absolute value. Operands near the largest and the smallest floats are scaled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf, log, pi, sqrt
from types import MappingProxyType
from typing import Final, TypeAlias

from ...ir.dtype import (
    DType,
    bool_,
)
from ...ir.loop.nodes import (
    Binary,
    Compare,
    CompareOp,
    Element,
    Number,
    Unary,
    Where,
)

Bind: TypeAlias = Callable[[Element, DType], Element]
Parts: TypeAlias = "tuple[Term, Term]"
Function: TypeAlias = "Callable[[Term, Term], Parts]"

SCALES: Final = {"f32": (2.0**60, 2.0**80), "f64": (2.0**500, 2.0**600)}
"""The magnitude above which, or below whose reciprocal, a number is scaled, and the factor."""

_GROWTH: Final = {"f32": (80.0, 52.0), "f64": (700.0, 380.0)}
"""Where ``cosh(x)`` is computed in three factors, and half of the exponent of two of them."""

_SATURATED: Final = {"f32": 11.0, "f64": 22.0}
"""Where the absolute value of ``tanh`` is 1 up to rounding."""

_LARGE: Final = {"f32": 2.0**60, "f64": 2.0**500}
"""Where an inverse function is a logarithm up to rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value or a condition in a formula.

    Parameters
    ----------
    make : callable
        Returns the element for the elements of the operands.
    operands : tuple of Term
        The operands.
    dtype : DType
        The dtype of the parts.
    kind : DType
        The dtype of the value: `dtype`, or bool for a condition.
    """

    make: Callable[..., Element]
    operands: tuple[Term, ...]
    dtype: DType
    kind: DType

    def number(self, value: float) -> Term:
        """Return a constant."""
        return leaf(Number(value, self.dtype), self.dtype)

    def _lift(self, other: Term | float) -> Term:
        return other if isinstance(other, Term) else self.number(other)

    def of(self, name: str, *others: Term | float) -> Term:
        """Return the result of an element function of this and other values."""
        node = Binary if others else Unary
        operands = (self, *map(self._lift, others))
        return Term(partial(node, name), operands, self.dtype, self.kind)

    def __add__(self, other: Term | float) -> Term:
        """Return the sum."""
        return self.of("add", other)

    def __sub__(self, other: Term | float) -> Term:
        """Return the difference."""
        return self.of("sub", other)

    def __mul__(self, other: Term | float) -> Term:
        """Return the product."""
        return self.of("mul", other)

    def __truediv__(self, other: Term | float) -> Term:
        """Return the quotient."""
        return self.of("div", other)

    def __neg__(self) -> Term:
        """Return the negation."""
        return self.of("neg")

    def __abs__(self) -> Term:
        """Return the absolute value."""
        return self.of("abs")

    def __and__(self, other: Term) -> Term:
        """Return whether both conditions hold."""
        return self.of("and", other)

    def __or__(self, other: Term) -> Term:
        """Return whether one of two conditions holds."""
        return self.of("or", other)

    def __invert__(self) -> Term:
        """Return whether a condition does not hold."""
        return self.of("not")

    def compare(self, op: CompareOp, other: Term | float) -> Term:
        """Return the result of a comparison."""
        operands = (self, self._lift(other))
        return Term(partial(Compare, op), operands, self.dtype, bool_)

    @property
    def is_zero(self) -> Term:
        """Whether the value is 0 of either sign."""
        return self.compare("eq", 0.0)

    @property
    def is_infinite(self) -> Term:
        """Whether the value is infinite."""
        return abs(self).compare("eq", inf)

    @property
    def is_finite(self) -> Term:
        """Whether the value is a finite number."""
        return (self - self).compare("eq", 0.0)

    def where(self, condition: Term, otherwise: Term | float) -> Term:
        """Return this value where a condition holds, else another one."""
        return Term(Where, (condition, self, self._lift(otherwise)), self.dtype, self.dtype)


def leaf(element: Element, dtype: DType) -> Term:
    """Return an element that may be used several times."""
    return Term(lambda: element, (), dtype, dtype)


def elements_of(terms: Sequence[Term], bind: Bind) -> tuple[Element, ...]:
    """Return the elements of terms; values that are used several times are bound to names."""
    uses: Counter[Term] = Counter(terms)
    ordered: dict[Term, None] = {}

    def visit(term: Term) -> None:
        if term not in ordered:
            for operand in term.operands:
                uses[operand] += 1
                visit(operand)
            ordered[term] = None

    for term in terms:
        visit(term)
    made: dict[Term, Element] = {}
    for term in ordered:
        element = term.make(*(made[operand] for operand in term.operands))
        shared = uses[term] > 1 and term.operands
        made[term] = bind(element, term.kind) if shared else element
    return tuple(made[term] for term in terms)


def _largest(x: Term, y: Term) -> Term:
    return abs(x).of("max", abs(y))


def _scale(x: Term, y: Term) -> tuple[Term, Term, float]:
    """Return whether a number is large, whether it is small, and the factor to scale it by."""
    limit, factor = SCALES[x.dtype.name]
    size = _largest(x, y)
    return size.compare("gt", limit), size.compare("lt", 1 / limit), factor


def logarithm(x: Term, y: Term) -> Parts:
    """Return ``log(abs(z)) + i * angle(z)``; near ``abs(z) = 1`` by ``log1p``."""
    large, small, factor = _scale(x, y)
    one, shift = x.number(1.0), log(factor)
    scale = x.number(1 / factor).where(large, x.number(factor).where(small, one))
    size = (x * scale).of("hypot", y * scale).of("log")
    offset = x.number(shift).where(large, x.number(-shift).where(small, 0.0))
    high, low = _largest(x, y), abs(x).of("min", abs(y))
    near = ((high - 1.0) * (high + 1.0) + low * low).of("log1p") * 0.5
    is_near = high.compare("gt", 0.5) & high.compare("lt", 2.0)
    return near.where(is_near, size + offset), y.of("atan2", x)


def _root(x: Term, y: Term) -> Parts:
    """Return the absolute values of the parts of the root of a number that needs no scaling."""
    t = (abs(x) + x.of("hypot", y)).of("sqrt") * sqrt(0.5)
    other = (abs(y) / (t * 2.0)).where(t.compare("ne", 0.0), 0.0)
    right = x.compare("ge", 0.0)
    return t.where(right, other), other.where(right, t)


def square_root(x: Term, y: Term) -> Parts:
    """Return the root with a real part of at least 0; its imaginary part has the sign of ``y``."""
    large, small, factor = _scale(x, y)
    one = x.number(1.0)
    scale = x.number(1 / factor).where(large, x.number(factor).where(small, one))
    back = x.number(sqrt(factor)).where(large, x.number(1 / sqrt(factor)).where(small, one))
    real, size = (part * back for part in _root(x * scale, y * scale))
    steep = y.is_infinite
    return (
        x.number(inf).where(steep, real),
        x.number(inf).where(steep, size).of("copysign", y),
    )


def _grown(x: Term) -> Callable[[Term], Parts]:
    """Return the function of p with the results ``p * sinh(x)`` and ``p * cosh(x)``."""
    limit, half = _GROWTH[x.dtype.name]
    size = abs(x)
    large = size.compare("gt", limit)
    rest = (size - 2 * half).of("exp")
    sinh, cosh = x.of("sinh"), x.of("cosh")

    def products(p: Term) -> Parts:
        beyond = ((p * exp(half)) * rest) * (0.5 * exp(half))
        odd = beyond * x.number(1.0).of("copysign", x)
        return odd.where(large, p * sinh), beyond.where(large, p * cosh)

    return products


def hyperbolic_sine(x: Term, y: Term) -> Parts:
    """Return ``sinh(x) * cos(y) + i * cosh(x) * sin(y)``."""
    grown = _grown(x)
    real, imag = grown(y.of("cos"))[0], grown(y.of("sin"))[1]
    kept = (x.is_zero | x.is_infinite) & ~y.is_finite
    return x.where(kept, real), y.where(y.is_zero, imag)


def hyperbolic_cosine(x: Term, y: Term) -> Parts:
    """Return ``cosh(x) * cos(y) + i * sinh(x) * sin(y)``."""
    grown = _grown(x)
    real, imag = grown(y.of("cos"))[1], grown(y.of("sin"))[0]
    infinite = x.is_infinite & ~y.is_finite
    sign = x.number(1.0).of("copysign", x)
    imag = (y * sign).where(y.is_zero, x.where(x.is_zero & ~y.is_finite, imag))
    return x.number(inf).where(infinite, real), imag


def hyperbolic_tangent(x: Term, y: Term) -> Parts:
    """Return ``tanh(z)`` from ``tan(y)`` and ``sinh(x)``, without cancellation near poles."""
    size = abs(x)
    saturated = size.compare("gt", _SATURATED[x.dtype.name])
    t, s = y.of("tan"), x.number(0.0).where(saturated, x).of("sinh")
    beta = t * t + 1.0
    root = (s * s + 1.0).of("sqrt")
    below = beta * (s * s) + 1.0
    decay = (-size).of("exp")
    small = ((y.of("sin") * decay) * (y.of("cos") * decay)) * 4.0
    small = small.where(y.is_finite, x.number(0.0).of("copysign", y))
    real = x.number(1.0).of("copysign", x).where(saturated, (beta * root) * s / below)
    imag = small.where(saturated, t / below)
    return x.where(x.is_zero, real), y.where(y.is_zero, imag)


def _beyond(x: Term, y: Term) -> tuple[Term, Term]:
    """Return whether an inverse function is a logarithm, and ``log(2 * abs(z))``."""
    large = _largest(x, y).compare("gt", _LARGE[x.dtype.name]) | x.is_infinite | y.is_infinite
    return large, logarithm(x, y)[0] + log(2)


def _inside(x: Term, large: Term) -> Term:
    """Return a value that is replaced by 0 where it would overflow."""
    return x.number(0.0).where(large, x)


def inverse_sine(x: Term, y: Term) -> Parts:
    """Return ``asin(z)`` from the roots of ``1 + z`` and ``1 - z``, with the signs of the parts."""
    large, size = _beyond(x, y)
    a, b = _inside(abs(x), large), _inside(abs(y), large)
    (p, q), (r, s) = _root(a + 1.0, b), _root(-(a - 1.0), b)
    real = a.of("atan2", p * r + q * s)
    imag = (p * s + q * r).of("asinh")
    real = abs(x).of("atan2", abs(y)).where(large, real)
    real = real.where(x.compare("ne", 0.0), x)
    return real.of("copysign", x), size.where(large, imag).of("copysign", y)


def inverse_cosine(x: Term, y: Term) -> Parts:
    """Return ``acos(z)`` from the roots of ``1 + z`` and ``1 - z``."""
    large, size = _beyond(x, y)
    a, b = _inside(x, large), _inside(abs(y), large)
    (p, q), (r, s) = _root(a + 1.0, b), _root(-(a - 1.0), b)
    real = abs(y).of("atan2", x).where(large, r.of("atan2", p) * 2.0)
    real = x.number(pi / 2).where(x.is_zero, real)
    imag = size.where(large, (p * s + q * r).of("asinh"))
    return real, -imag.of("copysign", y)


def inverse_hyperbolic_cosine(x: Term, y: Term) -> Parts:
    """Return ``acosh(z)`` from the roots of ``z + 1`` and ``z - 1``."""
    large, size = _beyond(x, y)
    a, b = _inside(x, large), _inside(abs(y), large)
    (p, q), (r, s) = _root(a + 1.0, b), _root(a - 1.0, b)
    real = size.where(large, (p * r + q * s).of("asinh"))
    imag = abs(y).of("atan2", x).where(large, s.of("atan2", p) * 2.0)
    return real, x.number(pi / 2).where(x.is_zero, imag).of("copysign", y)


def inverse_hyperbolic_tangent(x: Term, y: Term) -> Parts:
    """Return ``atanh(z)`` with the signs of the parts."""
    large = _largest(x, y).compare("gt", _LARGE[x.dtype.name]) | x.is_infinite | y.is_infinite
    a, b = _inside(abs(x), large), _inside(abs(y), large)
    left = -(a - 1.0)
    real = (a * 4.0 / (left * left + b * b)).of("log1p") * 0.25
    pole = ((b * b + 4.0).of("log") * 0.5 - b.of("log")) * 0.5
    real = pole.where(left.is_zero, real)
    distance = abs(x).of("hypot", abs(y))
    far = ((abs(x) / distance) / distance).where(distance.compare("lt", inf), 0.0)
    real = far.where(large, real)
    imag = (b * 2.0).of("atan2", left * (a + 1.0) - b * b) * 0.5
    far = x.number(pi / 2).where(y.compare("eq", y), y)
    imag = far.where(large, imag)
    imag = imag.where(~(left.is_zero & y.is_zero), 0.0)
    return x.where(x.is_zero, real).of("copysign", x), imag.of("copysign", y)


def _turned(function: Function) -> Function:
    """Return ``-i * f(i * z)``: sine for hyperbolic sine, and the others accordingly."""

    def turned(x: Term, y: Term) -> Parts:
        real, imag = function(-y, x)
        return imag, -real

    return turned


def cosine(x: Term, y: Term) -> Parts:
    """Return ``cosh(i * z)``."""
    return hyperbolic_cosine(-y, x)


FUNCTIONS_OF_PARTS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "log": logarithm,
        "sqrt": square_root,
        "sinh": hyperbolic_sine,
        "cosh": hyperbolic_cosine,
        "tanh": hyperbolic_tangent,
        "sin": _turned(hyperbolic_sine),
        "cos": cosine,
        "tan": _turned(hyperbolic_tangent),
        "asin": inverse_sine,
        "acos": inverse_cosine,
        "acosh": inverse_hyperbolic_cosine,
        "atanh": inverse_hyperbolic_tangent,
        "asinh": _turned(inverse_sine),
        "atan": _turned(inverse_hyperbolic_tangent),
    }
)
"""The formulas of functions of one complex number, from its parts to those of the result."""
