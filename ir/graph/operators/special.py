"""NumPy implementations of functions that NumPy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .evaluation import Array, accumulator_dtype

_erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    """Return ``1 / (1 + exp(-x))``, computed without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, np.ones_like(x), small) / (1 + small)


def erf(x: Array) -> Array:
    """Return the error function of ``x`` in float64."""
    wide = x.astype(np.float64)
    return _erf(wide) if x.size else wide


def rounded(function: Callable[..., Any], *arrays: Array) -> Any:
    """Apply a function in at least float32, without warnings about overflow and NaN."""
    wide = tuple(a.astype(accumulator_dtype(a.dtype)) for a in arrays)
    with np.errstate(all="ignore"):
        return function(*wide)
