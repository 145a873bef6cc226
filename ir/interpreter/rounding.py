"""Error bounds of rounding: unit roundoffs, worst-case factors, and random rounding.

The module derives two kinds of bounds. For a kernel of known formula, :func:`gamma` returns the
worst-case factor. For an arbitrary program, :class:`Rounding` implements Monte Carlo arithmetic:
the program is computed in float64, and the result of every operation is perturbed randomly up or
down by the unit roundoff of its declared dtype. The spread of the results estimates the effect of
rounding on this program for these inputs, including cancellation and depth.

References: N. J. Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1; D. S. Parker,
Monte Carlo Arithmetic, 1997; N. J. Higham and T. Mary, A New Approach to Probabilistic Rounding
Error Analysis, 2019 (the error of a sum of n terms grows with sqrt(n) units, not n).
"""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, f32

_SIGNS = 4099
"""The period of the random signs: a prime, so that it does not synchronize with loops."""


def unit(dtype: DType) -> float:
    """Return the unit roundoff: the largest relative error of one rounding; 0 for integers.

    Examples
    --------
    >>> unit(f32) == 2.0**-24
    True
    """
    return 2.0**-dtype.precision if dtype.is_inexact else 0.0


def gamma(count: int, dtype: DType = f32) -> float:
    """Return a bound of the relative error of ``count`` successive roundings, ``nu / (1 - nu)``.

    The error of a sum of n products, in any order, is at most ``gamma(n)`` times the sum of the
    absolute values of the products.

    Examples
    --------
    >>> gamma(1) > 2.0**-24, gamma(1024) / 2.0**-24 < 1025
    (True, True)
    """
    total = count * unit(dtype)
    return total / (1 - total) if total < 1 else math.inf


class Rounding:
    """A source of random rounding that perturbs values up or down by multiples of a unit.

    Parameters
    ----------
    seed : int
        The seed; equal seeds produce equal perturbations.

    Examples
    --------
    >>> perturbed = Rounding(1).array(np.ones(4), f32, 2)
    >>> (np.abs(perturbed - 1) == 2 * 2.0**-24).all()
    np.True_
    """

    def __init__(self, seed: int) -> None:
        """Draw the random signs."""
        self._draw = np.random.default_rng(seed)
        self._signs = cycle((self._draw.integers(0, 2, _SIGNS) * 2.0 - 1.0).tolist())

    def array(self, values: NDArray[Any], dtype: DType, units: float = 1) -> NDArray[Any]:
        """Perturb every element of an array of floats, or the parts of complex numbers."""
        if not dtype.is_inexact or values.dtype.kind not in "fc":
            return values
        signs = self._draw.integers(0, 2, values.shape) * 2.0 - 1.0
        scale = amplitude(dtype, units)
        if values.dtype.kind == "c":
            others = self._draw.integers(0, 2, values.shape) * 2.0 - 1.0
            return values + scale * np.abs(values) * (signs + 1j * others)
        return values * (1.0 + scale * signs)

    def scalar(self, value: Any, scale: float) -> Any:
        """Perturb one value by the relative amount ``scale``."""
        if value.dtype.kind == "c":
            return value + scale * np.abs(value) * complex(next(self._signs), next(self._signs))
        return value * (1.0 + scale * next(self._signs))


def amplitude(dtype: DType, units: float) -> float:
    """Return the relative size of ``units`` units, at least the spacing of float64."""
    return max(units * unit(dtype), 2.0**-52)


def not_exact(value: float, dtype: DType) -> bool:
    """Return whether a literal of the program is not representable in its dtype.

    Examples
    --------
    >>> not_exact(0.5, f32), not_exact(0.1, f32)
    (False, True)
    """
    if not dtype.is_inexact or not math.isfinite(value):
        return False
    with np.errstate(all="ignore"):
        return float(np.asarray(value).astype(dtype.part.numpy)) != float(value)
