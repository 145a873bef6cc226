"""Import handlers of the incomplete gamma functions in PyTorch, computed in f64.

The lower function is a power series up to ``x = a + 1``, and the upper one is a continued fraction
above. The number of terms grows with the square root of ``a``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ..dtype import f64
from ..symbolic import as_expr
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .elementwise import convert
from .formulas import Formula, number, size_of
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten

_UNIT: Final = 2.0**-53
_TINY: Final = 1e-300
"""A number that replaces a divisor of 0."""

_MOST: Final = 1 << 16
"""The most terms."""

State = list[Formula]


def _loop(t: TorchContext, start: State, step: Callable[[Formula, State], State]) -> State:
    """Repeat a step until the last value is 0 for all elements."""
    shape = t.broadcast_shapes([x.shape for x in start])
    given = [t.tensor(t.plain(x.expand(*shape).x)) for x in start]

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        count = size_of(t, now.index).to(f64) + 1.0
        state = [Formula(t, x) for x in now.carried]
        more = state[-1] > 0.0
        found = [
            more.choose(new, old, f64) for new, old in zip(step(count, state), state, strict=True)
        ]
        return [x.expand(*shape).x for x in found], []

    def condition(now: Iteration) -> Imported:
        return t.apply("any", t.plain((Formula(t, now.carried[-1]) > 0.0).x))

    done = emit_loop(t, LoopForm(given, body, condition, as_expr(_MOST)))
    return [Formula(t, x) for x in done]


def _series(t: TorchContext, a: Formula, x: Formula) -> Formula:
    """Return the sum of ``x**n / (a (a + 1) ... (a + n))``."""

    def step(count: Formula, state: State) -> State:
        term, total, _ = state
        term = term * (x / (a + count))
        total = total + term
        return [term, total, (term > total * _UNIT).choose(1.0, 0.0, f64)]

    first = 1.0 / a
    return _loop(t, [first, first, number(t, 1.0, f64)], step)[1]


def _fraction(t: TorchContext, a: Formula, x: Formula) -> Formula:
    """Return the continued fraction of the upper function, by the method of Lentz."""

    def safe(value: Formula) -> Formula:
        return value.equal(0.0).choose(_TINY, value, f64)

    def step(count: Formula, state: State) -> State:
        c, d, total, _ = state
        part, shift = count * (a - count), x - a + count * 2.0 + 1.0
        d = 1.0 / safe(part * d + shift)
        c = safe(shift + part / c)
        factor = c * d
        far = (factor - 1.0).apply("abs") > 2.0 * _UNIT
        return [c, d, total * factor, far.choose(1.0, 0.0, f64)]

    first = 1.0 / safe(x - a + 1.0)
    large = number(t, 1.0 / _TINY, f64)
    return _loop(t, [large, first, first, number(t, 1.0, f64)], step)[2]


@aten("igamma", "igammac", "special_gammainc", "special_gammaincc")
def incomplete_gamma(t: TorchContext, a: OperandLike, x: OperandLike) -> Imported:
    """Import the regularized incomplete gamma functions."""
    order, at = (Formula(t, convert(t, t.number(v, f64), f64)) for v in (a, x))
    usual = (order > 0.0) & (order < math.inf) & (at > 0.0) & (at < math.inf)
    low = at < order + 1.0
    below, above = usual & low, usual & ~low
    power = at.apply("log") * order - at - order.apply("lgamma")
    factor = power.apply("exp")
    one = number(t, 1.0, f64)
    series = _series(t, below.choose(order, one, f64), below.choose(at, 0.5, f64))
    fraction = _fraction(t, above.choose(order, one, f64), above.choose(at, 3.0, f64))
    lower, upper = series * factor, fraction * factor
    wanted = t.operator in {"igamma", "special_gammainc"}
    series, fraction = (lower, 1.0 - upper) if wanted else (1.0 - lower, upper)
    found = low.choose(series, fraction, f64)
    return convert(t, _edges(order, at, found, lower=wanted).x, t.result_dtype())


def _edges(a: Formula, x: Formula, found: Formula, *, lower: bool) -> Formula:
    """Return a function with its limits at 0 and infinity, and NaN where it is not defined."""
    zero, one = (0.0, 1.0) if lower else (1.0, 0.0)
    found = (a.equal(0.0) | x.equal(math.inf)).choose(one, found, f64)
    found = (x.equal(0.0) | a.equal(math.inf)).choose(zero, found, f64)
    both = (a.equal(0.0) & x.equal(0.0)) | (a.equal(math.inf) & x.equal(math.inf))
    outside = both | (a < 0.0) | (x < 0.0)
    return outside.choose(math.nan, found, f64)
