"""The ``common_subexpressions`` primitive."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.interpreter import run_graph
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.graph.common_subexpressions import CommonSubexpressions

from tests.schedules.helpers import rejected

NESTED = """
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(4,), f32], p: Tensor[(), bool]):
    a = exp(x)
    if p:
        b = exp(x)
        c = negative(b)
        y: Tensor[(4,), f32] = c
    else:
        d = negative(a)
        y: Tensor[(4,), f32] = d
    @loop(k, count=2)
    def z(r: Tensor[(4,), f32] = y):
        e = exp(x)
        f = exp(r)
        g = add(e, f)
        h = exp(r)
        i = add(g, h)
        return e
    j = negative(a)
    return j, z
"""


def names(sch):
    return [b.value.name for b in all_bindings(sch.module.graph("main").bindings)]


def test_equal_bindings_of_nested_lists():
    sch = tw.Schedule(tw.parse(NESTED))
    handle = sch.get_binding("h")
    sch.common_subexpressions()
    # `e` is `a`; `c`, `d`, and `j` are not available outside of their branches.
    assert names(sch) == ["a", "y", "c", "d", "z", "f", "g", "i", "j"]
    assert sch.verify().ok
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    for taken in (False, True):
        args = [x, np.array(taken)]
        wanted = run_graph(tw.parse(NESTED), args)
        for found, value in zip(tw.compile(sch, "cpu")(*args), wanted, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-6)
    assert handle is not None
    sch.undo()
    assert "h" in names(sch)


DIFFERENT = """
@graph_func
def main(x: Tensor[(4,), f32]):
    a = multiply(x, 0.0)
    b = multiply(x, -0.0)
    c = softmax(x, axis=0)
    d = softmax(x, axis=-1)
    e = sum(x, axes=(0,), keepdims=True)
    f = sum(x, axes=(0,), keepdims=False)
    return a, b, c, d, e, f
"""


def test_bindings_that_differ_in_a_literal_an_attribute_or_an_annotation_remain():
    sch = tw.Schedule(tw.parse(DIFFERENT))
    sch.common_subexpressions()
    assert names(sch) == ["a", "b", "c", "d", "e", "f"]


def test_results_keep_their_bindings():
    text = """
@graph_func
def main(x: Tensor[(4,), f32]):
    a = exp(x)
    b = exp(x)
    c = negative(b)
    return a, b, c
"""
    sch = tw.Schedule(tw.parse(text))
    sch.common_subexpressions()
    assert names(sch) == ["a", "b", "c"]


def test_calls_of_kernels_are_merged_unless_they_update_an_argument():
    text = """
@prim_func
def twice(c: InOut[(8,), f32]):
    for i in range(8):
        c[i] = c[i] * 2.0

@graph_func
def main(x: Tensor[(8,), f32]):
    a = call_tir(twice, x, updates=(0,))
    b = call_tir(twice, x, updates=(0,))
    c = relu(x)
    d = relu(x)
    e = add(a, b)
    f = add(c, d)
    y = add(e, f)
    return y
"""
    sch = tw.Schedule(tw.parse(text))
    sch.legalize()
    sch.common_subexpressions()
    assert names(sch) == ["a", "b", "c", "e", "f", "y"]
    x = np.arange(8, dtype=np.float32)
    assert tw.compile(sch, "cpu")(x).tolist() == (6 * x).tolist()


def test_the_merged_binding_has_the_provenance_of_all():
    sch = tw.Schedule(tw.parse(NESTED))
    sch.common_subexpressions()
    first = sch.module.graph("main").bindings[0]
    assert {"b", "e"} <= first.origins


def test_it_is_suggested_for_graphs_with_equal_bindings():
    state = tw.Schedule(tw.parse(NESTED)).state
    assert list(CommonSubexpressions.suggest(state, FunctionRef("main")))
    other = tw.Schedule(tw.parse(DIFFERENT)).state
    assert not list(CommonSubexpressions.suggest(other, FunctionRef("main")))


def test_it_rejects_kernels():
    sch = tw.Schedule(tw.parse(NESTED))
    sch.legalize()
    rejected(
        sch,
        CommonSubexpressions(FunctionRef("exp")),
        CommonSubexpressions.Requires.DATAFLOW_STAGE,
        "'exp' is a loop-level function; graph-level functions are main",
    )


def test_fields_of_equal_tuples_are_merged():
    text = """
@graph_func
def main(x: Tensor[(4,), f32]):
    s = split(x, (2, 2), axis=0)
    t = split(x, (2, 2), axis=0)
    a = s[0]
    b = t[0]
    c = t[1]
    d = add(a, b)
    y = add(d, c)
    return y
"""
    sch = tw.Schedule(tw.parse(text))
    sch.common_subexpressions()
    assert names(sch) == ["s", "a", "c", "d", "y"]
    assert run_graph(sch.module, [np.arange(4, dtype=np.float32)])[0].tolist() == [2, 5]
