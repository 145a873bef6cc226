"""NumPy functions whose result is of whatever dtype their operands are."""

from __future__ import annotations

from typing import Any

import numpy as np

_WHERE: Any = np.where


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Choose element by element."""
    return _WHERE(condition, then, otherwise)


def spread(value: Any, shape: tuple[int, ...]) -> Any:
    """View a value as an array of a shape."""
    wide: Any = np.broadcast_to(value, shape)
    return wide
