"""The placement of many storages with few neighbors, compared with the quadratic planner."""

from __future__ import annotations

import ctypes
import itertools
import random

import pytest
from hypothesis import given, strategies as st

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import narrow, planner
from tilewright.codegen.rtlib.language import Ptr
from tilewright.codegen.rtlib.plan_table import plan_table

LiveRanges = list[tuple[int, int]]

storages = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 6)), max_size=14
)
PLACE = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_void_p] * 4))
PACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))


def words(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def place(
    sizes: list[int], live_ranges: LiveRanges, *, native: bool = True
) -> tuple[int, list[int]]:
    count = len(sizes)
    memory = words([0] * (5 * count + 1))
    memory[5 * count] = 77
    arrays = [words(list(plan_table(0, live_ranges))), words(sizes), words([0] * count), memory]
    if native:
        total = PLACE(rtlib_address(narrow.place_narrow))(*arrays)
    else:
        total = narrow.place_narrow(*(Ptr(ctypes.addressof(a)) for a in arrays))
    assert memory[5 * count] == 77
    return total, list(arrays[2])[:count]


def quadratic(sizes: list[int], live_ranges: LiveRanges) -> tuple[int, list[int]]:
    count = len(sizes)
    offsets = words([0] * count)
    total = PACK(rtlib_address(planner.pack))(
        count, words(sizes), words(list(itertools.chain(*live_ranges))), offsets,
        words([0] * (2 * count)),
    )  # fmt: skip
    return total, list(offsets)[:count]


@given(storages)
def test_compiled_and_interpreted_agree(drawn: list[tuple[int, int, int]]) -> None:
    sizes = [64 * s for s, _, _ in drawn]
    live_ranges = [(first, first + more) for _, first, more in drawn]
    assert place(sizes, live_ranges) == place(sizes, live_ranges, native=False)


@pytest.mark.parametrize("count", [1, 2, 63, 1000])
def test_the_plan_is_that_of_the_quadratic_planner(count: int) -> None:
    choose = random.Random(count)
    sizes = [64 * choose.choice((1, 2, 3, 8, 16, choose.randint(1, 300))) for _ in range(count)]
    starts = [choose.randrange(count) for _ in range(count)]
    live_ranges = [(first, first + choose.choice((0, 1, 1, 2, 3, 10))) for first in starts]
    assert place(sizes, live_ranges) == quadratic(sizes, live_ranges)


def test_many_neighbors_are_refused() -> None:
    count = 1000
    assert place([64] * count, [(0, 1)] * count)[0] == narrow.UNPLACED
    assert place([64] * 30, [(0, 1)] * 30)[0] == 30 * 64


def test_the_sort_is_stable() -> None:
    arrays = words([3, 1, 3, 2, 1, 3, 0]), words([0] * 7), words([0] * 7)
    order = narrow.merge_sort(7, *(Ptr(ctypes.addressof(a)) for a in arrays))
    found = (ctypes.c_int64 * 7).from_address(order)
    assert list(found) == [0, 2, 5, 3, 1, 4, 6]
