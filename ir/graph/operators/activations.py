"""Activation functions: relu, silu, gelu."""

from __future__ import annotations

import math

import numpy as np

from ...loop.element_functions import erf_of_arrays, sigmoid_of_arrays
from ...loop.nodes import Binary, Element, Unary
from ..nodes import Operand
from .composition import Composer, narrowed_to, widened
from .elementwise import Elementwise, number_like
from .evaluation import Array, Evaluation, ReferenceArg
from .gradients import GradientCall
from .operator import operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature
from .special import rounded

_CUBIC = 0.044715
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_ROOT_HALF = math.sqrt(0.5)


def _times(left: Element, right: Element) -> Element:
    return Binary("mul", left, right)


@operator
class Relu(Elementwise):
    """Apply the rectified linear unit: ``max(x, 0)``.

    Parameters
    ----------
    x : tensor
        A numeric dtype, any shape ``(...,)``.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    ONNX: ``Relu``. NaN is propagated.

    Examples
    --------
    >>> Relu().reference((np.array([-1.0, 2.0]),))
    array([0., 2.])
    """

    name = "relu"
    signature = Signature((OperandSpec("x", dtypes="number"),))

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the maximum of an element and zero."""
        del call
        return Binary("max", operands[0], number_like(0.0, operands[0]))

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Compute the maximum with zero."""
        del run
        return np.maximum(operands[0], np.zeros_like(operands[0])).astype(operands[0].dtype)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Pass the cotangent where the operand is positive."""
        del position
        positive = graph.emit("greater", call.args[0], 0.0)
        return graph.emit("where", positive, call.cotangent(graph), 0.0)


def _silu(x: Array) -> Array:
    return x * sigmoid_of_arrays(x)


@operator
class Silu(Elementwise):
    """Apply the sigmoid linear unit (swish): ``x * sigmoid(x)``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, any shape ``(...,)``.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``Swish``.

    Examples
    --------
    >>> Silu().reference((np.array([-1.0, 0.0, 1.0]),)).round(4)
    array([-0.2689,  0.    ,  0.7311])
    """

    name = "silu"
    signature = Signature((OperandSpec("x", dtypes="float"),))

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return an element multiplied by its sigmoid."""
        del call
        return _times(operands[0], Unary("sigmoid", operands[0]))

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Multiply by the sigmoid."""
        del run
        x = operands[0]
        return np.asarray(rounded(_silu, x)).astype(x.dtype)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Multiply by the sigmoid."""
        x = widened(call, graph)
        return (narrowed_to(call, graph, graph.emit("multiply", x, graph.emit("sigmoid", x))),)


@operator
class Gelu(Elementwise):
    """Apply the Gaussian error linear unit: ``x * Φ(x)``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, any shape ``(...,)``.
    approximate : str, default "none"
        ``"none"`` computes ``x / 2 * (1 + erf(x / sqrt(2)))``; ``"tanh"`` computes
        ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``Gelu``.

    References
    ----------
    Hendrycks and Gimpel, Gaussian Error Linear Units (GELUs), 2016, section 2.

    Examples
    --------
    >>> Gelu().reference((np.array([-1.0, 0.0, 1.0]),)).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """

    name = "gelu"
    signature = Signature(
        (OperandSpec("x", dtypes="float"),),
        (AttributeSpec("approximate", "str", "none", ("none", "tanh")),),
    )

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return half of an element times one plus erf or tanh."""
        x = operands[0]
        gate = _tanh_gate(x) if call.attributes.text("approximate") == "tanh" else _erf_gate(x)
        half = _times(number_like(0.5, x), x)
        return _times(half, Binary("add", number_like(1.0, x), gate))

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Return half of an element times one plus erf or tanh."""
        x = operands[0]
        apply = _tanh_gelu if run.attributes.text("approximate") == "tanh" else _erf_gelu
        return np.asarray(rounded(apply, x)).astype(x.dtype)

    def canceled(self, operands: tuple[ReferenceArg, ...]) -> Array | None:
        """Return the operand: below -1, one plus erf or tanh is small, and their rounding is not.

        The error is at most four roundings of the operand; a quarter of it is the usual one.
        """
        return np.nan_to_num(operands[0], nan=0, posinf=0, neginf=0) / 4

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Multiply half of the operand by one plus erf or tanh."""
        x = widened(call, graph)
        if call.attributes.text("approximate") == "tanh":
            cube = graph.emit("multiply", graph.emit("multiply", x, x), x)
            inner = graph.emit("add", x, graph.emit("multiply", cube, _CUBIC))
            gate = graph.emit("tanh", graph.emit("multiply", inner, _ROOT_2_OVER_PI))
        else:
            gate = graph.emit("erf", graph.emit("multiply", x, _ROOT_HALF))
        half = graph.emit("multiply", x, 0.5)
        product = graph.emit("multiply", half, graph.emit("add", gate, 1.0))
        return (narrowed_to(call, graph, product),)


def _erf_gate(x: Element) -> Element:
    return Unary("erf", _times(x, number_like(_ROOT_HALF, x)))


def _tanh_gate(x: Element) -> Element:
    cube = _times(_times(x, x), x)
    inner = Binary("add", x, _times(number_like(_CUBIC, x), cube))
    return Unary("tanh", _times(number_like(_ROOT_2_OVER_PI, x), inner))


def _erf_gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + erf_of_arrays(x * _ROOT_HALF))


def _tanh_gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(_ROOT_2_OVER_PI * (x + _CUBIC * x * x * x)))
