"""Matrix products with the Fortran interface of BLAS.

All arguments are passed by address. BLAS is column-major, so the row-major product ``C = A B`` is
computed as the product of the transposes, ``C' = B' A'``. Integers are stored in 64 bits; a BLAS
with 32-bit integers reads the lower half, as all targets are little-endian.
"""

from __future__ import annotations

from .language import (
    Code,
    Ptr,
    call_nothing,
    load_i64,
    load_ptr,
    move,
    rtlib_function,
    stack,
    store_i64,
)

ONE_F32 = 0x3F800000
ONE_F64 = 0x3FF0000000000000
DTYPE_F32 = 2 * 256 + 32
DTYPE_F64 = 2 * 256 + 64

WRONG_OPERANDS = 1
"""Error code: the operands are not three matrices of the dtype with matching dimensions."""


@rtlib_function
def extent(operands: Ptr, position: int, dim: int) -> int:
    """Return a dimension of an operand."""
    return load_i64(load_ptr(operands, 32 * position + 16), 8 * dim)


@rtlib_function
def fits_gemm(operands: Ptr, count: int, dtype: int) -> int:
    """Return whether the operands are ``(m, k), (k, n), (m, n)`` of the dtype."""
    fits = 1
    if count != 3:
        return 0
    for k in range(3):
        if load_i64(operands, 32 * k + 8) != 2 or load_i64(operands, 32 * k + 24) != dtype:
            fits = 0
    if fits == 0:
        return 0
    if extent(operands, 0, 1) != extent(operands, 1, 0):
        return 0
    if extent(operands, 0, 0) != extent(operands, 2, 0):
        return 0
    if extent(operands, 1, 1) != extent(operands, 2, 1):
        return 0
    return 1


@rtlib_function
def call_gemm(routine: Ptr, operands: Ptr, one: int) -> None:
    """Call ``?gemm`` without transposes; an empty matrix has leading dimension 1."""
    rows = extent(operands, 2, 0)
    columns = extent(operands, 2, 1)
    inner = extent(operands, 0, 1)
    words = stack(72)
    store_i64(words, 0, 78)  # 'N'
    store_i64(words, 8, columns)
    store_i64(words, 16, rows)
    store_i64(words, 24, inner)
    store_i64(words, 32, one)
    store_i64(words, 40, 0)
    store_i64(words, 48, max(columns, 1))
    store_i64(words, 56, max(inner, 1))
    call_nothing(
        routine,
        words,
        words,
        move(words, 8),
        move(words, 16),
        move(words, 24),
        move(words, 32),
        load_ptr(operands, 32),
        move(words, 48),
        load_ptr(operands, 0),
        move(words, 56),
        move(words, 40),
        load_ptr(operands, 64),
        move(words, 48),
        1,
        1,
    )


@rtlib_function
def sgemm(routine: Ptr, operands: Ptr, count: int) -> Code:
    """Compute ``C = A B`` in f32; library function ``blas.sgemm``."""
    if fits_gemm(operands, count, DTYPE_F32) == 0:
        return Code(WRONG_OPERANDS)
    call_gemm(routine, operands, ONE_F32)
    return Code(0)


@rtlib_function
def dgemm(routine: Ptr, operands: Ptr, count: int) -> Code:
    """Compute ``C = A B`` in f64; library function ``blas.dgemm``."""
    if fits_gemm(operands, count, DTYPE_F64) == 0:
        return Code(WRONG_OPERANDS)
    call_gemm(routine, operands, ONE_F64)
    return Code(0)
