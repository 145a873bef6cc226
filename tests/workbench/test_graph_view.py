"""The graph diagram and the function opened by a selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.ir.graph.nodes import Value
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.script import parse
from tilewright.workbench.graph_view import graph_view

from tests.ir.graph.state_programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client


def test_graph_is_sent_with_its_text(network: Client) -> None:
    update, buffers = network.received[0]
    assert update.graph is not None
    assert [(n.name, n.kind, n.callee) for n in update.graph.nodes] == [
        ("x", "param", ""),
        ("a", "kernel", "twice"),
        ("b", "kernel", "twice"),
        ("result", "result", ""),
    ]
    assert [n.inputs for n in update.graph.nodes[1:]] == [
        [update.graph.nodes[0].uid],
        [update.graph.nodes[1].uid],
        [update.graph.nodes[2].uid],
    ]
    assert [p.function for p in update.panes or []] == ["main"]
    assert len(buffers) == 1
    calls = {f.name: f.calls for f in (update.functions.items if update.functions else [])}
    assert calls == {"twice": 2, "main": 0}


def test_selecting_an_operation_opens_its_kernel(network: Client) -> None:
    graph = network.received[0][0].graph
    assert graph is not None
    update = network.select("binding", graph.nodes[1].uid, "main")
    assert update.open == "twice"
    assert [p.function for p in update.panes or []] == ["twice"]
    assert update.graph is None, "the graph did not change"
    assert update.symbols is not None
    assert update.symbols.rows[0].sample == 6, "derived from the hint of main"


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_states_are_shown_before_and_after_planning(name: str) -> None:
    module = parse(PROGRAMS[name])
    for function in (module.graph(), plan_memory(module, module.graph())):
        view = graph_view(function)
        last = view.nodes[-1]
        assert last.kind == "result"
        assert {u.value.uid for u in function.updates if isinstance(u.value, Value)} <= {
            *last.inputs
        }


LOOPS = """
n, t, u, k = symbols("n t u k", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32], flag: Tensor[(), bool]):
    one = full((1, 4), 1.0, dtype="f32")
    @loop(k, count=n)
    def y(c: Tensor[(t, 4), f32] = x, e: Tensor[(4,), f32] = each(x)) -> Tensor[(u, 4), f32]:
        row = reshape(e, (1, 4))
        d = concat(c, row, axis=0)
        if flag:
            p = relu(row)
            q: Tensor[(1, 4), f32] = p
        else:
            q: Tensor[(1, 4), f32] = one
        f = concat(d, q, axis=0)
        return f
    z = relu(y)
    return z
"""


def test_a_loop_is_a_namespace_with_its_carried_values() -> None:
    function = parse(LOOPS).graph()
    nodes = {n.name: n for n in graph_view(function).nodes}
    assert {name: n.path for name, n in nodes.items()} == {
        "x": [], "flag": [], "one": [], "z": [], "result": [],
        **{name: ["loop y"] for name in ("c", "e", "row", "d", "f", "y")},
        "p": ["loop y", "if q", "then"],
        "q": ["loop y", "if q"],
    }  # fmt: skip
    assert (nodes["c"].kind, nodes["c"].op) == ("carried", "carried")
    assert nodes["c"].detail == "(t, 4) f32, next: f"
    assert (nodes["e"].kind, nodes["e"].op) == ("carried", "slice")
    names = {n.uid: n.name for n in nodes.values()}
    inputs = {name: [names[uid] for uid in n.inputs] for name, n in nodes.items()}
    assert inputs["c"] == ["x"]
    assert inputs["y"] == ["f"]
    assert inputs["q"] == ["flag", "p", "one"]
    assert inputs["z"] == ["y"]


def test_a_planned_loop_is_shown() -> None:
    sch = tw.Schedule(parse(LOOPS))
    sch.legalize()
    sch.plan_memory()
    nodes = graph_view(sch.module.graph()).nodes
    assert any(n.path[:1] == ["loop y"] and n.kind == "kernel" for n in nodes)
    uids = [n.uid for n in nodes]
    assert len(set(uids)) == len(uids)
    assert {u for n in nodes for u in n.inputs} <= set(uids)


def test_a_binding_in_a_loop_is_selected(connect: Callable[..., Client]) -> None:
    client = connect(LOOPS)
    graph = client.received[0][0].graph
    assert graph is not None
    nodes = {n.name: n for n in graph.nodes}
    for name, words in (("d", "annotation"), ("c", "parameter"), ("p", "annotation")):
        update = client.select("binding", nodes[name].uid, "main")
        assert update.selected is not None
        assert update.selected.selection is not None
        assert update.selected.selection.name == name
        assert [h.name for h in update.selected.path][:2] == ["main", "y"]
        assert words in update.selected.properties
