"""The memory planner: its source, run as Python, is compared with its compiled form."""

from __future__ import annotations

import ctypes
import itertools

from hypothesis import given, strategies as st

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import planner
from tilewright.codegen.rtlib.language import Ptr
from tilewright.codegen.rtlib.plan_table import plan_table

LiveRanges = list[tuple[int, int]]

storages = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 6)), max_size=14
)
COMPILED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))

PEAK = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_void_p] * 2))


def words(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def plan(sizes: list[int], live_ranges: LiveRanges, *, native: bool) -> tuple[int, list[int]]:
    count = len(sizes)
    arrays = [words(sizes), words(list(itertools.chain(*live_ranges))), words([0] * count)]
    arrays.append(words([0] * (2 * count)))
    if native:
        total = COMPILED(rtlib_address(planner.pack))(count, *arrays)
    else:
        total = planner.pack(count, *(Ptr(ctypes.addressof(a)) for a in arrays))
    return total, list(arrays[2])[:count]


def problem(drawn: list[tuple[int, int, int]]) -> tuple[list[int], LiveRanges]:
    return [64 * s for s, _, _ in drawn], [(first, first + more) for _, first, more in drawn]


@given(storages)
def test_compiled_and_interpreted_agree(drawn: list[tuple[int, int, int]]) -> None:
    sizes, live_ranges = problem(drawn)
    assert plan(sizes, live_ranges, native=True) == plan(sizes, live_ranges, native=False)


def table_words(live_ranges: LiveRanges) -> ctypes.Array[ctypes.c_int64]:
    return words(list(plan_table(0, live_ranges)))


@given(storages)
def test_the_peak_is_the_maximum_of_live_bytes(drawn: list[tuple[int, int, int]]) -> None:
    sizes, live_ranges = problem(drawn)
    pairs = list(zip(sizes, live_ranges, strict=True))
    peak = max((sum(s for s, (f, e) in pairs if f <= m <= e) for m in range(20)), default=0)
    arrays = table_words(live_ranges), words(sizes)
    assert peak == PEAK(rtlib_address(planner.peak_of))(*arrays)
    assert peak == planner.peak_of(*(Ptr(ctypes.addressof(a)) for a in arrays))


def test_the_sum_of_sizes_does_not_wrap_around() -> None:
    sizes, live_ranges = [1 << 59] * 40, [(0, 1)] * 40
    total = PEAK(rtlib_address(planner.total_of))
    assert total(table_words(live_ranges), words(sizes)) == planner.NOWHERE


@given(storages)
def test_overlapping_live_ranges_are_disjoint_in_memory(
    drawn: list[tuple[int, int, int]],
) -> None:
    sizes, live_ranges = problem(drawn)
    total, offsets = plan(sizes, live_ranges, native=True)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        together = live_ranges[a][0] <= live_ranges[b][1] and live_ranges[b][0] <= live_ranges[a][1]
        disjoint = offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]
        assert disjoint or not together or 0 in (sizes[a], sizes[b])
    assert all(o + s <= total for o, s in zip(offsets, sizes, strict=True))
    peak = max((sum(s for s, (f, e) in zip(sizes, live_ranges, strict=True) if f <= m <= e)
                for m in range(20)), default=0)  # fmt: skip
    assert peak <= total <= sum(sizes)


def test_a_chain_uses_two_buffers() -> None:
    total, offsets = plan([640] * 6, [(k, k + 1) for k in range(6)], native=True)
    assert total == 1280
    assert offsets == [0, 640] * 3


def test_a_small_storage_uses_the_smallest_gap() -> None:
    sizes = [1024, 512, 256, 128, 128]
    live_ranges = [(0, 1), (0, 9), (0, 1), (0, 9), (5, 6)]
    total, offsets = plan(sizes, live_ranges, native=True)
    assert total == 1024 + 512 + 256 + 128
    assert offsets[4] == 1536
