"""Sorting, distinct elements, and positions of nonzero elements.

The functions are library functions of every executable: ``std.sort``, ``std.unique`` and
``std.nonzero``. Elements are compared by keys, 64-bit integers in the order of the elements: NaN is
greater than all numbers and equal to NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

from .gemm import extent
from .language import (
    Code,
    Ptr,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    load_u16,
    move,
    rtlib_function,
    store_i32,
    store_i64,
    store_u8,
    store_u16,
)
from .narrow import merge_sort

INT = 0
UNSIGNED = 1
BRAIN_FLOAT = 4
BOOL = 6
LARGEST = 0x7FFFFFFFFFFFFFFF
LOWEST = -0x8000000000000000

UNSUPPORTED_DTYPE = 2
"""Error code: elements of this dtype cannot be compared."""


@rtlib_function
def load_element(data: Ptr, position: int, bits: int) -> int:
    """Return the bits of an element; those of 8 and 16 bits are not negative."""
    if bits == 8:
        return load_u8(data, position)
    if bits == 16:
        return load_u16(data, 2 * position)
    if bits == 32:
        return load_i32(data, 4 * position)
    return load_i64(data, 8 * position)


@rtlib_function
def store_element(data: Ptr, position: int, bits: int, value: int) -> None:
    """Store the bits of an element."""
    if bits == 8:
        store_u8(data, position, value)
    elif bits == 16:
        store_u16(data, 2 * position, value)
    elif bits == 32:
        store_i32(data, 4 * position, value)
    else:
        store_i64(data, 8 * position, value)


@rtlib_function
def infinity_bits(code: int, bits: int) -> int:
    """Return the bits of infinity."""
    if code == BRAIN_FLOAT:
        return 0x7F80
    if bits == 16:
        return 0x7C00
    if bits == 32:
        return 0x7F800000
    return 0x7FF0000000000000


@rtlib_function
def sort_key(data: Ptr, position: int, dtype: int) -> int:
    """Return a 64-bit integer in the order of the elements."""
    code = dtype // 256
    bits = dtype % 256
    value = load_element(data, position, bits)
    if code == BOOL:
        return value
    if code == UNSIGNED:
        if bits == 64:
            return value ^ LOWEST
        return value & ((1 << bits) - 1)
    sign = (value >> (bits - 1)) & 1
    if code == INT:
        if bits < 32 and sign == 1:
            return value - (1 << bits)
        return value
    size = value & ((1 << (bits - 1)) - 1)
    if size > infinity_bits(code, bits):
        return LARGEST
    if sign == 1:
        return 0 - size
    return size


@rtlib_function
def comparable(dtype: int) -> int:
    """Return whether the elements of a dtype have keys."""
    code = dtype // 256
    bits = dtype % 256
    if code <= UNSIGNED or code == BOOL:
        return bits >= 8
    if code == BRAIN_FLOAT:
        return bits == 16
    return code == 2 and bits >= 16


@rtlib_function
def elements(operands: Ptr, position: int) -> int:
    """Return the number of elements of an operand."""
    count = 1
    for k in range(load_i64(operands, 32 * position + 8)):
        count = count * extent(operands, position, k)
    return count


@rtlib_function
def sorted_row(data: Ptr, dtype: int, count: int, descending: int, memory: Ptr) -> Ptr:
    """Return the positions of the sorted elements, in ``3 * count`` words of memory; it is stable.

    The keys of the elements are the first words.
    """
    for k in range(count):
        key = sort_key(data, k, dtype)
        if descending == 0:
            key = key ^ -1
        store_i64(memory, 8 * k, key)
    return merge_sort(count, memory, move(memory, 8 * count), move(memory, 16 * count))


@rtlib_function
def sort_rows(_user: Ptr, operands: Ptr, _count: int) -> Code:
    """Sort the rows of ``x``: the values, and their positions in the row."""
    dtype = load_i64(operands, 24)
    if comparable(dtype) == 0:
        return Code(UNSUPPORTED_DTYPE)
    bits = dtype % 256
    axis = load_i64(operands, 8) - 1
    length = extent(operands, 0, axis)
    rows = elements(operands, 0) // max(length, 1)
    descending = load_i64(load_ptr(operands, 128), 0)
    values = load_ptr(operands, 32)
    positions = load_ptr(operands, 64)
    memory = load_ptr(operands, 96)
    for row in range(rows):
        data = move(load_ptr(operands, 0), row * length * (bits // 8))
        order = sorted_row(data, dtype, length, descending, memory)
        for k in range(length):
            found = load_i64(order, 8 * k)
            store_element(values, row * length + k, bits, load_element(data, found, bits))
            store_i64(positions, 8 * (row * length + k), found)
    return Code(0)


@rtlib_function
def find_unique(_user: Ptr, operands: Ptr, _count: int) -> Code:
    """Find the distinct elements of ``x`` in ascending order.

    The outputs are the elements, the position of the first element of each value, the number of
    the value of each element, the number of elements of each value, and the number of values.
    """
    dtype = load_i64(operands, 24)
    if comparable(dtype) == 0:
        return Code(UNSUPPORTED_DTYPE)
    bits = dtype % 256
    count = elements(operands, 0)
    data = load_ptr(operands, 0)
    values = load_ptr(operands, 32)
    firsts = load_ptr(operands, 64)
    inverse = load_ptr(operands, 96)
    counts = load_ptr(operands, 128)
    memory = load_ptr(operands, 192)
    order = sorted_row(data, dtype, count, 0, memory)
    last = -1
    for k in range(count):
        found = load_i64(order, 8 * k)
        new = 1
        if k > 0:
            new = load_i64(memory, 8 * found) != load_i64(memory, 8 * load_i64(order, 8 * (k - 1)))
        if new:
            last += 1
            store_element(values, last, bits, load_element(data, found, bits))
            store_i64(firsts, 8 * last, found)
            store_i64(counts, 8 * last, 0)
        store_i64(inverse, 8 * found, last)
        store_i64(counts, 8 * last, load_i64(counts, 8 * last) + 1)
    store_i64(load_ptr(operands, 160), 0, last + 1)
    return Code(0)


@rtlib_function
def find_nonzero(_user: Ptr, operands: Ptr, _count: int) -> Code:
    """Find the elements of ``x`` that are not zero, in row-major order.

    The outputs are one row of indices per element, and the number of elements.
    """
    dtype = load_i64(operands, 24)
    if comparable(dtype) == 0:
        return Code(UNSUPPORTED_DTYPE)
    rank = load_i64(operands, 8)
    data = load_ptr(operands, 0)
    indices = load_ptr(operands, 32)
    zero = 0
    if dtype == UNSIGNED * 256 + 64:
        zero = LOWEST
    found = 0
    for k in range(elements(operands, 0)):
        if sort_key(data, k, dtype) != zero:
            rest = k
            for j in range(rank):
                axis = rank - 1 - j
                size = extent(operands, 0, axis)
                store_i64(indices, 8 * (found * rank + axis), rest % size)
                rest = rest // size
            found += 1
    store_i64(load_ptr(operands, 64), 0, found)
    return Code(0)
