"""Random integer arguments are within the ranges in which kernels use them as indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tilewright as tw
from tilewright.ir.module import Module
from tilewright.workbench.inputs import sample_inputs
from tilewright.workbench.integer_ranges import integer_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client

EMBEDDING = """
n, v = symbols("n v", lower=1)

@graph_func
def main(ids: Tensor[(n, 2), i64], table: Tensor[(v, 8), f32], mask: Tensor[(n,), i32]):
    flat: Tensor[(n * 2,), i64] = reshape(ids, (n * 2,))
    rows: Tensor[(n * 2, 8), f32] = take(table, flat, axis=0)
    return rows
"""

PICK = """
n = symbols("n", lower=1)

@prim_func
def pick(x: Buffer[(n,), f32], at: Buffer[(4,), i32], y: Out[(4,), f32]):
    for i in range(4):
        with block("y"):
            vi = spatial(i)
            with {mode}(at[vi], {lower}, {upper}) as k:
                y[vi] = x[k]
"""


def test_indices_of_a_graph_are_followed_through_views_to_its_kernels() -> None:
    sch = tw.Schedule(tw.parse(EMBEDDING))
    sch.lower_graph("main")
    samples = {"n": 3, "v": 1000}
    ranges = integer_ranges(sch.module, sch.module.graph("main"), samples)
    assert ranges == {"ids": (0, 1000)}
    ids, _, mask = sample_inputs(sch.module.graph("main"), samples, ranges=ranges)
    assert np.max(ids) > 1
    assert set(np.asarray(mask).tolist()) <= {0, 1}


def test_ranges_of_a_kernel_depend_on_the_samples() -> None:
    pick = tw.parse(PICK.format(mode="checked", lower=0, upper="n")).prim("pick")
    assert integer_ranges(Module(), pick, {"n": 9}) == {"at": (0, 9)}
    assert integer_ranges(Module(), pick, {"n": 0}) == {}
    clamped = tw.parse(PICK.format(mode="clamped", lower=0, upper="n")).prim("pick")
    assert integer_ranges(Module(), clamped, {"n": 9}) == {"at": (0, 9)}


def test_an_embedding_is_measured_and_verified_with_indices_of_the_entire_table(
    connect: Callable[..., Client],
) -> None:
    client = connect(EMBEDDING)
    session = client.session
    session.document.samples = {("main", "n"): 64, ("main", "v"): 500}
    node, main = session.schedule.head, session.entry
    ids, _, mask = session._bench._inputs(node, main, session.samples(main)).arrays
    assert (ids.low, ids.high) == (0, 500)
    assert (mask.low, mask.high) == (0, 2)
    client.send("run", action="compile", function="")
    session.jobs.wait()
    assert session.document.verdict is not None, session.document.problems
    assert session.document.verdict.agrees
