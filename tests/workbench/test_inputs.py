"""Sample inputs of functions: the elements that symbols are."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

from tilewright.codegen.errors import OutOfMemoryError
from tilewright.ir.script import parse
from tilewright.workbench import inputs
from tilewright.workbench.inputs import sample_inputs

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
    memory = 2 * (10 * 100 * (4 + 16) + 10 * 100 * 4)
    monkeypatch.setattr(inputs.os, "sysconf", {"SC_PHYS_PAGES": memory, "SC_PAGE_SIZE": 1}.get)
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
