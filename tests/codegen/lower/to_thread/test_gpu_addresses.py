"""Alignment of the vector accesses of a GPU thread."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.script import parse
from tilewright.ir.thread.nodes import Load
from tilewright.ir.thread.visit import statement_values, walk, walk_values
from tilewright.target.target import Target

from tests.codegen.gpu.running import launch

WINDOW = """
@prim_func
def window(x: Buffer[(14,), f32], y: Out[(8,), f32]):
    near = alloc((14,), f32, scope="local")
    for t in thread(1, "threadIdx.x"):
        for i in range(14):
            with block("copy"):
                vi = spatial(i)
                near[vi] = x[vi]
        for j_0 in range(2):
            for j_1 in vectorized(4):
                with block("shift"):
                    vj_0, vj_1 = spatial(j_0), spatial(j_1)
                    y[vj_0 * 4 + vj_1] = near[vj_0 * 4 + vj_1 + SHIFT]
"""


@pytest.mark.parametrize(("shift", "alignment"), [("4", 16), ("1", 4), ("2", 4), ("vj_0", 4)])
def test_a_vector_in_registers_is_aligned_if_that_is_provable(shift, alignment):
    """The stores to global memory are vectors in each case."""
    text = WINDOW.replace("SHIFT", shift)
    kernel = lower_kernel(parse(text).prims[0], Target("simt"))
    values = (v for s in walk(kernel.function.body) for v in walk_values(statement_values(s)))
    read = [v for v in values if isinstance(v, Load)]
    assert {e.address.alignment for e in read if e.type.lanes == 4} == {alignment}
    x, y = np.arange(14, dtype=np.float32), np.zeros(8, np.float32)
    assert not launch(kernel, [x, y], {}).errors
    starts = np.arange(0, 8, 4) + (np.arange(2) if shift == "vj_0" else int(shift))
    np.testing.assert_array_equal(y, (starts[:, None] + np.arange(4)).ravel())
