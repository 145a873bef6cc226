"""Operations of NVIDIA GPUs: warp shuffles, matrix fragment loads, and tensor cores.

The 32 threads of a warp execute each operation together. The lane of a thread is
``threadIdx.x % 32``.
"""

from __future__ import annotations

from typing import Final

from ...dtype import f16, f32, i32
from ..types import INDEX, SHARED_POINTER, VectorType
from .operation import Effect, Operation

WARP: Final = 32
"""The number of threads of a warp."""

_I32, _F32, _F16X2 = VectorType(i32), VectorType(f32), VectorType(f16, 2)


def _shuffle(mode: str, of: VectorType) -> Operation:
    return Operation(f"nvidia.shfl.{mode}.{of}", "warp", (of, _I32), (of,), needs=("sm_75",))


SHUFFLE_BUTTERFLY_F32 = _shuffle("bfly", _F32)
"""The f32 value of lane ``lane ^ operand``; all 32 lanes must participate."""

SHUFFLE_BUTTERFLY_I32 = _shuffle("bfly", _I32)
"""The i32 value of lane ``lane ^ operand``; all 32 lanes must participate."""

SHUFFLE_DOWN_F32 = _shuffle("down", _F32)
"""The f32 value of lane ``lane + operand``; the lane's own value if there is no such lane."""

SHUFFLE_DOWN_I32 = _shuffle("down", _I32)
"""The i32 value of lane ``lane + operand``; the lane's own value if there is no such lane."""

SHUFFLE_INDEX_F32 = _shuffle("idx", _F32)
"""The f32 value of lane ``operand % 32``."""

SHUFFLE_INDEX_I32 = _shuffle("idx", _I32)
"""The i32 value of lane ``operand % 32``."""


def _ldmatrix(count: int, *, transposed: bool) -> Operation:
    suffix = ".trans" if transposed else ""
    return Operation(
        f"nvidia.ldmatrix.x{count}{suffix}.f16",
        "warp",
        (SHARED_POINTER,),
        (_F16X2,) * count,
        effects=(Effect("read", 0, 16, "shared"),),
        needs=("sm_75",),
    )


LDMATRIX_X4 = _ldmatrix(4, transposed=False)
"""Load four 8x8 matrices of 16-bit elements.

Lanes ``8m .. 8m+7`` pass the addresses of the rows of matrix ``m``, 16 bytes each and aligned to
16 bytes. Lane ``l`` receives the elements ``[l // 4, l % 4 * 2]`` and ``[l // 4, l % 4 * 2 + 1]``
of every matrix.
"""

LDMATRIX_X2 = _ldmatrix(2, transposed=False)
"""Load two matrices; the addresses of lanes 16 to 31 are unused but must be valid."""

LDMATRIX_X4_TRANSPOSED = _ldmatrix(4, transposed=True)
"""Load four transposed matrices; lane ``l`` receives the elements ``[l % 4 * 2 + r, l // 4]``."""

LDMATRIX_X2_TRANSPOSED = _ldmatrix(2, transposed=True)
"""Load two transposed matrices."""

MMA_M16N8K16_F32 = Operation(
    "nvidia.mma.m16n8k16.f32.f16",
    "warp",
    (*(_F16X2,) * 6, *(_F32,) * 4),
    (_F32,) * 4,
    needs=("sm_80",),
)
"""``A (16x16, 4 registers) @ B (16x8, 2 registers) + C (16x8, 4 registers)`` with f32 sums."""

MMA_M16N8K16_F16 = Operation(
    "nvidia.mma.m16n8k16.f16.f16",
    "warp",
    (_F16X2,) * 8,
    (_F16X2,) * 2,
    needs=("sm_80",),
)
"""The m16n8k16 product with C and the result in f16: two registers of two elements."""

TRAP = Operation("nvidia.trap", "thread", (INDEX, INDEX), (), needs=("sm_75",))
"""Abort the launch because an integer read from memory is out of range.

The operands are the value and the violated bound, or the extent. A GPU cannot report them; the
emulator does.
"""

NVIDIA = (
    SHUFFLE_BUTTERFLY_F32,
    SHUFFLE_BUTTERFLY_I32,
    SHUFFLE_DOWN_F32,
    SHUFFLE_DOWN_I32,
    SHUFFLE_INDEX_F32,
    SHUFFLE_INDEX_I32,
    LDMATRIX_X4,
    LDMATRIX_X2,
    LDMATRIX_X4_TRANSPOSED,
    LDMATRIX_X2_TRANSPOSED,
    MMA_M16N8K16_F32,
    MMA_M16N8K16_F16,
    TRAP,
)
