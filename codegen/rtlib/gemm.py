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
from .results import copy_bytes

DTYPE_F32 = 2 * 256 + 32
DTYPE_F64 = 2 * 256 + 64

INFINITY_F32 = 0x7F800000

WRONG_OPERANDS = 1
"""Error code: the operands are not matrices of the dtype with matching dimensions."""


@rtlib_function
def extent(operands: Ptr, position: int, dim: int) -> int:
    """Return a dimension of an operand."""
    return load_i64(load_ptr(operands, 32 * position + 16), 8 * dim)


@rtlib_function
def fits_gemm(operands: Ptr, count: int, dtype: int) -> int:
    """Return whether the operands are ``(m, k), (k, n)[, (m, n)], (m, n)`` of the dtype."""
    fits = 1
    if count < 3:
        return 0
    if count > 4:
        return 0
    for k in range(count):
        if load_i64(operands, 32 * k + 8) != 2 or load_i64(operands, 32 * k + 24) != dtype:
            fits = 0
    if fits == 0:
        return 0
    if extent(operands, 0, 1) != extent(operands, 1, 0):
        return 0
    for k in range(2, count):
        if extent(operands, 0, 0) != extent(operands, k, 0):
            fits = 0
        if extent(operands, 1, 1) != extent(operands, k, 1):
            fits = 0
    return fits


@rtlib_function
def single(bits: int) -> int:
    """Return the bits of a float64 rounded to float32, to nearest and ties to even."""
    sign = ((bits >> 63) & 1) << 31
    exponent = (bits >> 52) & 2047
    fraction = bits & ((1 << 52) - 1)
    if exponent == 2047:
        return sign | INFINITY_F32 | (min(fraction, 1) << 22)
    exponent = exponent - 896
    shift = 29
    if exponent > 254:
        return sign | INFINITY_F32
    if exponent > 0:
        fraction = fraction | (exponent << 52)
    else:
        fraction = fraction | (1 << 52)
        shift = min(30 - exponent, 62)
    rounded = fraction >> shift
    rest = fraction & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    if rest > half or (rest == half and (rounded & 1) == 1):
        rounded += 1
    return sign | rounded


@rtlib_function
def call_gemm(routine: Ptr, operands: Ptr, count: int, size: int) -> None:
    """Call ``?gemm`` without transposes, with scalars of the elements' size in bytes.

    An empty matrix has leading dimension 1. The addend of the call is copied to the result first.
    """
    last = count - 1
    rows = extent(operands, last, 0)
    columns = extent(operands, last, 1)
    inner = extent(operands, 0, 1)
    result = load_ptr(operands, 32 * last)
    factors = load_ptr(operands, 32 * count)
    words = stack(72)
    store_i64(words, 0, 78)  # 'N'
    store_i64(words, 8, columns)
    store_i64(words, 16, rows)
    store_i64(words, 24, inner)
    store_i64(words, 32, load_i64(factors, 0))
    store_i64(words, 40, load_i64(factors, 8))
    if size == 4:
        store_i64(words, 32, single(load_i64(factors, 0)))
        store_i64(words, 40, single(load_i64(factors, 8)))
    if count == 4:
        copy_bytes(result, load_ptr(operands, 64), size * rows * columns)
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
        result,
        move(words, 48),
        1,
        1,
    )


@rtlib_function
def sgemm(routine: Ptr, operands: Ptr, count: int) -> Code:
    """Compute ``alpha A B + beta C`` in f32; library function ``blas.sgemm``."""
    if fits_gemm(operands, count, DTYPE_F32) == 0:
        return Code(WRONG_OPERANDS)
    call_gemm(routine, operands, count, 4)
    return Code(0)


@rtlib_function
def dgemm(routine: Ptr, operands: Ptr, count: int) -> Code:
    """Compute ``alpha A B + beta C`` in f64; library function ``blas.dgemm``."""
    if fits_gemm(operands, count, DTYPE_F64) == 0:
        return Code(WRONG_OPERANDS)
    call_gemm(routine, operands, count, 8)
    return Code(0)
