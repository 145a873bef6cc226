"""The planner of the arena: its source runs in Python, and is compared with its compiled form."""

from __future__ import annotations

import ctypes
import itertools

from hypothesis import given, strategies as st

from tilewright.codegen.runtime.support import support_address
from tilewright.ir.host.language import Ptr
from tilewright.ir.host.support import planner

Lives = list[tuple[int, int]]

storages = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 6)), max_size=14
)
COMPILED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))


def words(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def plan(sizes: list[int], lives: Lives, *, native: bool) -> tuple[int, list[int]]:
    count = len(sizes)
    arrays = [words(sizes), words(list(itertools.chain(*lives))), words([0] * count)]
    arrays.append(words([0] * (2 * count)))
    if native:
        total = COMPILED(support_address(planner.pack))(count, *arrays)
    else:
        total = planner.pack(count, *(Ptr(ctypes.addressof(a)) for a in arrays))
    return total, list(arrays[2])[:count]


def problem(drawn: list[tuple[int, int, int]]) -> tuple[list[int], Lives]:
    return [64 * s for s, _, _ in drawn], [(first, first + more) for _, first, more in drawn]


@given(storages)
def test_compiled_and_interpreted_agree(drawn: list[tuple[int, int, int]]) -> None:
    sizes, lives = problem(drawn)
    assert plan(sizes, lives, native=True) == plan(sizes, lives, native=False)


@given(storages)
def test_nothing_that_lives_together_overlaps(drawn: list[tuple[int, int, int]]) -> None:
    sizes, lives = problem(drawn)
    total, offsets = plan(sizes, lives, native=True)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        together = lives[a][0] <= lives[b][1] and lives[b][0] <= lives[a][1]
        apart = offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]
        assert apart or not together or 0 in (sizes[a], sizes[b])
    assert all(o + s <= total for o, s in zip(offsets, sizes, strict=True))
    peak = max((sum(s for s, (f, e) in zip(sizes, lives, strict=True) if f <= m <= e)
                for m in range(20)), default=0)  # fmt: skip
    assert peak <= total <= sum(sizes)


def test_a_chain_takes_two_buffers() -> None:
    total, offsets = plan([640] * 6, [(k, k + 1) for k in range(6)], native=True)
    assert total == 1280
    assert offsets == [0, 640] * 3


def test_a_small_storage_takes_the_tightest_gap() -> None:
    sizes = [1024, 512, 256, 128, 128]
    lives = [(0, 1), (0, 9), (0, 1), (0, 9), (5, 6)]
    total, offsets = plan(sizes, lives, native=True)
    assert total == 1024 + 512 + 256 + 128
    assert offsets[4] == 1536
