"""NumPy functions, typed to keep the dtype of their operands."""

from __future__ import annotations

from typing import Any

import numpy as np

_WHERE: Any = np.where


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Select element by element."""
    return _WHERE(condition, then, otherwise)


def spread(value: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast a value to a shape; an array of that shape is returned as it is."""
    if getattr(value, "shape", None) == shape:
        return value
    result: Any = np.broadcast_to(value, shape)
    return result
