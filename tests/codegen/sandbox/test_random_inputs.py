"""Recipes of random inputs, and the arrays that are drawn from them."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

from tilewright.codegen.errors import OutOfMemoryError
from tilewright.codegen.sandbox.random_inputs import ArrayRecipe, RandomInputs
from tilewright.ir.dtype import DTYPES, DType, bf16, f16, f32, i8, i64, u64

LIMIT = 1 << 30


def one(dtype: DType, *shape: int, low: int = 0, high: int = 2, seed: int = 0) -> np.ndarray:
    """Draw one array."""
    recipe = RandomInputs((ArrayRecipe("x", shape, dtype, low, high),), seed)
    return recipe.drawn(LIMIT)[0]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (300, 500)])
def test_arrays_of_each_dtype(dtype: DType, shape: tuple[int, ...]) -> None:
    """The largest shape consists of several chunks."""
    array = one(dtype, *shape)
    assert array.shape == shape
    assert array.dtype == dtype.numpy
    assert array.nbytes == ArrayRecipe("x", shape, dtype).size
    assert np.array_equal(array, one(dtype, *shape))
    if array.size > 1:
        values = np.unique(array.astype(np.complex128 if dtype.is_complex else np.float64))
        assert not np.array_equal(array, one(dtype, *shape, seed=1))
        assert len(values) == 2 if not dtype.is_inexact else len(values) > 2
        assert np.abs(values.real).max() <= 1
        assert np.abs(values.imag).max() <= 1


@pytest.mark.parametrize("dtype", [f16, bf16, f32])
def test_floats_have_both_signs_and_the_mean_zero(dtype: DType) -> None:
    values = one(dtype, 1 << 17).astype(np.float64)
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1 / np.sqrt(3)) < 0.01


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(i8, -128, 128), (i64, 7, 8), (u64, 2**64 - 2, 2**64), (i64, -(2**63), 2**63)],
)
def test_integers_are_within_their_range(dtype: DType, low: int, high: int) -> None:
    values = one(dtype, 10_000, low=low, high=high)
    assert low <= int(values.min()) <= int(values.max()) < high
    if high - low <= 1 << 8:
        assert len(np.unique(values)) == high - low


def test_known_elements_and_integers_are_kept() -> None:
    known = ArrayRecipe("at", (2, 2), i64, values=(5, 6, 7, 8))
    recipe = RandomInputs((3, known, ArrayRecipe("s", (), i64, values=(9,))))
    three, at, scalar = recipe.drawn(LIMIT)
    assert three == 3
    assert at.tolist() == [[5, 6], [7, 8]]
    assert scalar.tolist() == 9


def test_a_recipe_survives_json() -> None:
    known = ArrayRecipe("at", (2,), i64, values=(5, 6))
    recipe = RandomInputs((3, known, ArrayRecipe("x", (4, 0), bf16, -3, 9)), seed=7)
    assert RandomInputs.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


def test_temporary_arrays_are_small() -> None:
    recipe = RandomInputs((ArrayRecipe("x", (1 << 22,), f16),))
    array = np.empty(1 << 22, np.float16)
    tracemalloc.start()
    try:
        recipe.fill([array])
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [10**9, 10**15, 10**30])
def test_arrays_beyond_the_limit_are_rejected_by_name(count: int) -> None:
    recipe = RandomInputs((ArrayRecipe("x", (8,), f32), ArrayRecipe("y", (count,), f32)))
    tracemalloc.start()
    try:
        with pytest.raises(OutOfMemoryError) as caught:
            recipe.drawn(limit=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert f"cannot allocate the {4 * count:,} bytes" in str(caught.value)
    assert "at most 1,048,576 bytes" in str(caught.value)
    assert "parameter 'y'" in str(caught.value)
