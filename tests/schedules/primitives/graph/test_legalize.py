"""Operators that replace elements of a state are lowered to updates in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

Array = NDArray[Any]


def same(before: list[Array], after: list[Array]) -> None:
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


CHANGES = {
    "update_slice": "update_slice(s, x, (1, 0))",
    "index_copy": "index_copy(s, at, x, axis=0, wrap=True)",
    "index_add": "index_add(s, at, x, axis=0, wrap=True)",
    "scatter_add": "scatter_add(s, rows, x, axis=0)",
    "scatter_elements": "scatter_elements(s, rows, x, axis=0)",
}


def changing(call: str, *, later: str = "s2") -> Module:
    """Return a program that replaces elements of a state, and returns a function of a value."""
    return parse(
        f"""
@graph_func
def main(
    s: State[Tensor[(5, 3), f32]],
    x: Tensor[(2, 3), f32],
    at: Tensor[(2,), i64],
    rows: Tensor[(2, 3), i64],
):
    s2 = {call}
    y = multiply({later}, 2.0)
    return y, updates(s=s2)
"""
    )


def changed(module: Module) -> list[Array]:
    state = np.arange(15, dtype=np.float32).reshape(5, 3) / 8
    found: list[Array] = []
    for at in ([0, 4], [-1, 2], [3, 3]):
        x = np.full((2, 3), at[0] + 0.5, np.float32)
        rows = np.array([[0, 1, 2], [4, 3, 0]])
        (y,) = run_graph(module, [state, x, np.array(at), rows])
        found += [np.array(y), state.copy()]
    return found


@pytest.mark.parametrize("op", CHANGES)
def test_elements_of_a_state_are_replaced_in_place(op: str) -> None:
    module = changing(CHANGES[op])
    sch = Schedule(module)
    before = changed(sch.module)
    sch.legalize()
    assert f"call_tir({op}, s, " in str(sch.module.graph())
    assert "updates=(0,)" in str(sch.module.graph())
    same(before, changed(sch.module))
    sch.plan_memory()
    assert "copy(" not in str(sch.module.graph())
    same(before, changed(sch.module))


@pytest.mark.parametrize("op", CHANGES)
def test_elements_are_replaced_in_a_copy_if_the_old_value_is_used(op: str) -> None:
    sch = Schedule(changing(CHANGES[op], later="s"))
    before = changed(sch.module)
    sch.legalize()
    assert "updates=(0,)" not in str(sch.module.graph())
    same(before, changed(sch.module))
    sch.plan_memory()
    same(before, changed(sch.module))


@pytest.mark.parametrize("op", CHANGES)
def test_elements_of_intermediate_tensors_are_replaced_in_new_tensors(op: str) -> None:
    text = str(changing(CHANGES[op]).graph()).replace(
        f"    s2: Tensor[(5, 3), f32] = {op}(s,",
        f"    t: Tensor[(5, 3), f32] = add(s, 1.0)\n    s2: Tensor[(5, 3), f32] = {op}(t,",
    )
    sch = Schedule(parse(text))
    before = changed(sch.module)
    sch.legalize()
    assert "updates=(0,)" not in str(sch.module.graph())
    same(before, changed(sch.module))
