"""Packed arrays: several elements per byte, element 0 in the low bits."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES, DType, f32, i4, u2
from tilewright.ir.packing import (
    PackedArray,
    PackingError,
    from_storage,
    pack,
    storage_of,
    unpack,
)

PACKED = [row for row in DTYPES.values() if row.is_packed]


@pytest.mark.parametrize("row", PACKED, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 17, 64])
def test_unpacking_returns_the_packed_elements(row: DType, count: int) -> None:
    values = np.random.default_rng(count).integers(row.lowest, row.highest + 1, count)
    data = pack(values, row)
    assert data.size == -(-count * row.bits // 8)
    assert np.array_equal(unpack(data, (count,), row).astype(np.int64), values)


def test_the_unused_bits_of_the_last_byte_are_zero() -> None:
    assert pack(np.array([-1, -1, -1]), i4).tolist() == [0xFF, 0x0F]
    assert pack(np.array([3, 3, 3, 3, 1]), u2).tolist() == [0xFF, 0x01]


def test_the_unused_bits_of_the_last_byte_are_ignored() -> None:
    assert unpack(np.array([0xF1], np.uint8), (1,), i4).tolist() == [1]


def test_integers_wrap_to_the_bits_of_the_dtype() -> None:
    assert unpack(pack(np.array([8, 17, -9]), i4), (3,), i4).tolist() == [-8, 1, 7]


def test_rows_are_not_padded() -> None:
    array = np.arange(9, dtype=np.int8).reshape(3, 3) % 8
    assert pack(array, i4).tolist() == [0x10, 0x32, 0x54, 0x76, 0x00]
    assert unpack(pack(array, i4), (3, 3), i4).astype(int).tolist() == array.tolist()


def test_the_storage_of_other_dtypes_is_their_memory() -> None:
    array = np.array([[1.0, 2.0]], np.float32)
    assert np.array_equal(from_storage(storage_of(array, f32), (1, 2), f32), array)
    assert storage_of(array, f32).size == 8


def test_a_packed_array_checks_its_size_and_dtype() -> None:
    with pytest.raises(PackingError, match=r"expected 2 bytes of dtype uint8 for shape \(3,\) of"):
        PackedArray(np.zeros(3, np.uint8), (3,), "i4")
    with pytest.raises(PackingError, match="dtype f32 is not packed"):
        PackedArray(np.zeros(4, np.uint8), (1,), "f32")
    with pytest.raises(PackingError, match="a contiguous array of one dimension"):
        PackedArray(np.zeros((2, 1), np.uint8), (4,), "i4")
    with pytest.raises(PackingError, match="an array of dtype uint8, got bytes"):
        PackedArray(b"\0", (2,), "i4")
    for shape in [(-1, -2), (-1,), (2.0,), 2]:
        with pytest.raises(PackingError, match="integers of at least 0 as shape, got"):
            PackedArray(np.zeros(1, np.uint8), shape, "i4")
    assert PackedArray(np.zeros(1, np.uint8), (np.int64(2),), "i4").shape == (2,)
    assert repr(PackedArray.of(np.array([[1, 2]]), "u2")) == "PackedArray((1, 2), u2)"


@pytest.mark.parametrize("values", [[1.5, 2.0], [float("nan")], ["a"], [1, None], [1j]])
def test_only_integers_are_packed(values: list[object]) -> None:
    with pytest.raises(
        PackingError, match="expected integers to pack as i4, got elements of dtype"
    ):
        PackedArray.of(np.array(values), "i4")
    assert PackedArray.of([1, 17, True], "i4").unpack().tolist() == [1, 1, 1]
    assert PackedArray.of(np.zeros((0, 3)), "i4").shape == (0, 3)


def test_numpy_reads_the_elements_of_a_packed_array() -> None:
    x = PackedArray.of(np.array([[1, -2], [3, -4]]), "i4")
    assert np.asarray(x).tolist() == [[1, -2], [3, -4]]
    assert np.asarray(x, np.float32).dtype == np.float32
    with pytest.raises(PackingError, match="is a copy"):
        x.__array__(copy=False)
