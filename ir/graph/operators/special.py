"""NumPy functions that NumPy itself lacks, and evaluation without spurious warnings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .evaluation import Array, accumulator_dtype

_erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    """Compute 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, np.ones_like(x), small) / (1 + small)


def erf(x: Array) -> Array:
    """Compute the error function, in double precision."""
    wide = x.astype(np.float64)
    return _erf(wide) if x.size else wide


def rounded(function: Callable[..., Any], *arrays: Array) -> Any:
    """Apply a function in at least single precision; overflow and NaN are results here."""
    wide = tuple(a.astype(accumulator_dtype(a.dtype)) for a in arrays)
    with np.errstate(all="ignore"):
        return function(*wide)
