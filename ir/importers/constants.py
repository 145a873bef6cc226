"""Inspection of small constants: uniform values, positions, and symbolic elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtype import DType
from ..graph.operators.shape_inference import MAX_ELEMENTS
from ..module import Array
from ..symbolic import Expr, as_expr
from .tensors import Iota, Known, Uniform

MOST_INSPECTED = 1 << 16
"""The number of elements up to which integer constants are loaded and inspected."""


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def small_elements(
    shape: tuple[int, ...], dtype: DType, load: Callable[[], Array]
) -> tuple[Expr, ...] | None:
    """Return the values of a small integer constant, or None for other constants."""
    if _count(shape) > MAX_ELEMENTS or not (dtype.is_integer or dtype.kind == "bool"):
        return None
    return tuple(as_expr(int(v)) for v in np.asarray(load()).ravel())


def known_elements(shape: tuple[int, ...], dtype: DType, load: Callable[[], Array]) -> Known | None:
    """Return the known elements of a constant: one number, or positions along one axis."""
    exact = dtype.is_integer or dtype.kind == "bool"
    if not 0 < _count(shape) <= (MOST_INSPECTED if exact else 1):
        return None
    array = np.asarray(load())
    first = array.ravel()[0]
    if np.all(array == first):
        return Uniform(first.item())
    return _iota(array) if dtype.is_integer else None


def _iota(array: Array) -> Known | None:
    for axis, size in enumerate(array.shape):
        shape = [1] * array.ndim
        shape[axis] = size
        first = int(array.ravel()[0])
        counted = (np.arange(size, dtype=np.int64) + first).reshape(tuple(shape))
        if np.array_equal(array, np.broadcast_to(counted, array.shape)):
            return Iota(axis, as_expr(first))
    return None
