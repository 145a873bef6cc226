"""The index of the values and bindings of a graph, with those of loops."""

from __future__ import annotations

import tilewright as tw
from tilewright.ir.graph.regions import binding_of, bindings_around
from tilewright.ir.graph.visit import all_values
from tilewright.workbench.graph_index import index_of

LOOP = """
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(4,), f32]):
    @loop(k, count=3)
    def y(c: Tensor[(4,), f32] = x):
        d = relu(c)
        return d
    z = relu(y)
    return z
"""


def test_values_and_bindings_are_those_of_a_search() -> None:
    graph = tw.parse(LOOP).graph()
    index = index_of(graph)
    values = list(all_values(graph))
    assert set(index.values) == {value.uid for value in values}
    for value in values:
        assert index.values[value.uid] is value
        assert index.bindings.get(value.uid) is binding_of(graph, value.uid)


def test_outermost_values_are_in_no_loop() -> None:
    graph = tw.parse(LOOP).graph()
    index = index_of(graph)
    outermost = {uid for uid in index.values if uid in index.outermost}
    assert outermost == {uid for uid in index.values if not bindings_around(graph, uid)}
    assert {index.values[uid].name for uid in outermost} == {"x", "y", "z"}
