"""Import handlers of the optimizers of ONNX, and of its operators on features."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtype import f64, i64
from .formulas import Formula
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import scalar
from .onnx_schema import malformed
from .tensors import Imported

_Update = Callable[[OnnxContext, Formula, Formula, Sequence[Formula]], list[Formula]]


def _number(c: OnnxContext, name: str, default: float = 0.0) -> float:
    return float(c.attributes.get(name, default))


def _optimized(c: OnnxContext, states: int, update: _Update) -> list[Imported]:
    """Apply an update to each variable, its gradient, and its states."""
    rate, count = (scalar(c, c.input(k)) for k in range(2))
    given = [Formula(c, x) for x in c.given()[2:]]
    variables = len(given) // (states + 2)
    if variables * (states + 2) != len(given):
        raise malformed(c.node, f"{len(given)} tensors are not groups of {states + 2}")
    made = [update(c, rate, count, given[k::variables]) for k in range(variables)]
    return [group[part].x for part in range(states + 1) for group in made]


@onnx_op("ai.onnx.preview.training.Adagrad")
def adagrad(c: OnnxContext) -> list[Imported]:
    """Import a step of Adagrad."""
    return _optimized(c, 1, _adagrad)


def _adagrad(
    c: OnnxContext, rate: Formula, count: Formula, given: Sequence[Formula]
) -> list[Formula]:
    x, gradient, squares = given
    rate = rate / (count.to(rate.dtype) * _number(c, "decay_factor") + 1.0)
    gradient = x * _number(c, "norm_coefficient") + gradient
    squares = squares + gradient * gradient
    scale = squares.apply("sqrt") + _number(c, "epsilon", 1e-6)
    return [x - rate.to(x.dtype) * gradient / scale, squares]


@onnx_op("ai.onnx.preview.training.Adam")
def adam(c: OnnxContext) -> list[Imported]:
    """Import a step of Adam."""
    return _optimized(c, 2, _adam)


def _adam(c: OnnxContext, rate: Formula, count: Formula, given: Sequence[Formula]) -> list[Formula]:
    x, gradient, momentum, squares = given
    alpha, beta = _number(c, "alpha", 0.9), _number(c, "beta", 0.999)
    gradient = x * _number(c, "norm_coefficient") + gradient
    momentum = momentum * alpha + gradient * (1 - alpha)
    squares = squares * beta + gradient * gradient * (1 - beta)
    steps = count.to(f64)
    powers = [Formula(c, c.uniform(v, (), f64)).apply("power", steps) for v in (alpha, beta)]
    corrected = rate.to(f64) * (1.0 - powers[1]).apply("sqrt") / (1.0 - powers[0])
    rate = (count > 0).choose(corrected, rate.to(f64), f64).to(x.dtype)
    found = x - rate * (momentum / (squares.apply("sqrt") + _number(c, "epsilon", 1e-6)))
    return [found * (1 - _number(c, "norm_coefficient_post")), momentum, squares]


@onnx_op("ai.onnx.preview.training.Momentum")
def momentum_step(c: OnnxContext) -> list[Imported]:
    """Import a step of gradient descent with momentum."""
    return _optimized(c, 1, _momentum)


def _momentum(
    c: OnnxContext, rate: Formula, count: Formula, given: Sequence[Formula]
) -> list[Formula]:
    x, gradient, momentum = given
    alpha, beta = _number(c, "alpha"), _number(c, "beta")
    gradient = x * _number(c, "norm_coefficient") + gradient
    factor = (count > 0).choose(beta, 1.0, x.dtype)
    momentum = momentum * alpha + gradient * factor
    step = momentum
    if c.attributes.get("mode") == "nesterov":
        step = gradient + momentum * alpha
    return [x - rate.to(x.dtype) * step, momentum]


@onnx_op("ai.onnx.ml.ArrayFeatureExtractor")
def array_features(c: OnnxContext) -> Imported:
    """Import the selection of elements of the last dimension."""
    x, at = Formula(c, c.input(0)), Formula(c, c.input(1)).to(i64)
    flat = at.reshape(-1)
    rows = x.unsqueeze(0) if x.rank == 1 else x
    return rows.take(flat, rows.rank - 1).x


@onnx_op("ai.onnx.ml.Binarizer")
def binarizer(c: OnnxContext) -> Imported:
    """Import ones for elements above a threshold, else zeros."""
    x = Formula(c, c.input(0))
    limit = _number(c, "threshold")
    if x.dtype.is_float:
        return (x > limit).to(x.dtype).x
    return (x.to(f64) > limit).to(x.dtype).x
