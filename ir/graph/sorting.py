"""NumPy references of sorting, distinct elements, and positions of nonzero elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtype import from_numpy


def comparable(x: NDArray[Any]) -> NDArray[Any]:
    """Return elements in a dtype that NumPy compares and sorts, NaN last."""
    return x.astype(np.float32) if from_numpy(x.dtype).bits < 32 and _is_float(x) else x


def _is_float(x: NDArray[Any]) -> bool:
    return from_numpy(x.dtype).is_float


def sort_rows(x: NDArray[Any], *, descending: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return sorted rows, and the positions of their elements; a stable sort.

    Examples
    --------
    >>> values, positions = sort_rows(np.array([3.0, np.nan, 1.0, 3.0]), descending=True)
    >>> values.tolist(), positions.tolist()
    ([nan, 3.0, 3.0, 1.0], [1, 0, 3, 2])
    """
    keys = comparable(x)
    if descending:  # the reverse of a stable ascending sort of the reversed rows
        reverse = np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        order = x.shape[-1] - 1 - reverse
    else:
        order = np.argsort(keys, axis=-1, kind="stable")
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int64)


def find_unique(x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return distinct elements, first positions, numbers, counts, and the number of values.

    Outputs with one element per value are padded to the number of elements.
    """
    flat = comparable(x).reshape(-1)
    _, first, inverse, counts = np.unique(
        flat, return_index=True, return_inverse=True, return_counts=True
    )
    count = np.array([len(first)], np.int64)
    padding = (0, flat.size - len(first))
    values = np.pad(x.reshape(-1)[first], padding)
    numbers = inverse.reshape(x.shape).astype(np.int64)
    return values, np.pad(first, padding), numbers, np.pad(counts, padding), count


def find_nonzero(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the indices of the elements that are not zero, padded, and their number."""
    at = np.argwhere(x != 0).astype(np.int64)
    return np.pad(at, ((0, x.size - len(at)), (0, 0))), np.array([len(at)], np.int64)
