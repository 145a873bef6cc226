"""Graph and loops side by side: what a click on one opens in the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_the_graph_is_sent_with_its_text(network: Client) -> None:
    update, buffers = network.heard[0]
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
    graph = network.heard[0][0].graph
    assert graph is not None
    update = network.select("binding", graph.nodes[1].uid, "main")
    assert update.open == "twice"
    assert [p.function for p in update.panes or []] == ["twice"]
    assert update.graph is None, "the graph did not change"
    assert update.symbols is not None
    assert update.symbols.rows[0].sample == 6, "the hint of main, through the call"


def test_samples_follow_the_caller_and_the_range(network: Client) -> None:
    refused = network.send("sample", symbol="n", value=65)
    assert refused.reports is not None
    assert refused.reports[0].hint == "the nearest value that is: 64"
    update = network.send("sample", symbol="n", value=12)
    assert update.symbols is not None
    assert update.symbols.rows[0].sample == 12
    network.send("open", function="twice")
    assert network.session.samples(network.session.function) == {"n": 12}


def test_facts_are_tagged_by_what_makes_them_true(network: Client) -> None:
    symbols = network.heard[0][0].symbols
    assert symbols is not None
    (fact,) = symbols.facts
    assert (fact.text, fact.knowledge) == ("n % 2 == 0", "checked")
    assert "pairs" in fact.origin


def test_a_tail_guard_is_told_as_unknown(network: Client) -> None:
    network.send("open", function="twice")
    network.select_loop("i", "twice")
    update = network.apply("split", "(None, 8)")
    assert update.symbols is not None
    assert [f.knowledge for f in update.symbols.facts] == ["unknown"]
    assert "n" in update.symbols.facts[0].text
