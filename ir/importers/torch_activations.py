"""Import handlers of activation functions.

PyTorch can decompose most of them, but it traces the whole program for this, which takes longer
than the import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..symbolic import const_value
from .elementwise import convert, elementwise, rounded_once, where
from .shaping import reshape
from .tensors import Imported
from .torch_context import TorchContext, aten
from .torch_random import uniform_numbers
from .unsupported import UnsupportedFormError

_SELU = (1.6732632423543772, 1.0507009873554805)
"""The parameters of the self-normalizing unit: alpha and scale."""


class _Formula:
    """Element-wise operations of a tensor with numbers."""

    def __init__(self, t: TorchContext) -> None:
        self.t = t

    def apply(self, op: str, *operands: Imported | float) -> Imported:
        """Apply an operator to tensors of one dtype and numbers."""
        dtype = next(x.dtype for x in operands if isinstance(x, Imported))
        tensors = [x if isinstance(x, Imported) else self.t.number(x, dtype) for x in operands]
        return elementwise(self.t, op, tensors)

    def limited(self, x: Imported, low: float, high: float) -> Imported:
        return self.apply("minimum", self.apply("maximum", x, low), high)

    def choose(self, condition: Imported, x: Imported | float, y: Imported | float) -> Imported:
        dtype = next(v.dtype for v in (x, y) if isinstance(v, Imported))
        pair = [v if isinstance(v, Imported) else self.t.number(v, dtype) for v in (x, y)]
        return where(self.t, condition, *pair)

    def above(self, x: Imported, y: float) -> Imported:
        return self.apply("greater", x, y)


def _once(
    t: TorchContext, x: Imported, formula: Callable[[_Formula, Imported], Imported]
) -> Imported:
    """Compute a formula of one tensor, and round its result once."""

    def compute(wide: Imported) -> Imported:
        return formula(_Formula(t), wide)

    return rounded_once(t, compute, x)


@aten("hardtanh")
def hardtanh(t: TorchContext, x: Imported, low: float = -1, high: float = 1) -> Imported:
    """Import clamping to a range of numbers."""
    return _Formula(t).limited(x, low, high)


@aten("relu6")
def relu6(t: TorchContext, x: Imported) -> Imported:
    """Import clamping to the range from 0 to 6."""
    return _Formula(t).limited(x, 0, 6)


@aten("hardsigmoid")
def hardsigmoid(t: TorchContext, x: Imported) -> Imported:
    """Import the piecewise linear sigmoid."""
    return _once(t, x, lambda f, v: f.apply("divide", f.limited(f.apply("add", v, 3), 0, 6), 6))


@aten("hardswish")
def hardswish(t: TorchContext, x: Imported) -> Imported:
    """Import the product with the piecewise linear sigmoid."""

    def formula(f: _Formula, v: Imported) -> Imported:
        return f.apply("divide", f.apply("multiply", v, f.limited(f.apply("add", v, 3), 0, 6)), 6)

    return _once(t, x, formula)


@aten("leaky_relu")
def leaky_relu(t: TorchContext, x: Imported, slope: float = 0.01) -> Imported:
    """Import the unit with a slope for negative numbers."""
    return _once(t, x, lambda f, v: f.choose(f.above(v, 0), v, f.apply("multiply", v, slope)))


@aten("prelu")
def prelu(t: TorchContext, x: Imported, slopes: Imported) -> Imported:
    """Import the unit with a slope for negative numbers, or one per channel."""
    single = const_value(slopes.shape[0]) == 1 if slopes.rank else True
    if single:
        slopes = reshape(t, slopes, ())
    elif x.rank > 1:
        slopes = reshape(t, slopes, (slopes.shape[0], *(1,) * (x.rank - 2)))

    def compute(wide: Imported, weights: Imported) -> Imported:
        f = _Formula(t)
        return f.choose(f.above(wide, 0), wide, f.apply("multiply", weights, wide))

    return rounded_once(t, compute, x, slopes)


@aten("elu")
def elu(
    t: TorchContext, x: Imported, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Imported:
    """Import the exponential linear unit."""

    def formula(f: _Formula, v: Imported) -> Imported:
        power = f.apply("expm1", v if input_scale == 1 else f.apply("multiply", v, input_scale))
        positive = v if scale == 1 else f.apply("multiply", v, scale)
        return f.choose(f.above(v, 0), positive, f.apply("multiply", power, alpha * scale))

    return _once(t, x, formula)


@aten("selu")
def selu(t: TorchContext, x: Imported) -> Imported:
    """Import the self-normalizing exponential linear unit."""
    return elu(t, x, *_SELU)


@aten("celu")
def celu(t: TorchContext, x: Imported, alpha: float = 1) -> Imported:
    """Import the continuously differentiable exponential linear unit."""
    if alpha == 0:
        raise UnsupportedFormError("celu with alpha = 0 is not defined")
    return elu(t, x, alpha, 1, 1 / alpha)


@aten("softplus")
def softplus(t: TorchContext, x: Imported, beta: float = 1, threshold: float = 20) -> Imported:
    """Import the smooth rectifier, which is linear above a threshold."""

    def formula(f: _Formula, v: Imported) -> Imported:
        scaled = v if beta == 1 else f.apply("multiply", v, beta)
        smooth = f.apply("log1p", f.apply("exp", scaled))
        smooth = smooth if beta == 1 else f.apply("divide", smooth, beta)
        return f.choose(f.above(scaled, threshold), v, smooth)

    return _once(t, x, formula)


@aten("mish")
def mish(t: TorchContext, x: Imported) -> Imported:
    """Import the product with the hyperbolic tangent of the smooth rectifier."""

    def formula(f: _Formula, v: Imported) -> Imported:
        smooth = f.apply("log1p", f.apply("exp", v))
        return f.apply("multiply", v, f.apply("tanh", smooth))

    return _once(t, x, formula)


@aten("log_sigmoid")
def log_sigmoid(t: TorchContext, x: Imported) -> Imported:
    """Import the logarithm of the sigmoid."""

    def formula(f: _Formula, v: Imported) -> Imported:
        rest = f.apply("log1p", f.apply("exp", f.apply("negative", f.apply("abs", v))))
        return f.apply("subtract", f.apply("minimum", v, 0), rest)

    return _once(t, x, formula)


@aten("threshold")
def threshold(t: TorchContext, x: Imported, bound: float, value: float) -> Imported:
    """Import the replacement of numbers up to a bound; NaN stays."""
    f = _Formula(t)
    return f.choose(f.apply("less_equal", x, bound), value, x)


@aten("rrelu_with_noise_functional", "rrelu_with_noise")
def rrelu(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, noise: Imported, low: float = 1 / 8, high: float = 1 / 3,
    training: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported | list[Imported]:  # fmt: skip
    """Import the unit with a slope for negative numbers that is drawn, or the mean of its range."""
    if training:
        f, drawn = _Formula(t), uniform_numbers(t, x.shape, x.dtype)
        slope = f.apply("add", f.apply("multiply", drawn, high - low), low)
        noise = f.choose(f.apply("less_equal", x, 0), convert(t, slope, x.dtype), 1.0)
        found = elementwise(t, "multiply", [x, noise])
    else:
        found = leaky_relu(t, x, (low + high) / 2)
    return [found, noise] if t.operator.endswith("functional") else found
