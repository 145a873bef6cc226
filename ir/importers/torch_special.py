"""Import handlers of Bessel functions, error functions, and zeta functions in PyTorch.

They are computed in f64, by Chebyshev polynomials on the intervals on which they are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from ..dtype import f64
from . import special_coefficients as of
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .elementwise import convert, elementwise, where
from .factorizations import number
from .shaping import expand
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten

Fit: TypeAlias = "tuple[float, float, tuple[float, ...]]"
Operand: TypeAlias = "Imported | float"

_MIDDLE: Final = 3.75
"""The number that becomes 0 in the variable of the scaled complementary error function."""


class Formula:
    """Operations on tensors of f64 and numbers."""

    def __init__(self, t: TorchContext) -> None:
        """Emit into a program."""
        self.t = t

    def __call__(self, op: str, *operands: Operand) -> Imported:
        """Apply an element-wise operator."""
        tensors = [v if isinstance(v, Imported) else self.number(v) for v in operands]
        return elementwise(self.t, op, tensors)

    def number(self, value: float) -> Imported:
        """Return a number as a tensor of shape ``()``."""
        return self.t.uniform(float(value), (), f64)

    def choose(self, condition: Imported, yes: Operand, no: Operand) -> Imported:
        """Select between two values."""
        pair = [v if isinstance(v, Imported) else self.number(v) for v in (yes, no)]
        return where(self.t, condition, *pair)

    def line(self, x: Imported, slope: float, shift: float) -> Imported:
        """Return ``slope * x + shift``."""
        return self("add", self("multiply", x, slope), shift)

    def fitted(self, x: Imported, fit: Fit) -> Imported:
        """Return the Chebyshev series of a fit, by Clenshaw's recurrence."""
        low, high, terms = fit
        twice = self.line(x, 4 / (high - low), -2 * (high + low) / (high - low))
        above, current = self.number(0), self.number(terms[-1])
        for term in reversed(terms[1:-1]):
            rest = self("subtract", self("multiply", twice, current), above)
            above, current = current, self("add", rest, term)
        half = self("multiply", twice, 0.5)
        last = self("subtract", self("multiply", half, current), above)
        return self("add", last, terms[0])


def _wide(t: TorchContext, *values: OperandLike) -> list[Imported]:
    return [convert(t, t.number(v, f64), f64) for v in values]


def _unary(name: str, function: Callable[[Formula, Imported], Imported]) -> None:
    """Register the handler of a function of one operand."""

    @aten(name)
    def handler(t: TorchContext, x: Imported) -> Imported:  # pyright: ignore[reportUnusedFunction]
        return convert(t, function(Formula(t), _wide(t, x)[0]), t.result_dtype())


def _scaled_i(f: Formula, x: Imported, order: int) -> Imported:
    """Return the modified Bessel function of the first kind times ``exp(-abs(x))``."""
    near, far = (of.I0_NEAR, of.I0_FAR) if order == 0 else (of.I1_NEAR, of.I1_FAR)
    size = f("abs", x)
    small = f("less_equal", size, near[1])
    inner = f.fitted(f("minimum", size, near[1]), near)
    if order:
        inner = f("multiply", inner, size)
    large = f("maximum", size, near[1])
    outer = f("divide", f.fitted(f("divide", 1.0, large), far), f("sqrt", large))
    found = f.choose(small, inner, outer)
    return f("copysign", found, x) if order else found


def _i(order: int) -> Callable[[Formula, Imported], Imported]:
    def function(f: Formula, x: Imported) -> Imported:
        size = f("abs", x)
        found = f("multiply", f("exp", size), _scaled_i(f, x, order))
        endless = f("isinf", size)
        return f.choose(endless, x if order else size, found)

    return function


def _k(order: int, *, scaled: bool) -> Callable[[Formula, Imported], Imported]:
    """Return a modified Bessel function of the second kind, or its product with ``exp(x)``."""
    near, far = (of.K0_NEAR, of.K0_FAR) if order == 0 else (of.K1_NEAR, of.K1_FAR)
    split = math.sqrt(near[1])

    def function(f: Formula, x: Imported) -> Imported:
        low = f("minimum", x, split)
        first = f("multiply", f("exp", f("abs", low)), _scaled_i(f, low, order))
        product = f("multiply", f("log", low), first)
        series = f.fitted(f("multiply", low, low), near)
        if order:
            terms = f("add", f("multiply", series, low), f("divide", 1.0, low))
            inner = f("add", terms, product)
        else:
            inner = f("subtract", series, product)
        high = f("maximum", x, split)
        outer = f("divide", f.fitted(f("divide", 1.0, high), far), f("sqrt", high))
        if scaled:
            inner = f("multiply", inner, f("exp", low))
        else:
            outer = f("multiply", outer, f("exp", f("negative", high)))
        found = f.choose(f("less_equal", x, split), inner, outer)
        found = f.choose(f("equal", x, 0), math.inf, found)
        return f.choose(f("less", x, 0), math.nan, found)

    return function


def _waves(f: Formula, x: Imported, order: int) -> tuple[Imported, Imported]:
    """Return both Bessel functions of numbers of at least 8."""
    cosine, sine = (of.COSINE0_FAR, of.SINE0_FAR) if order == 0 else (of.COSINE1_FAR, of.SINE1_FAR)
    inverse = f("divide", 1.0, x)
    square = f("multiply", inverse, inverse)
    a = f.fitted(square, cosine)
    b = f("multiply", f.fitted(square, sine), inverse)
    angle = f("subtract", x, math.pi / 4 + order * math.pi / 2)
    root = f("sqrt", f("multiply", inverse, 2 / math.pi))
    c, s = f("cos", angle), f("sin", angle)
    first = f("subtract", f("multiply", a, c), f("multiply", b, s))
    second = f("add", f("multiply", a, s), f("multiply", b, c))
    return f("multiply", root, first), f("multiply", root, second)


_SPLIT: Final = 8.0
"""The number from which on Bessel functions are waves."""


def _j_near(f: Formula, x: Imported, order: int) -> Imported:
    found = f.fitted(f("multiply", x, x), of.J1_NEAR if order else of.J0_NEAR)
    return f("multiply", found, x) if order else found


def _j(order: int) -> Callable[[Formula, Imported], Imported]:
    def function(f: Formula, x: Imported) -> Imported:
        size = f("abs", x)
        inner = _j_near(f, f("minimum", size, _SPLIT), order)
        outer, _ = _waves(f, f("maximum", size, _SPLIT), order)
        outer = f.choose(f("isinf", size), 0.0, outer)
        found = f.choose(f("less", size, _SPLIT), inner, outer)
        if not order:
            return found
        return f.choose(f("less", x, 0), f("negative", found), found)

    return function


def _y(order: int) -> Callable[[Formula, Imported], Imported]:
    def function(f: Formula, x: Imported) -> Imported:
        low = f("minimum", x, _SPLIT)
        series = f.fitted(f("multiply", low, low), of.Y1_NEAR if order else of.Y0_NEAR)
        product = f("multiply", f("log", low), _j_near(f, low, order))
        if order:
            product = f("subtract", product, f("divide", 1.0, low))
            series = f("multiply", series, low)
        inner = f("add", series, f("multiply", product, 2 / math.pi))
        _, outer = _waves(f, f("maximum", x, _SPLIT), order)
        outer = f.choose(f("isinf", x), 0.0, outer)
        found = f.choose(f("less", x, _SPLIT), inner, outer)
        found = f.choose(f("equal", x, 0), -math.inf, found)
        return f.choose(f("less", x, 0), math.nan, found)

    return function


def _erfcx(f: Formula, x: Imported) -> Imported:
    """Return ``exp(x * x) * erfc(x)``."""
    size = f("abs", x)
    ratio = f("divide", f("subtract", size, _MIDDLE), f("add", size, _MIDDLE))
    ratio = f.choose(f("isinf", size), 1.0, ratio)
    found = f("divide", f.fitted(ratio, of.ERFCX), f.line(size, 2, 1))
    twice = f("multiply", f("exp", f("multiply", x, x)), 2)
    return f.choose(f("less", x, 0), f("subtract", twice, found), found)


def _log_ndtr(f: Formula, x: Imported) -> Imported:
    """Return the logarithm of the normal distribution function."""
    scaled = f("multiply", x, math.sqrt(0.5))
    tail = f("log", f("multiply", _erfcx(f, f("negative", f("minimum", scaled, 0))), 0.5))
    low = f("subtract", tail, f("multiply", scaled, scaled))
    high = f("log1p", f("multiply", f("erfc", scaled), -0.5))
    return f.choose(f("less", x, -1), low, high)


_CENTER: Final = math.exp(-(of.QUANTILE_NEAR[0] ** 2) / 2)
"""The probability above which the inverse error function is accurate."""


def _ndtri(f: Formula, p: Imported) -> Imported:
    """Return the quantile of the normal distribution."""
    rest = f("subtract", 1.0, p)
    least = f("minimum", p, rest)
    z = f("sqrt", f("multiply", f("log", least), -2))
    edge = of.QUANTILE_NEAR[1]
    near = f.fitted(f("minimum", z, edge), of.QUANTILE_NEAR)
    far = f.fitted(f("minimum", f("maximum", z, edge), of.QUANTILE_FAR[1]), of.QUANTILE_FAR)
    tail = f("subtract", f.choose(f("less", z, edge), near, far), z)
    tail = f.choose(f("less", p, 0.5), tail, f("negative", tail))
    center = f("multiply", f("erfinv", f.line(p, 2, -1)), math.sqrt(2))
    found = f.choose(f("less", least, _CENTER), tail, center)
    found = f.choose(f("equal", p, 0), -math.inf, f.choose(f("equal", p, 1), math.inf, found))
    outside = f("logical_or", f("less", p, 0), f("greater", p, 1))
    return f.choose(outside, math.nan, found)


def _spherical_j(f: Formula, x: Imported) -> Imported:
    """Return ``sin(x) / x``, which is 1 at 0 and 0 at infinity."""
    zero, endless = f("equal", x, 0), f("isinf", x)
    divisor = f.choose(f("logical_or", zero, endless), 1.0, x)
    found = f("divide", f("sin", divisor), divisor)
    return f.choose(zero, 1.0, f.choose(endless, 0.0, found))


_FUNCTIONS: Final[dict[str, Callable[[Formula, Imported], Imported]]] = {
    "i0": _i(0),
    "special_modified_bessel_i0": _i(0),
    "special_i1": _i(1),
    "special_modified_bessel_i1": _i(1),
    "special_i0e": lambda f, x: _scaled_i(f, x, 0),
    "special_i1e": lambda f, x: _scaled_i(f, x, 1),
    "special_modified_bessel_k0": _k(0, scaled=False),
    "special_modified_bessel_k1": _k(1, scaled=False),
    "special_scaled_modified_bessel_k0": _k(0, scaled=True),
    "special_scaled_modified_bessel_k1": _k(1, scaled=True),
    "special_bessel_j0": _j(0),
    "special_bessel_j1": _j(1),
    "special_bessel_y0": _y(0),
    "special_bessel_y1": _y(1),
    "special_spherical_bessel_j0": _spherical_j,
    "special_erfcx": _erfcx,
    "special_log_ndtr": _log_ndtr,
    "special_ndtri": _ndtri,
}

for _name, _function in _FUNCTIONS.items():
    _unary(_name, _function)


_TERMS: Final = 10
"""The number of terms of a zeta function before the integral of the others."""

_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _zeta(t: TorchContext, x: Imported, q: Imported) -> Imported:
    """Return the sum of ``(q + k) ** -x`` over all ``k``, by the formula of Euler and Maclaurin.

    The terms up to ``q + k > 10`` are added one by one.
    """
    f = Formula(t)
    shape = t.broadcast_shapes([x.shape, q.shape])
    x, q = (t.tensor(t.plain(expand(t, v, shape))) for v in (x, q))
    start = t.tensor(t.emit("full", shape, 0.0, dtype="f64"))
    power = f("negative", x)

    def wanted(now: Iteration) -> Imported:
        at = convert(t, number(t, now.index), f64)
        early = f("less", at, _TERMS)
        return f("logical_or", early, f("less_equal", now.carried[1], _TERMS))

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        total, at = now.carried
        more = wanted(now)
        term = f("power", at, power)
        return [
            expand(t, f.choose(more, f("add", total, term), total), shape),
            expand(t, f.choose(more, f("add", at, 1), at), shape),
        ], []

    def condition(now: Iteration) -> Imported:
        return t.apply("any", t.plain(expand(t, wanted(now), shape)))

    total, at = emit_loop(t, LoopForm([start, q], body, condition))
    last = f("power", at, power)
    found = f("add", total, f("multiply", last, 0.5))
    found = f("add", found, f("divide", f("multiply", last, at), f("subtract", x, 1)))
    factor, scale = f("divide", f("multiply", last, x), at), 1.0
    for k, value in enumerate(_BERNOULLI):
        scale *= (2 * k + 1) * (2 * k + 2)
        found = f("add", found, f("multiply", factor, value / scale))
        for step in (2 * k + 1, 2 * k + 2):
            factor = f("multiply", factor, f("divide", f("add", x, step), at))
    return _edges(f, x, q, found)


def _edges(f: Formula, x: Imported, q: Imported, found: Imported) -> Imported:
    """Return a zeta function with its poles, and NaN where it is not defined."""
    pole = f("logical_and", f("less_equal", q, 0), f("equal", q, f("floor", q)))
    real = f("logical_and", f("less", q, 0), f("not_equal", x, f("floor", x)))
    found = f.choose(real, math.nan, found)
    found = f.choose(pole, math.inf, found)
    return f.choose(f("equal", x, 1), math.inf, f.choose(f("less", x, 1), math.nan, found))


@aten("special_zeta")
def zeta(t: TorchContext, x: OperandLike, q: OperandLike) -> Imported:
    """Import the zeta function of Hurwitz."""
    return convert(t, _zeta(t, *_wide(t, x, q)), t.result_dtype())


@aten("polygamma", "special_polygamma")
def polygamma(t: TorchContext, order: int, x: Imported) -> Imported:
    """Import a derivative of the digamma function."""
    if not order:
        return elementwise(t, "digamma", [convert(t, x, t.result_dtype())])
    (value,) = _wide(t, x)
    found = _zeta(t, t.uniform(order + 1.0, (), f64), value)
    sign = (-1.0) ** (order + 1) * math.factorial(order)
    f = Formula(t)
    return convert(t, f("multiply", found, sign), t.result_dtype())
