"""Facts: origin and discharge, combination, contradictions, simplification."""

from __future__ import annotations

import pytest

from tilewright.ir.symbolic import (
    FALSE,
    TRUE,
    ContradictoryFactsError,
    Discharge,
    Fact,
    Facts,
    Origin,
    Proved,
    all_of,
    any_of,
    eq,
    is_proved,
    maximum,
    minimum,
    ne,
    prove,
    select,
    simplify,
    var,
)

n, m = var("n", lower=0), var("m", lower=1)
i, j, t, b, s = (var(name) for name in ("i", "j", "t", "b", "s"))
NONE = Facts()


def test_facts_keep_origin_and_discharge() -> None:
    place = Origin("torch.export range", "model.py:12")
    facts = NONE.assume(n <= 64, origin=place, discharge=Discharge.CALLER)
    assert list(facts) == [Fact(n <= 64, place, Discharge.CALLER)]
    assert str(next(iter(facts))) == "n <= 64 (torch.export range at model.py:12; caller)"
    assert repr(facts) == "Facts(n <= 64)"
    assert str(facts) == "n <= 64 (torch.export range at model.py:12; caller)"
    assert str(NONE) == "no facts"


def test_facts_are_values() -> None:
    first = NONE.assume(n <= 64).assume(i < n)
    second = NONE.assume(i < n).assume(n <= 64)
    assert first == second
    assert hash(first) == hash(second)
    assert first != NONE
    assert len(first) == 2
    assert NONE.assume(TRUE) is NONE
    assert len(first.assume(i < n)) == 2
    assert first.union(NONE) is first
    assert NONE.union(first) is first
    assert first.union(NONE.assume(j < 3)) == first.assume(j < 3)


def test_conjunctions_are_split() -> None:
    assert {f.predicate for f in NONE.assume(all_of(i >= 0, i < n))} == {i >= 0, i < n}


def test_loops_and_ranges() -> None:
    assert {f.predicate for f in NONE.with_loop(i, n)} == {i >= 0, i < n}
    assert {f.predicate for f in NONE.with_range(i, 2, m)} == {i >= 2, i <= m}
    assert {f.predicate for f in NONE.with_range(i, upper=m)} == {i <= m}
    counter = var("k", lower=0, upper=7)
    assert NONE.with_loop(counter, 8) == NONE


def test_substitution_removes_trivial_facts() -> None:
    facts = NONE.assume(i < n, origin="loop").assume(eq(n % 4, 0))
    renamed = facts.substitute({i: j, n: 8 * m})
    assert [f.predicate for f in renamed] == [j < 8 * m]
    assert next(iter(renamed)).origin == Origin("loop")


def test_about_follows_symbols() -> None:
    facts = NONE.assume(i < n).assume(n < m).assume(j < 5)
    assert facts.about(frozenset({i})) == NONE.assume(i < n).assume(n < m)
    assert facts.about(frozenset({t})) == NONE


CONTRADICTIONS = [
    (n <= 4, n >= 10, ("'n >= 10' (second)", "'n <= 4' (first)")),
    (eq(n % 4, 0), eq(n % 4, 1), ("second", "first")),
    (eq(n % 4, 0), eq(n, 6), ("'n == 6' (second)", "'n % 4 == 0' (first)")),
    (eq(i, j), ne(i, j), ("second", "first")),
    (i < j, j < i, ("'j < i' (second)", "'i < j' (first)")),
    (eq(b * m, t), t < b * m, ("second", "first")),
    (i // 8 < 2, i >= 16, ("second", "first")),
    (any_of(eq(i, 1), eq(i, 2)), i > 2, ("second", "first")),
]


@pytest.mark.parametrize(("old", "new", "parts"), CONTRADICTIONS, ids=str)
def test_contradictions_name_both_facts(old, new, parts) -> None:
    facts = NONE.assume(j < 1000).assume(old, origin="first")
    with pytest.raises(ContradictoryFactsError) as caught:
        facts.assume(new, origin="second")
    for part in parts:
        assert part in caught.value.message
    assert caught.value.details["others"]


def test_facts_contradict_declared_ranges() -> None:
    with pytest.raises(
        ContradictoryFactsError, match="the declared range of its symbols"
    ) as caught:
        NONE.assume(eq(m, 0), origin=Origin("the exporter", "model.onnx"))
    assert "the exporter at model.onnx" in caught.value.message
    assert caught.value.where == "model.onnx"


def test_three_facts_contradict_together() -> None:
    facts = NONE.assume(i < j, origin="a").assume(j < t, origin="b").assume(b > 4, origin="c")
    with pytest.raises(ContradictoryFactsError) as caught:
        facts.assume(t < i, origin="d")
    assert "(a)" in caught.value.message
    assert "(b)" in caught.value.message
    assert "(c)" not in caught.value.message


def test_hints_do_not_contradict_facts() -> None:
    facts = NONE.assume(n <= 4).assume(n >= 10, discharge=Discharge.ASSUMED_HINT)
    assert [f.predicate for f in facts] == [n <= 4]
    assert [f.predicate for f in facts.hints] == [n >= 10]
    assert isinstance(prove(n <= 4, facts), Proved)


def test_false_neighbors_of_contradictions_are_accepted() -> None:
    facts = NONE.assume(n <= 4).assume(n >= 4).assume(eq(n % 4, 0)).assume(any_of(eq(i, 1), i > 9))
    assert is_proved(eq(n, 4), facts)


LOOPS = NONE.with_loop(i, n).with_loop(j, m)
SIMPLER = [
    ((i * m + j) // m, LOOPS, i),
    ((i * m + j) % m, LOOPS, j),
    ((i * m + j) // (n * m), LOOPS, 0 * i),
    (minimum(i, n), LOOPS, i),
    (maximum(i - n, 0), LOOPS, 0 * i),
    (select(i < n, i, t), LOOPS, i),
    (i < n, LOOPS, TRUE),
    (all_of(i < n, t < 3), LOOPS, t < 3),
    (n // 4 * 4, NONE.assume(eq(n % 4, 0)), n),
    (n % 8 % 4, NONE.assume(eq(n % 8, 3)), 3 + 0 * n),
    ((n * i) // n, NONE.assume(n > 0), i),
    (t // s, NONE.assume(eq(b * s, t)).assume(s > 0), b),
    ((t + 1) // m, NONE.assume(eq(t % m, 0)).assume(m > 1), t // m),
    (eq(t % s, 0), NONE.assume(eq(b * s, t)), TRUE),
    (i, NONE.assume(eq(i, 5)), 5 + 0 * i),
    (i // 2 + j, NONE.assume(i >= 4).assume(i <= 5), j + 2),
    (ne(i, 0), NONE.assume(i > 0), TRUE),
    ((i + j) % 8, NONE.assume(eq(i % 16, 0)), j % 8),
]


@pytest.mark.parametrize(("e", "facts", "expected"), SIMPLER, ids=lambda q: str(q)[:40])
def test_simplify_uses_facts(e, facts, expected) -> None:
    assert simplify(e, facts) is expected


def test_simplify_returns_irreducible_terms_unchanged() -> None:
    e = (i * 3 + t) // (n + 1)
    assert simplify(e, LOOPS) is e
    assert simplify(7) == 7
    assert simplify(t, NONE.assume(eq(b * s, t))) is t


def test_facts_are_compared_at_once() -> None:
    made = [Fact(p, Origin("given"), Discharge.ENTRY_CHECK) for p in (n > 8, m > 0, n < 9)]
    assert Facts(made[:2]).consistent
    assert not Facts(made).consistent
    assert not Facts((Fact(FALSE, Origin("given"), Discharge.ENTRY_CHECK),)).consistent
    assert not Facts((Fact(FALSE, Origin("given"), Discharge.ASSUMED_HINT),)).consistent
