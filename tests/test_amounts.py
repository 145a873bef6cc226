"""Amounts of work in CI and in `make fuzz`."""

from __future__ import annotations

import pytest

from tests import amounts


@pytest.mark.parametrize("is_long", [False, True])
def test_combinations_cover_each_value(monkeypatch: pytest.MonkeyPatch, is_long: bool) -> None:
    monkeypatch.setattr(amounts, "IS_LONG", is_long)
    found = amounts.covering("abcde", (1, 2), "xy")
    assert {one for one, *_ in found} == set("abcde")
    assert {(number, letter) for _, number, letter in found} == {
        (1, "x"), (1, "y"), (2, "x"), (2, "y"),
    }  # fmt: skip
    assert len(found) == len(set(found)) == (20 if is_long else 5)
    assert amounts.amount(3, 40) == (40 if is_long else 3)


def test_combinations_of_few_values_cover_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amounts, "IS_LONG", False)
    assert amounts.covering("ab", (1, 2, 3)) == [("a", 1), ("b", 2), ("a", 3)]


def test_values_of_a_pattern_have_different_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amounts, "IS_LONG", False)
    found = amounts.covering([(k, k % 2) for k in range(8)], "xy")
    assert {(kind, letter) for (_, kind), letter in found} == {
        (0, "x"), (0, "y"), (1, "x"), (1, "y"),
    }  # fmt: skip
