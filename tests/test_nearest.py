from __future__ import annotations

import pytest

from tilewright.nearest import did_you_mean, listed, nearest

NAMES = ["split", "fuse", "reorder", "storage_align", "set_scope"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("splitt", "split"),
        ("Split", "split"),
        ("storagealign", "storage_align"),
        ("storage_align_to", "storage_align"),
        ("re_order", "reorder"),
    ],
)
def test_the_most_similar_name_is_found(name: str, expected: str) -> None:
    assert nearest(name, NAMES) == (expected,)
    assert did_you_mean(name, NAMES) == f"did you mean {expected!r}?"


@pytest.mark.parametrize("name", ["", "q", "vectorize_everything"])
def test_a_different_name_has_no_similar_one(name: str) -> None:
    assert nearest(name, NAMES) == ()
    assert did_you_mean(name, NAMES) == ""


def test_names_that_differ_in_case_only_are_both_found() -> None:
    assert nearest("n", ["N", "n", "m"], count=2) == ("N", "n")


def test_a_list_begins_with_the_similar_name_and_contains_each_name_once() -> None:
    assert listed("set_scop", [*NAMES, *NAMES]) == "set_scope, split, fuse, reorder, storage_align"
    assert listed("q", NAMES, limit=2) == "split, fuse, ..."
    assert listed("q", ()) == "none"
