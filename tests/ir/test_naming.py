"""Tests of valid names and of names derived from other names."""

from __future__ import annotations

import pytest

from tilewright.ir.naming import LONGEST_NAME, bounded_name, is_valid_name, joined_name


@pytest.mark.parametrize(
    "name",
    ["i" + 40 * "_0", "_" * 60, "_0" * 30, 50 * "é_", "if_" + 60 * "x", "tail" + 20 * "_tail"],
)
def test_a_derived_name_is_valid_and_short(name: str) -> None:
    for derived in (bounded_name(name), joined_name((name, name))):
        assert is_valid_name(derived)
        assert len(derived) <= LONGEST_NAME


def test_short_names_are_kept():
    assert bounded_name("attention_scores_0_1") == "attention_scores_0_1"
    assert joined_name(("i_0", "j_0")) == "i_0_j_0"


def test_names_of_many_parts_list_each_word_once():
    assert joined_name(("i_0_j_0_0", "i_0_j_0_1", "k")) == "i_j_k"
    assert joined_name(tuple(f"loop{k}_0" for k in range(9))).startswith("loop0_loop1")
