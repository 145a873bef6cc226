"""Blocks whose writes are disjoint across the threads of a thread block."""

from __future__ import annotations

import pytest

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.schedules.launch.annotations import (
    DISJOINT,
    IN_PLACE,
    marked_blocks,
    marked_buffers,
)

from tests.codegen.lower.passes.running import GPU, both, comparison, program, racing, same_results

NAME = "mark_disjoint_writes"

TWO = """
n = symbols("n", lower=1)

@prim_func
def two(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32], z: Out[(n, 32), i32]):
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            with block("copy"):
                vi, va = spatial(i), spatial(a)
                y[vi, va] = x[vi, va]
            with block("pairs"):
                wi, wa = spatial(i), spatial(a)
                z[wi, wa // 2] = 1
"""
ONE = """
n = symbols("n", lower=1)

@prim_func
def one(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    for i in {axis}:
        for k in range(4):
            for a in thread(16, "threadIdx.x"):
                with block("store"):
                    vi, vk, va = spatial(i), spatial(k), spatial(a)
                    {body}
"""


def marked(body, axis='thread(n, "blockIdx.x")', read=program):
    """Return the names of the blocks that the pass records."""
    _, func = both(NAME, read(ONE.format(body=body, axis=axis)), GPU)
    uids = marked_blocks(func, DISJOINT)
    return [s.name for s in walk(func.body) if isinstance(s, Block) and s.uid in uids]


def test_golden(golden):
    """The attribute has the uid of the block copy."""
    golden(f"{NAME}.txt", comparison(NAME, racing(TWO), GPU))


def test_results():
    first, second = both(NAME, racing(TWO), GPU)
    assert second.body is first.body
    same_results(first, second, n=2)


@pytest.mark.parametrize(
    ("body", "disjoint"),
    [
        ("y[vi, vk * 16 + va] = 1", True),
        ("y[vi, va * 4 + vk] = 1", True),
        ("y[vi, 63 - vk * 16 - va] = 1", True),
        ("y[vi, va] = vk", False),
        ("y[vi, vk * 15 + va] = 1", False),
    ],
)
def test_iterations_within_a_thread_block(body, disjoint):
    assert marked(body) == (["store"] if disjoint else [])


def test_writes_at_loaded_indices_are_not_disjoint():
    body = "with clamped(x[vi, va], 0, 64) as at:\n                        y[vi, at] = 1"
    assert marked(body, read=racing) == []


def test_different_thread_blocks_need_not_write_different_elements():
    assert marked("y[0, vk * 16 + va] = 1", read=racing) == ["store"]


def test_a_serial_loop_around_the_threads_counts():
    assert marked("y[0, vk * 16 + va] = vi", axis="range(n)") == []
    assert marked("y[vi, vk * 16 + va] = 1", axis="range(n)") == ["store"]


@pytest.mark.parametrize(
    ("first", "second", "disjoint"),
    [
        ("vk * 16 + va", "vk * 16 + va", True),
        ("vk * 16 + va", "63 - vk * 16 - va", False),
        ("vk * 32 + va * 2", "vk * 32 + va * 2 + 1", True),
        ("vk * 32 + va * 2", "va * 4 + vk * 64 + 1", True),
    ],
)
def test_a_block_with_two_stores_is_recorded_if_they_never_overlap(first, second, disjoint):
    stores = [f"y[vi, {first}] = 1", f"y[vi, {second}] = 2"]
    text = ONE.format(body=f"\n{' ' * 20}".join(stores), axis="range(n)")
    _, func = both(NAME, text.replace("Out[(n, 64)", "Out[(n, 256)"), GPU)
    assert bool(marked_blocks(func, DISJOINT)) == disjoint


@pytest.mark.parametrize(
    ("value", "own"),
    [
        ("y[vi, vk * 16 + va] + 1", True),
        ("y[vi, 63 - vk * 16 - va] + 1", False),
        ("vk", False),
    ],
)
def test_a_block_that_only_reads_the_elements_that_it_writes(value, own):
    _, func = both(NAME, ONE.format(body=f"y[vi, vk * 16 + va] = {value}", axis="range(n)"), GPU)
    assert bool(marked_blocks(func, IN_PLACE)) == own


PARTS = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, 64, 8), f32], y: InOut[(n, 64, 8), f32]):
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            for j in range(8):
                with block("first"):
                    vi, va, vj = spatial(i), spatial(a), spatial(j)
                    y[vi, {first}, vj] = x[vi, va, vj]
            for k in range(8):
                with block("second"):
                    wi, wa, wk = spatial(i), spatial(a), spatial(k)
                    y[wi, {second}, 7 - wk] = x[wi, wa, wk] * 2.0
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [("va", "wa"), ("63 - va", "63 - wa")],
)
def test_buffers_of_which_each_thread_accesses_only_its_own_part(first, second):
    _, after = both(NAME, PARTS.format(first=first, second=second), GPU)
    assert marked_buffers(after) == {"y"}


@pytest.mark.parametrize(
    ("first", "second"),
    [("va", "63 - wa"), ("va // 2", "wa // 2"), ("(va + vj) % 64", "wa")],
)
def test_buffers_of_which_threads_access_the_parts_of_others(first, second):
    _, after = both(NAME, racing(PARTS.format(first=first, second=second)), GPU)
    assert marked_buffers(after) == set()


RUNNING_SUM = """
r, n = symbols("r n", lower=1)

@prim_func
def f(x: Buffer[(r, n), f32], y: InOut[(r, n), f32]):
    for i in thread(ceildiv(r, 8), "blockIdx.x"):
        for a in thread(8, "threadIdx.x"):
            for j in range(n):
                with block("sum"):
                    vi, vj = spatial(r, i * 8 + a), ordered(n, j)
                    guard(i * 8 + a < r)
                    y[{to}] = x[vi, vj] + y[{of}]
"""


@pytest.mark.parametrize(
    ("to", "of", "own"),
    [
        ("vi, vj", "vi, max(vj - 1, 0)", True),
        ("vi, vj", "vi, n - 1 - vj", True),
        ("r - 1 - vi, vj", "r - 1 - vi, max(vj - 1, 0)", True),
        ("vi, vj", "min(vi + 1, r - 1), max(vj - 1, 0)", False),
        ("vi // 2, vj", "vi // 2, max(vj - 1, 0)", False),
        ("r - 1 - vi, vj", "vi, vj", False),
    ],
)
def test_a_running_sum_in_rows_of_symbolic_length(to, of, own):
    read = program if own else racing
    _, after = both(NAME, read(RUNNING_SUM.format(to=to, of=of)), GPU)
    assert marked_buffers(after) == ({"y"} if own else set())


SEGMENTS = """
n, m = symbols("n m", lower=0)

@prim_func
def f(n: Int, off: Buffer[(n + 1,), i32], x: Buffer[(m,), f32], y: InOut[(m,), f32]):
    for b in thread(ceildiv(n, 64), "blockIdx.x"):
        for t in thread(64, "threadIdx.x"):
            if b * 64 + t < n:
                with checked(off[b * 64 + t], 0, m + 1) as lo:
                    with checked(off[b * 64 + t + 1], {start}, m + 1) as hi:
                        for j in range(hi - lo):
                            with block("y"):
                                vl, vj = spatial(m + 1, lo), spatial(m, j)
                                y[vl + vj] = x[vl + vj] + y[vl + vj]
"""


def test_threads_access_only_the_elements_between_their_offsets():
    _, after = both(NAME, SEGMENTS.format(start="lo"), GPU)
    assert marked_buffers(after) == {"y"}
    _, after = both(NAME, racing(SEGMENTS.format(start="0")), GPU)
    assert marked_buffers(after) == set()
