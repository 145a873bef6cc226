"""Dot-product instructions of AArch64."""

from __future__ import annotations

from ...dtype import i8, i32
from ..types import VectorType
from .operation import Operation

_TOTAL, _BYTES = VectorType(i32, 4), VectorType(i8, 16)

SDOT_128 = Operation(
    "aarch64.sdot.128",
    "thread",
    (_TOTAL, _BYTES, _BYTES),
    (_TOTAL,),
    needs=("aarch64", "dotprod"),
)
"""``c[i] + sum(a[4i+k] * b[4i+k] for k in 4)`` with wrap-around; both operands are signed."""

AARCH64 = (SDOT_128,)
