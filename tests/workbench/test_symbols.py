"""Sample values, facts and derived expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tilewright.ir.script import parse
from tilewright.workbench.symbols import samples_of, symbols_view

from tests.workbench.conftest import NETWORK

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_samples_depend_on_the_caller_and_the_range(network: Client) -> None:
    rejected = network.send("sample", function="main", symbol="n", value=65)
    assert rejected.problems is not None
    assert rejected.problems[0].hint == "the nearest allowed value is 64"
    unknown = network.send("sample", function="missing", symbol="n", value=12)
    assert unknown.problems is not None
    assert "no function 'missing'" in unknown.problems[0].message
    update = network.send("sample", function="main", symbol="n", value=12)
    assert update.symbols is not None
    assert update.symbols.rows[0].sample == 12
    network.send("open", function="twice")
    assert network.session.samples(network.session.function) == {"n": 12}


def test_a_caller_without_rows_determines_the_sizes_of_its_kernels() -> None:
    program = parse(NETWORK.replace("lower=1", "lower=0"))
    assert samples_of(program, program.prim("twice"), {("main", "n"): 0}) == {"n": 0}


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


@pytest.mark.parametrize(
    ("params", "index"), [("a: Int, x: Buffer[(8,), f32]", "i + a"), ("x: Buffer[(n,), f32]", "5")]
)
def test_an_access_that_needs_an_entry_check_is_not_counted_as_proved(
    params: str, index: str
) -> None:
    text = (
        f"n = symbols('n', lower=0)\n@prim_func\ndef f({params}, y: Out[(4,), f32]):\n"
        f"    for i in range(4):\n        y[i] = x[{index}]\n"
    )
    module = parse(text)
    func = module.prim("f")
    facts = symbols_view(func, samples_of(module, func, {})).facts
    counts = {f.text: f.status for f in facts if "access" in f.text}
    assert counts == {"1 access in bounds": "proved", "1 access checked at entry": "checked"}


def test_an_access_without_a_proof_or_an_entry_check_is_checked_in_the_kernel() -> None:
    module = parse(
        "n = symbols('n', lower=0)\n@prim_func\n"
        "def f(a: Int, x: Buffer[(n,), f32], y: Out[(4,), f32]):\n"
        "    for i in range(4):\n        y[i] = x[a] + x[i * i]\n"
    )
    func = module.prim("f")
    facts = symbols_view(func, samples_of(module, func, {})).facts
    assert {f.text: f.status for f in facts if "access" in f.text} == {
        "1 access in bounds": "proved",
        "1 access checked at entry": "checked",
        "1 access checked in the kernel": "checked",
    }
