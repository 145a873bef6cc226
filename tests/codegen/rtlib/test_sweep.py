"""The placement of many storages, on random live ranges."""

from __future__ import annotations

import ctypes
import itertools
import random

import pytest
from hypothesis import given, strategies as st

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import layout, planner, sweep
from tilewright.codegen.rtlib.language import Ptr
from tilewright.codegen.rtlib.plan_table import PlanLayout, plan_table

LiveRanges = list[tuple[int, int]]

storages = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 6)), max_size=14
)
SWEEP = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_void_p] * 4))
PEAK = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_void_p] * 2))


def words(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def place(
    sizes: list[int], live_ranges: LiveRanges, *, native: bool = True
) -> tuple[int, list[int]]:
    count = len(sizes)
    scratch = words([0] * (PlanLayout(0, count).sweep_bytes // 8 + 1))
    scratch[len(scratch) - 1] = 77
    arrays = [words(list(plan_table(0, live_ranges))), words(sizes), words([-1] * count), scratch]
    if native:
        total = SWEEP(rtlib_address(sweep.sweep_both))(*arrays)
    else:
        total = sweep.sweep_both(*(Ptr(ctypes.addressof(a)) for a in arrays))
    assert scratch[len(scratch) - 1] == 77
    return total, list(arrays[2])[:count]


def peak(sizes: list[int], live_ranges: LiveRanges) -> int:
    return PEAK(rtlib_address(planner.peak_of))(
        words(list(plan_table(0, live_ranges))), words(sizes)
    )


def collision(sizes: list[int], live_ranges: LiveRanges, offsets: list[int]) -> object:
    """Return two storages that share memory while both are live, by a check of every step."""
    events = sorted(
        [(first, 1, k) for k, (first, _) in enumerate(live_ranges) if sizes[k]]
        + [(last + 1, 0, k) for k, (_, last) in enumerate(live_ranges) if sizes[k]]
    )
    live: dict[int, tuple[int, int]] = {}
    for _, starts, k in events:
        if not starts:
            del live[k]
            continue
        end = offsets[k] + sizes[k]
        for other, (low, high) in live.items():
            if offsets[k] < high and low < end:
                return k, other
        live[k] = (offsets[k], end)
    return None


def random_storages(kind: str, count: int, seed: int) -> tuple[list[int], LiveRanges]:
    choose = random.Random(seed)
    sizes = [64 * choose.choice((0, 1, 2, 3, 8, 16, choose.randint(1, 300))) for _ in range(count)]
    if kind == "uniform":
        steps = [sorted(choose.choices(range(count), k=2)) for _ in range(count)]
        return sizes, [(first, last) for first, last in steps]
    longest = 10 if kind == "narrow" else count // 4
    return sizes, [(k, k + choose.choice((1, 1, 2, 3, longest))) for k in range(count)]


@given(storages)
def test_compiled_and_interpreted_agree(drawn: list[tuple[int, int, int]]) -> None:
    sizes = [64 * s for s, _, _ in drawn]
    live_ranges = [(first, first + more) for _, first, more in drawn]
    total, offsets = place(sizes, live_ranges)
    assert (total, offsets) == place(sizes, live_ranges, native=False)
    assert collision(sizes, live_ranges, offsets) is None
    assert peak(sizes, live_ranges) <= total <= sum(sizes)
    assert all(0 <= o <= o + s <= total for o, s in zip(offsets, sizes, strict=True))


@pytest.mark.parametrize("kind", ["narrow", "residual", "uniform"])
@pytest.mark.parametrize("count", [100, 1000])
def test_live_storages_are_disjoint(kind: str, count: int) -> None:
    for seed in range(3):
        sizes, live_ranges = random_storages(kind, count, seed)
        total, offsets = place(sizes, live_ranges)
        assert collision(sizes, live_ranges, offsets) is None
        assert all(0 <= o <= o + s <= total for o, s in zip(offsets, sizes, strict=True))
        assert peak(sizes, live_ranges) <= total


@pytest.mark.parametrize(("kind", "ratio"), [("narrow", 1.2), ("residual", 1.1), ("uniform", 1.05)])
def test_the_arena_of_10000_storages_is_close_to_the_peak(kind: str, ratio: float) -> None:
    sizes, live_ranges = random_storages(kind, 10_000, 1)
    total, offsets = place(sizes, live_ranges)
    assert total <= ratio * peak(sizes, live_ranges)
    if kind == "narrow":
        assert collision(sizes, live_ranges, offsets) is None


def test_freed_neighbors_are_merged() -> None:
    total, offsets = place([640, 640, 640, 1920], [(0, 1), (0, 2), (0, 3), (4, 5)])
    assert (total, offsets[3]) == (1920, 0)


def test_classes_are_in_the_order_of_sizes() -> None:
    sizes = [64 * k for k in range(1, 500)] + [1 << e for e in range(15, 62)]
    classes = [sweep.size_class(size) for size in sizes]
    assert classes == sorted(classes)
    assert classes[-1] < layout.SWEEP_CLASSES
    for (a, low), (b, high) in itertools.pairwise(zip(classes, sizes, strict=True)):
        assert a < b or high <= low + low // 8 + 64
