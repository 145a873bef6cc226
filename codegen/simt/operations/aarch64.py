"""Dot products of AArch64 (Arm ARM, SDOT (vector))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.thread.operations.aarch64 import SDOT_128
from .handler import Group, Handler


def _sdot(_: Group, operands: Sequence[Any]) -> Sequence[Any]:
    """Add four products of neighbours, both signed, to each sum; sums wrap."""
    total, a, b = operands
    products = a.astype(np.int32) * b.astype(np.int32)
    return (total + products.reshape(-1, 4, products.shape[1]).sum(axis=1, dtype=np.int32),)


AARCH64: dict[str, Handler] = {SDOT_128.name: _sdot}
