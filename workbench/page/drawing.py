"""Random elements that this process and a page draw alike, so that inputs are not sent.

Element ``k`` is a mixed word of the seed and ``k``; the page computes the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...codegen.sandbox.random_inputs import ArrayRecipe
from ...ir.dtype import DType, f32, i32
from ..protocol_gpu import DRAW_WORDS

Array = NDArray[Any]

PART: Final = 1 << 20
"""The number of elements that are drawn at a time."""

DRAWN_IN_PAGE: Final = (f32, i32)
"""The dtypes that a page draws; elements of other dtypes are sent."""


def is_drawn_in_page(recipe: ArrayRecipe) -> bool:
    """Return whether a page draws the elements."""
    return recipe.values is None and recipe.dtype in DRAWN_IN_PAGE


def seed_of(position: int, seed: int) -> int:
    """Return the seed of an argument."""
    return (seed * 1009 + position + 1) & 0x7FFFFFFF


def draw(recipe: ArrayRecipe, seed: int) -> Array:
    """Return the array of a recipe.

    Examples
    --------
    >>> [round(float(x), 3) for x in draw(ArrayRecipe("x", (3,), f32), seed=1)]
    [0.042, -0.265, -0.469]
    >>> draw(ArrayRecipe("k", (6,), i32, low=3, high=5), seed=2).tolist()
    [4, 3, 4, 4, 4, 3]
    """
    array = np.empty(recipe.shape, recipe.dtype.numpy)
    flat = array.reshape(-1)
    if recipe.values is not None:
        flat[...] = np.array(recipe.values, flat.dtype)
        return array
    part = flat.view(recipe.dtype.part.numpy)
    for first in range(0, part.size, PART):
        here = part[first : first + PART]
        here[...] = _elements(recipe, _words(seed, first, here.size))
    return array


def _elements(recipe: ArrayRecipe, words: NDArray[np.uint32]) -> Array:
    own: DType = recipe.dtype.part
    if own.is_float:
        return (words >> np.uint32(8)).astype(np.float64) / 0x800000 - 1
    if own.kind == "bool":
        return (words & np.uint32(1)).astype(np.bool_)
    span = words.astype(np.int64) % (recipe.high - recipe.low)
    return recipe.low + span


def _words(seed: int, first: int, count: int) -> NDArray[np.uint32]:
    numbers = np.arange(first + 1, first + count + 1, dtype=np.uint64).astype(np.uint32)
    start = _mixed(np.array([seed], np.uint32))
    return _mixed(start ^ (numbers * np.uint32(DRAW_WORDS[0])))


def _mixed(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return well-mixed words of words: the finalizer of MurmurHash3."""
    h = words ^ (words >> np.uint32(16))
    h *= np.uint32(DRAW_WORDS[1])
    h ^= h >> np.uint32(13)
    h *= np.uint32(DRAW_WORDS[2])
    return h ^ (h >> np.uint32(16))


def drawn(arguments: Sequence[int | ArrayRecipe], seed: int) -> list[Array | int]:
    """Return the arguments that a page draws or receives for these recipes."""
    return [a if isinstance(a, int) else draw(a, seed_of(k, seed)) for k, a in enumerate(arguments)]
