"""What rounding may do to a result: unit roundoffs, worst-case factors, and random rounding.

Two kinds of bounds are derived here. Where a test knows the formula of one kernel, :func:`gamma`
gives the factor of its worst case. For any program, :class:`Rounding` rounds at random: the
program is computed in float64, every operation's result is moved by the roundoff of the type that
the program declares for it, up or down by chance, and how far the results spread shows what
rounding does to this program at these inputs, cancellation and depth included.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1; D. S. Parker,
Monte Carlo Arithmetic, 1997; N. J. Higham and T. Mary, A New Approach to Probabilistic Rounding
Error Analysis, 2019 (a sum of n terms errs by sqrt(n) units, not n).
"""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, f32

_PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_SIGNS = 4099
"""Length of a row of random signs: prime, so that it does not fall in step with loops."""

_EXACT = frozenset(
    ("neg", "abs", "min", "max", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf", "not")
)
_ROUNDED = frozenset(("add", "sub", "mul", "div", "sqrt"))
_FUNCTION = 4
"""Units by which functions such as ``exp`` may err, two units in the last place."""


def unit(dtype: DType) -> float:
    """Give the unit roundoff: the largest relative error of one rounding; 0 for integers.

    Examples
    --------
    >>> unit(f32) == 2.0**-24
    True
    """
    return 2.0 ** -_PRECISION[dtype.name] if dtype.is_float else 0.0


def gamma(count: int, dtype: DType = f32) -> float:
    """Bound the relative error of ``count`` roundings in a row: ``n u / (1 - n u)``.

    The error of a sum of n products, in any order, is at most ``gamma(n)`` times the sum of their
    absolute values.

    Examples
    --------
    >>> gamma(1) > 2.0**-24, gamma(1024) / 2.0**-24 < 1025
    (True, True)
    """
    taken = count * unit(dtype)
    return taken / (1 - taken) if taken < 1 else math.inf


def roundings(op: str) -> int:
    """Give by how many units an operation's result may be off.

    Examples
    --------
    >>> roundings("max"), roundings("add"), roundings("exp")
    (0, 1, 4)
    """
    if op in _EXACT:
        return 0
    return 1 if op in _ROUNDED else _FUNCTION


class Rounding:
    """Rounds at random: moves values by multiples of a unit, up or down by chance.

    Parameters
    ----------
    seed : int
        The same one gives the same roundings.

    Examples
    --------
    >>> moved = Rounding(1).array(np.ones(4), f32, 2)
    >>> (np.abs(moved - 1) == 2 * 2.0**-24).all()
    np.True_
    """

    def __init__(self, seed: int) -> None:
        """Draw the signs."""
        self._draw = np.random.default_rng(seed)
        self._signs = cycle((self._draw.integers(0, 2, _SIGNS) * 2.0 - 1.0).tolist())

    def array(self, values: NDArray[Any], dtype: DType, units: float = 1) -> NDArray[Any]:
        """Move every element of a float array."""
        if not dtype.is_float or values.dtype.kind != "f":
            return values
        signs = self._draw.integers(0, 2, values.shape) * 2.0 - 1.0
        return values * (1.0 + amplitude(dtype, units) * signs)

    def scalar(self, value: Any, scale: float) -> Any:
        """Move one value by a relative ``scale``."""
        return value * (1.0 + scale * next(self._signs))


def amplitude(dtype: DType, units: float) -> float:
    """Give the relative size of so many units, at least what float64 can tell from nothing."""
    return max(units * unit(dtype), 2.0**-52)


def not_exact(value: float, dtype: DType) -> bool:
    """Whether a number of the program is not a number of its type.

    Examples
    --------
    >>> not_exact(0.5, f32), not_exact(0.1, f32)
    (False, True)
    """
    if not dtype.is_float or not math.isfinite(value):
        return False
    with np.errstate(all="ignore"):
        return float(np.asarray(value).astype(dtype.numpy)) != float(value)
