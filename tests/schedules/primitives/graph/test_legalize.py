"""Operators that replace elements of a state are lowered to updates in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright.codegen.errors import CheckError, FactError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
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
    "scatter_reduce": "scatter_reduce(s, rows, x, include_self=False)",
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


HEAD = """
n, m, z = symbols("n m z", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], y: Tensor[(m,), f32], w: Tensor[(n, m), f32], p: Tensor[(), bool]):
"""


def compiled(body: str) -> tuple[Module, Any]:
    """Return a program, and its executable by the default steps."""
    module = parse(HEAD + "\n".join(f"    {line}" for line in body.strip().split("\n")) + "\n")
    return module, tw.compile(module)


@pytest.mark.parametrize(
    ("body", "legal"),
    [
        ("a = strided_slice(x, (0,), (4,), axes=(0,))\nreturn a", (4, 0)),
        ("a = reshape(x, (2, 2))\nreturn a", (4, 0)),
        ("a = squeeze(x, axes=(0,))\nreturn a", (1, 0)),
        ("t = split(x, (2, 1), axis=0)\na = t[1]\nreturn a", (3, 0)),
        ("a = add(x, y)\nreturn a", (3, 3)),
        ("b = reshape(x, (1, n))\na = concat(w, b, axis=0)\nreturn a", (3, 3)),
        ('a = pad(x, (2,), (0,), mode="reflect")\nreturn a', (3, 0)),
        ("b = reshape(x, (1, 1, n))\na = adaptive_max_pool(b, (2,))\nreturn a", (2, 0)),
        ("a = argmax(x, axis=0)\nreturn a", (1, 0)),
    ],
)  # fmt: skip
def test_a_requirement_of_an_operator_that_is_not_proved_is_checked(
    body: str, legal: tuple[int, int]
) -> None:
    module, exe = compiled(body)

    def inputs(n: int, m: int) -> list[Array]:
        shapes = ((n,), (m,), (n, m))
        arrays = [np.arange(math.prod(s), dtype=np.float32).reshape(s) for s in shapes]
        return [*arrays, np.array(True)]

    same(run_graph(module, inputs(*legal)), [exe(*inputs(*legal))])
    with pytest.raises((CheckError, FactError)):
        exe(*inputs(0, 7))


@pytest.mark.parametrize("line", ["a = strided_slice(x, (0,), (4,), axes=(0,))",
                                  "t = topk(x, (4,))\n    a = t[0]",
                                  "a = reshape(x, (4,))"])  # fmt: skip
def test_a_requirement_in_a_branch_is_checked_if_the_branch_runs(line: str) -> None:
    module, exe = compiled(f"""
if p:
    {line}
    s = sum(a, axes=(0,))
    r: Tensor[(), f32] = s
else:
    b = relu(x)
    t0 = sum(b, axes=(0,))
    r = t0
return r
""")
    y, w = np.ones(0, np.float32), np.ones((4, 0), np.float32)
    four = [np.ones(4, np.float32), y, w, np.array(True)]
    same(run_graph(module, four), [exe(*four)])
    two = [np.ones(2, np.float32), y, w[:2], np.array(False)]
    same(run_graph(module, two), [exe(*two)])
    with pytest.raises(CheckError):
        exe(*two[:3], np.array(True))


def test_symbols_of_several_lowered_operators_have_different_names() -> None:
    module, exe = compiled("""
t = unique(x)
u = unique(y)
a = t[0]
b = u[3]
c = match_cast(a, Tensor[(z,), f32])
d = nonzero(y)
e = nonzero(x)
return c, b, d, e
""")
    sch = Schedule(module)
    sch.legalize()
    assert violations(sch.module) == ()
    assert to_text(parse(to_text(sch.module))) == to_text(sch.module)
    x, y = np.array([2, 1, 2], np.float32), np.array([0, 5], np.float32)
    inputs = [x, y, np.ones((3, 2), np.float32), np.array(True)]
    same(run_graph(module, inputs), list(exe(*inputs)))
