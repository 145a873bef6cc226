"""Dot products of x86-64 (Intel SDM volume 2: VPDPBUSD, VDPBF16PS, VPMADDWD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.thread.operations.x86 import (
    VDPBF16PS_512,
    VPDPBUSD_256,
    VPDPBUSD_512,
    VPMADDWD_256,
)
from ..arrays import where
from .handler import Group, Handler


def dot_bytes(_: Group, operands: Sequence[Any]) -> Sequence[Any]:
    """Add four products of adjacent bytes, signed or unsigned, to each sum; sums wrap around."""
    total, a, b = operands
    products = a.astype(np.int32) * b.astype(np.int32)
    return (total + _grouped(products, 4),)


def _dot_words(_: Group, operands: Sequence[Any]) -> Sequence[Any]:
    """Return sums of two products of adjacent signed elements; sums wrap around."""
    a, b = operands
    return (_grouped(a.astype(np.int32) * b.astype(np.int32), 2),)


def _grouped(products: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return the sums of ``count`` adjacent lanes."""
    return products.reshape(-1, count, products.shape[1]).sum(axis=1, dtype=np.int32)


def _flushed(x: Any) -> Any:
    """Return values with subnormals replaced by zero of the same sign."""
    return where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def _dot_bfloats(_: Group, operands: Sequence[Any]) -> Sequence[Any]:
    """Add the product of the odd elements, then the product of the even elements, to each sum.

    Products of bfloat16 are exact in f32 up to the exponent range. Every result is rounded to
    nearest even; subnormal operands and results are flushed to zero.
    """
    total, a, b = operands
    a, b = _flushed(a.astype(np.float32)), _flushed(b.astype(np.float32))
    total = _flushed(total)
    for half in (1, 0):
        exact = a[half::2].astype(np.float64) * b[half::2].astype(np.float64)
        total = _flushed((total + exact).astype(np.float32))
    return (total,)


X86: dict[str, Handler] = {
    VPDPBUSD_512.name: dot_bytes,
    VPDPBUSD_256.name: dot_bytes,
    VDPBF16PS_512.name: _dot_bfloats,
    VPMADDWD_256.name: _dot_words,
}
