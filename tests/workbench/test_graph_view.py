"""The graph diagram and the function opened by a selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tilewright.ir.graph.nodes import Value
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.script import parse
from tilewright.workbench.graph_view import graph_view

from tests.ir.graph.state_programs import PROGRAMS

if TYPE_CHECKING:
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
    calls = {f.name: f.calls for f in update.functions or []}
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
