"""Sample values, facts and derived expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_samples_depend_on_the_caller_and_the_range(network: Client) -> None:
    rejected = network.send("sample", symbol="n", value=65)
    assert rejected.problems is not None
    assert rejected.problems[0].hint == "the nearest allowed value is 64"
    update = network.send("sample", symbol="n", value=12)
    assert update.symbols is not None
    assert update.symbols.rows[0].sample == 12
    network.send("open", function="twice")
    assert network.session.samples(network.session.function) == {"n": 12}


def test_status_of_a_fact_depends_on_its_discharge(network: Client) -> None:
    symbols = network.received[0][0].symbols
    assert symbols is not None
    (fact,) = symbols.facts
    assert (fact.text, fact.status) == ("n % 2 == 0", "checked")
    assert "even" in fact.origin


def test_tail_guard_is_an_unknown_fact(network: Client) -> None:
    network.send("open", function="twice")
    network.select_loop("i", "twice")
    update = network.apply("split", "(None, 8)")
    assert update.symbols is not None
    assert [f.status for f in update.symbols.facts] == ["unknown", "proved"]
    assert update.symbols.facts[1].text == "3 accesses in bounds"
    assert "n" in update.symbols.facts[0].text
