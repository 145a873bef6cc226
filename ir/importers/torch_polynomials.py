"""Import handlers of families of orthogonal polynomials in PyTorch.

The degrees may be a tensor: a loop computes the polynomials up to the largest degree by their
recurrence, and each element keeps the one of its degree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..dtype import i64
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .elementwise import convert, elementwise, rounded_once, where
from .factorizations import number
from .shaping import expand
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten


class _Terms:
    """Arithmetic of the terms of a recurrence."""

    def __init__(self, t: TorchContext) -> None:
        self.t = t

    def __call__(self, op: str, x: Imported, y: Imported | float) -> Imported:
        right = y if isinstance(y, Imported) else self.t.uniform(y, (), x.dtype)
        return elementwise(self.t, op, [x, right])

    def line(self, x: Imported, slope: float, shift: float) -> Imported:
        """Return ``slope * x + shift``."""
        return self("add", self("multiply", x, slope), shift)


_Next = Callable[[_Terms, Imported, Imported, Imported, Imported], Imported]


def _chebyshev(f: _Terms, x: Imported, _: Imported, a: Imported, b: Imported) -> Imported:
    """Return ``2 x b - a``."""
    return f("subtract", f("multiply", f("multiply", x, 2), b), a)


def _hermite(f: _Terms, x: Imported, d: Imported, a: Imported, b: Imported) -> Imported:
    """Return ``2 x b - 2 (d - 1) a``."""
    lower = f("multiply", f("subtract", d, 1), a)
    return f("multiply", f("subtract", f("multiply", x, b), lower), 2)


def _hermite_e(f: _Terms, x: Imported, d: Imported, a: Imported, b: Imported) -> Imported:
    """Return ``x b - (d - 1) a``."""
    return f("subtract", f("multiply", x, b), f("multiply", f("subtract", d, 1), a))


def _laguerre(f: _Terms, x: Imported, d: Imported, a: Imported, b: Imported) -> Imported:
    """Return ``((2 d - 1 - x) b - (d - 1) a) / d``."""
    upper = f("multiply", f("subtract", f.line(d, 2, -1), x), b)
    return f("divide", f("subtract", upper, f("multiply", f("subtract", d, 1), a)), d)


def _legendre(f: _Terms, x: Imported, d: Imported, a: Imported, b: Imported) -> Imported:
    """Return ``((2 d - 1) x b - (d - 1) a) / d``."""
    upper = f("multiply", f("multiply", f.line(d, 2, -1), x), b)
    return f("divide", f("subtract", upper, f("multiply", f("subtract", d, 1), a)), d)


@dataclass(frozen=True, slots=True)
class _Family:
    """Polynomials: ``1``, ``slope * x + shift``, and a recurrence; of ``2 x - 1`` if shifted."""

    slope: float
    shift: float
    following: _Next
    shifted: bool = False


_KINDS: Final = {"t": (1.0, 0.0), "u": (2.0, 0.0), "v": (2.0, -1.0), "w": (2.0, 1.0)}
_FAMILIES: Final = {
    **{f"chebyshev_polynomial_{k}": _Family(*line, _chebyshev) for k, line in _KINDS.items()},
    **{
        f"shifted_chebyshev_polynomial_{k}": _Family(*line, _chebyshev, shifted=True)
        for k, line in _KINDS.items()
    },
    "hermite_polynomial_h": _Family(2.0, 0.0, _hermite),
    "hermite_polynomial_he": _Family(1.0, 0.0, _hermite_e),
    "laguerre_polynomial_l": _Family(-1.0, 1.0, _laguerre),
    "legendre_polynomial_p": _Family(1.0, 0.0, _legendre),
}


@aten(*(f"special_{name}" for name in _FAMILIES))
def polynomial(t: TorchContext, x: OperandLike, degree: OperandLike) -> Imported:
    """Import a polynomial of each element, of negative degree 0."""
    family = _FAMILIES[t.operator.removeprefix("special_")]
    dtype = t.result_dtype()
    degrees = convert(t, t.number(degree, i64), i64)
    value = convert(t, t.number(x, dtype), dtype)
    shape = t.broadcast_shapes([value.shape, degrees.shape])

    def compute(wide: Imported) -> Imported:
        return _evaluated(t, family, expand(t, wide, shape), degrees)

    return rounded_once(t, compute, value)


def _evaluated(t: TorchContext, family: _Family, x: Imported, degrees: Imported) -> Imported:
    f = _Terms(t)
    at = f.line(x, 2, -1) if family.shifted else x
    one, zero = t.uniform(1, x.shape, x.dtype), t.uniform(0, x.shape, x.dtype)
    first = f.line(at, family.slope, family.shift)

    def of_degree(value: int, yes: Imported, no: Imported) -> Imported:
        chosen = elementwise(t, "equal", [degrees, t.uniform(value, (), i64)])
        return expand(t, where(t, chosen, yes, no), x.shape)

    found = of_degree(0, one, of_degree(1, first, zero))

    def next_degree(now: Iteration) -> Imported:
        return elementwise(t, "add", [number(t, now.index), t.uniform(2, (), i64)])

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        below, last, kept = now.carried
        d = next_degree(now)
        new = family.following(f, at, convert(t, d, x.dtype), below, last)
        chosen = elementwise(t, "equal", [degrees, d])
        return [last, new, where(t, chosen, new, kept)], []

    def condition(now: Iteration) -> Imported:
        wanted = elementwise(t, "less_equal", [next_degree(now), degrees])
        return t.apply("any", t.plain(wanted))

    carried = [t.tensor(t.plain(v)) for v in (one, first, found)]
    return emit_loop(t, LoopForm(carried, body, condition))[2]
