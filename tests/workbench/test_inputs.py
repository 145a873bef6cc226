"""Sample inputs of functions: the elements that symbols are."""

from __future__ import annotations

import numpy as np

from tilewright.ir.script import parse
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
