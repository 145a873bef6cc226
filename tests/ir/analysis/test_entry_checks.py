"""Conditions at entry that accesses, divisions, and loaded integers need."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis.entry_checks import obligations, with_entry_checks
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import IllFormedProgramError, UnprovedAccessError

from tests.ir.script.texts import unverified


def prim(body: str) -> PrimFunc:
    head = 'n = symbols("n", lower=0)\na, b = symbols("a b")\n@prim_func\n'
    head += "def f(a: Int, b: Int, x: Buffer[(n,), f32], p: Buffer[(n,), i32], "
    return unverified(head + "y: InOut[(n,), f32]):\n" + body).prim("f")


def found(body: str) -> list[tuple[str, str, str]]:
    return [(o.kind, o.status, str(o.check)) for o in obligations(prim(body))]


def test_a_divisor_over_parameters_is_checked() -> None:
    body = "    for i in range(n):\n        y[i] = x[i % n] + f32(index(i // a, i64))\n"
    assert found(body) == [("divisor", "checked", "n <= 0 or a != 0")]


def test_a_divisor_that_the_loop_excludes_needs_no_check() -> None:
    body = "    for i in range(n):\n        y[i] = x[i % n] + x[(i * 3) // (n + 1) % n]\n"
    assert found(body) == []


def test_a_divisor_in_a_branch_that_excludes_zero_needs_no_check() -> None:
    body = "    for i in range(n):\n        if a > 2:\n            y[i] = x[i // a]\n"
    assert found(body) == []


def test_a_divisor_over_loop_variables_must_be_proved() -> None:
    body = "    for i in range(n):\n        for j in range(n):\n            y[i] = {}\n"
    assert found(body.format("f32(index(i // (j + 1), i64))")) == []
    ((kind, status, _),) = found(body.format("f32(index(i // (j - 3), i64))"))
    assert (kind, status) == ("divisor", "unknown")


def test_sides_of_a_choice_are_not_divided() -> None:
    body = "    for i in range(n):\n        y[i] = x[select(a > 0, i // max(a, 1), 0)]\n"
    assert [o for o in obligations(prim(body)) if o.kind == "divisor"] == []


def test_a_clamped_range_is_not_empty() -> None:
    body = (
        "    for i in range(n):\n        with clamped(p[i], 0, a) as v:\n            y[i] = x[i]\n"
    )
    assert found(body) == [("clamped range", "checked", "n <= 0 or a > 0")]
    ((kind, status, _),) = found(body.replace("0, a", "a, a"))
    assert (kind, status) == ("clamped range", "outside")
    ((kind, status, _),) = found(body.replace("0, a", "0, i * i - 7"))
    assert (kind, status) == ("clamped range", "unknown")


def test_checks_are_facts_of_the_text_and_added_once() -> None:
    text = """\
n = symbols("n", lower=1)
a = symbols("a")

@prim_func
def f(x: Buffer[(n,), f32], a: Int, y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i + a]
"""
    module = parse(text)
    facts = [str(f.predicate) for f in module.prim("f").facts]
    assert sorted(facts) == ["a + 8 <= n", "a >= 0"]
    again = parse(to_text(module))
    assert to_text(again) == to_text(module)
    assert with_entry_checks(again.prim("f")) is again.prim("f")


def test_declared_ranges_of_variables_are_checked() -> None:
    body = "    for i in range(a, bounds=(0, 7)):\n        y[0] = 0.0\n"
    kind, status, check = found(body)[-1]
    assert (kind, status, check) == ("declared range", "checked", "a <= 8")
    body = "    for i in range(9, bounds=(0, 7)):\n        y[0] = 0.0\n"
    assert ("declared range", "outside", "True") in found(body)
    body = "    for i in range(n, bounds=(0, None), multiple_of=4):\n        y[0] = 0.0\n"
    assert ("declared range", "outside", "True") in found(body)


@pytest.mark.parametrize(("kind", "init", "holds"), [
    ("reduce", "", True),
    ("spatial", "", True),
    ("reduce", "                with init(): y[0] = 0.0\n", True),
    ("spatial", "                with init(): y[vi] = 0.0\n", False),
])  # fmt: skip
def test_a_predicate_limits_the_variables_of_its_block(kind: str, init: str, holds: bool) -> None:
    """The init runs without the conditions on the reduction."""
    at = "vi" if kind == "spatial" else "0"
    body = (
        "    for j in range(2):\n        for i in range(j * 5 + 2):\n            with block('y'):\n"
        f"                vj, vi = reduce(j), {kind}(i, bounds=(0, 1))\n"
        f"                guard(j * 5 <= 0)\n{init}"
        f"                y[{at}] = y[{at}] + x[vi]\n"
    )
    declared = [o for o in found(body) if o[0] == "declared range"]
    assert (declared == []) is holds


LOADED = """
n = symbols("n", lower=0)

@prim_func
def f(p: Buffer[(n,), i32], x: Buffer[(16,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            with checked(p[vi], 0, {upper}, {claim}) as v:
                y[vi] = x[v]
"""


@pytest.mark.parametrize(
    ("upper", "claim", "message"),
    [
        ("16", "bounds=(0, 3)", r"'v': \[0, 15\] is not in \[0, 3\]"),
        ("16", "multiple_of=4", r"'v': \[0, 15\] is not in \[0, 12\] in multiples of 4"),
    ],
)
def test_a_wrong_range_of_a_loaded_integer_is_an_error_of_the_text(
    upper: str, claim: str, message: str
) -> None:
    with pytest.raises(IllFormedProgramError, match=message):
        parse(LOADED.format(upper=upper, claim=claim))


def test_an_unproved_range_of_a_loaded_integer_is_an_error_of_the_text() -> None:
    with pytest.raises(UnprovedAccessError, match=r"'v': .* is not in \[0, 7\]") as caught:
        parse(LOADED.format(upper="vi * (n - vi) + 1", claim="bounds=(0, 7)"))
    assert "omit the bounds" in caught.value.hint
