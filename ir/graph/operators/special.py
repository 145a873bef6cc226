"""Evaluation of NumPy functions in at least float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .evaluation import Array, accumulator_dtype


def rounded(function: Callable[..., Any], *arrays: Array) -> Any:
    """Apply a function in at least float32, without warnings about overflow and NaN."""
    wide = tuple(a.astype(accumulator_dtype(a.dtype)) for a in arrays)
    with np.errstate(all="ignore"):
        return function(*wide)
