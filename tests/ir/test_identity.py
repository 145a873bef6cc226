"""Tests of uids and fresh names."""

from __future__ import annotations

from tilewright.ir.identity import Names, fresh_name


def test_fresh_names_are_the_smallest_unused_ones():
    names, taken = Names(["a", "a_2", "b_1"]), {"a", "a_2", "b_1"}
    for base in ("a", "a", "b", "b", "b_1", "a_1", "a"):
        expected = fresh_name(base, taken)
        taken.add(expected)
        assert names.fresh(base) == expected
    assert names == taken


def test_added_names_are_not_returned():
    names = Names()
    names.update(("c", "c_1"))
    assert [names.fresh("c"), names.fresh("c")] == ["c_2", "c_3"]
