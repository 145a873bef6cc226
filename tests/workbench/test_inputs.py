"""Sample inputs of functions: the elements that symbols are."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

from tilewright.codegen.errors import OutOfMemoryError, SizeError
from tilewright.ir.script import parse
from tilewright.workbench import inputs
from tilewright.workbench.inputs import random_inputs, sample_inputs

from tests.ir.script.texts import unverified

CACHE = """
n, k = symbols("n k", lower=1)

@graph_func
def main(x: Tensor[(n,), f32], length: State[Tensor((1,), i64, elements=(k,))]):
    y = arange((0, k, 1), dtype="i64")
    return y
"""


def test_elements_that_are_symbols_have_their_sample_values() -> None:
    module = parse(CACHE)
    found = sample_inputs(module.graph(), {"n": 4, "k": 3})
    assert np.asarray(found[0]).shape == (4,)
    assert np.asarray(found[1]).tolist() == [3]


TWO = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 100), f32], y: Tensor[(n, 100), f32]):
    z = add(x, y)
    return z
"""


def test_arguments_use_a_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    function = parse(TWO).graph()
    memory = 2 * 2 * (10 * 100 * 4)
    monkeypatch.setattr(inputs, "usable_memory", lambda: memory)
    assert [np.asarray(x).shape for x in sample_inputs(function, {"n": 10})] == [(10, 100)] * 2
    message = "cannot allocate the 4,400 bytes of shape (11, 100) and dtype f32"
    with pytest.raises(OutOfMemoryError, match=re.escape(message)) as caught:
        sample_inputs(function, {"n": 11})
    assert "'y'" in str(caught.value)
    assert f"at most {memory // 2:,} bytes" in str(caught.value)


@pytest.mark.parametrize("n", [10**9, 10**15, 10**30])
def test_huge_sizes_allocate_nothing(n: int) -> None:
    function = parse(TWO).graph()
    tracemalloc.start()
    try:
        with pytest.raises(OutOfMemoryError, match=f"shape \\({n}, 100\\)"):
            sample_inputs(function, {"n": n})
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_recipe_allocates_nothing() -> None:
    function = parse(TWO).graph()
    tracemalloc.start()
    try:
        recipe = random_inputs(function, {"n": 10**30})
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert [array.shape for array in recipe.arrays] == [(10**30, 100)] * 2


NARROW = """
@prim_func
def pick(x: Buffer[(900,), f32], at: Buffer[(4,), i8], y: Out[(4,), f32]):
    for i in range(4):
        with block("y"):
            vi = spatial(i)
            with checked(at[vi], {lower}, 900) as k:
                y[vi] = x[k]
"""


@pytest.mark.parametrize(("lower", "expected"), [(0, (0, 128)), (-500, (-128, 128)), (500, (0, 2))])
def test_the_range_of_an_index_is_that_of_its_dtype(lower: int, expected: tuple[int, int]) -> None:
    """Indices of a narrow dtype do not wrap to negative ones."""
    pick = parse(NARROW.format(lower=0)).prim("pick")
    _, at = random_inputs(pick, {}, ranges={"at": (lower, 900)}).arrays
    assert (at.low, at.high) == expected
    _, indices = sample_inputs(pick, {}, ranges={"at": (lower, 900)})
    assert np.asarray(indices).dtype == np.int8


SHRINKING = """
n = symbols("n", lower=0)

@prim_func
def copy(x: Buffer[(n - 4,), f32], y: Out[(n - 4,), f32]):
    for i in range(n - 4):
        y[i] = x[i]
"""


def test_a_negative_size_is_an_error() -> None:
    copy = unverified(SHRINKING).prim("copy")
    with pytest.raises(SizeError, match=r"the shape is \(-1,\), but sizes are at least 0"):
        random_inputs(copy, {"n": 3})
