"""Requests for the costs of the displayed graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workbench.conftest import MATMUL, NETWORK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol_runs import GraphCosts

    from tests.workbench.conftest import Client


def counted(client: Client, kind: str) -> GraphCosts:
    """Request costs, and return the last ones that were received."""
    client.send("count_costs", kind=kind)
    client.session.jobs.wait()
    return next(u.costs for u, _ in reversed(client.received) if u.costs is not None)


def test_costs_are_those_of_the_graph_at_the_sizes(network: Client) -> None:
    found = counted(network, "flops")
    assert (found.kind, found.unit, found.function) == ("flops", "FLOP", "main")
    assert found.state == network.session.schedule.head.id
    assert found.sizes == "n = 6"
    assert [(item.term, item.value) for item in found.items] == [("n * 8", 48)] * 2
    graph = network.received[0][0].graph
    assert graph is not None
    assert [item.uid for item in found.items] == [node.uid for node in graph.nodes[1:3]]


@pytest.mark.parametrize(("kind", "term"), [("bytes", "n * 64"), ("memory", "n * 64")])
def test_bytes_and_memory(network: Client, kind: str, term: str) -> None:
    found = counted(network, kind)
    assert found.unit == "B"
    assert found.items[-1].term == term


def test_costs_follow_the_sizes_and_the_head(network: Client) -> None:
    counted(network, "flops")
    network.send("sample", function="main", symbol="n", value=10)
    assert [item.value for item in counted(network, "flops").items] == [80, 80]
    network.select_loop("i", "twice")
    network.apply("parallel")
    found = counted(network, "flops")
    assert found.state == network.session.schedule.head.id
    assert [item.value for item in found.items] == [80, 80]


def test_a_program_without_a_graph_has_no_costs(connect: Callable[..., Client]) -> None:
    client = connect(MATMUL)
    update = client.send("count_costs", kind="flops")
    assert update.problems is not None
    assert update.problems[0].message == "the program has no graph-level function"


def test_each_page_has_its_own_choice(connect: Callable[..., Client]) -> None:
    first = connect(NETWORK)
    counted(first, "flops")
    second = type(first)(first.session, name="other")
    sessions = {first.name: first, second.name: second}
    first.session.publish = lambda update, buffers: sessions[update.client].receive(update, buffers)
    second.hello()
    assert counted(second, "memory").kind == "memory"
    assert first.hello().costs is not None
    assert [u.costs.kind for u, _ in first.received if u.costs is not None] == ["flops", "flops"]
