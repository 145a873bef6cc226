"""Random elements: ranges, dtypes, and independence of parts."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.sandbox.random_inputs import ArrayRecipe
from tilewright.ir.dtype import DTYPES, f16, f32, i32, i64
from tilewright.workbench.page import drawing
from tilewright.workbench.page.drawing import draw, drawn, is_drawn_in_page, seed_of


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "i8", "u8", "i64", "bool"])
def test_elements_are_in_their_range(name: str) -> None:
    recipe = ArrayRecipe("x", (40, 50), DTYPES[name], 3, 9)
    array = draw(recipe, 5)
    assert array.shape == (40, 50)
    values = array.astype(np.float64)
    low, high = (-1, 1) if recipe.dtype.is_float else (0, 1) if name == "bool" else (3, 8)
    assert low <= values.min() < values.max() <= high
    assert len(np.unique(values)) > (100 if recipe.dtype.is_float else 1)


def test_parts_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = ArrayRecipe("x", (1000,), f32)
    whole = draw(recipe, 7)
    monkeypatch.setattr(drawing, "PART", 64)
    np.testing.assert_array_equal(draw(recipe, 7), whole)
    assert not np.array_equal(draw(recipe, 8), whole)
    assert abs(whole.mean()) < 0.1


def test_arguments_have_different_seeds_and_known_values_are_sent() -> None:
    recipe = ArrayRecipe("k", (3,), i32, values=(5, 6, 7))
    first, number, second, known = drawn(
        [ArrayRecipe("x", (9,), f32), 4, ArrayRecipe("x", (9,), f32), recipe], 0
    )
    assert not np.array_equal(first, second)
    assert number == 4
    assert known.tolist() == [5, 6, 7]
    assert not is_drawn_in_page(recipe)
    assert [is_drawn_in_page(ArrayRecipe("x", (1,), d)) for d in (f32, i32, f16, i64)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert len({seed_of(k, s) for k in range(9) for s in range(9)}) == 81
