"""Conflicts between the iterations of a loop."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import conflicts, tree_of
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

from tests.schedules.helpers import SAME, SCAN


def tree(text):
    return tree_of(parse(text).prims[0])


def test_conflicts_name_block_and_buffer():
    found = tree(SAME)
    outer, inner = found.loops.values()
    assert list(conflicts(found, outer)) == []
    (conflict,) = conflicts(found, inner)
    assert (conflict.block.name, conflict.buffer.name) == ("last", "y")
    scan = tree(SCAN)
    assert [c.buffer.name for c in conflicts(scan, *scan.loops.values())] == ["y"]


EPILOGUE = """
m, n = symbols("m n", lower=0)
k = symbols("k", lower=0)

@prim_func
def f(x: Buffer[(m, n, k), f32], y: Out[(m, n), f32]):
    for i in range(m):
        for j in range(n):
            for q in range(k):
                with block("y"):
                    vi, vj, vq = spatial(i), spatial(j), reduce(q)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vj, vq]
"""


@pytest.mark.parametrize("factors", [(None, 4), (4, None)])
def test_blocks_that_write_different_columns_of_the_rows_of_an_iteration_do_not_conflict(factors):
    schedule = Schedule(parse(EPILOGUE))
    schedule.split("j", factors=(None, 8), tail="epilogue")
    outer, _ = schedule.split("i", factors=factors)
    found = tree_of(schedule.module.prims[0])
    assert list(conflicts(found, schedule.state.loop(outer))) == []


ROWS_THAT_OVERLAP = """
m, n = symbols("m n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(m, n), f32], y: Out[(m + 1, n), f32]):
    for i in range(m):
        for j in range(n // 8 * 8):
            with block("first"):
                vi, vj = spatial(m, i), spatial(n, j)
                y[vi, vj] = x[vi, vj]
        for e in range({extent}):
            for t in range(n % 8):
                with block("rest"):
                    va, ve, vt = spatial(m, i), spatial({extent}, e), spatial(n, n // 8 * 8 + t)
                    y[va + ve, vt] = x[va, vt]
"""


def test_blocks_that_write_elements_of_several_iterations_conflict():
    found = tree(ROWS_THAT_OVERLAP.format(extent=2))
    loop = next(iter(found.loops.values()))
    assert [c.block.name for c in conflicts(found, loop)] == ["rest"]


STEPS_IN_TIME = """
n, t = symbols("n t", lower=0)

@prim_func
def f(a: InOut[(3, n + 2), f32], n: Int, t: Int):
    for s in range(t):
        for i in range(n):
            with block("w"):
                vs, vi = ordered(s), spatial(i)
                a[{written}, vi + 1] = a[{read}, vi] + a[{read}, vi + 2]
"""


def conflicts_of_inner(text):
    found = tree(text)
    _, inner = found.loops.values()
    return [c.reason for c in conflicts(found, inner)]


def test_reads_of_another_part_than_the_writes_do_not_conflict():
    for size in (2, 3):
        written, read = f"(vs + 1) % {size}", f"vs % {size}"
        assert conflicts_of_inner(STEPS_IN_TIME.format(written=written, read=read)) == []


@pytest.mark.parametrize("read", ["(vs + 1) % 2", "vs % 3", "vi % 2"])
def test_reads_of_a_part_that_may_be_written_conflict(read):
    found = conflicts_of_inner(STEPS_IN_TIME.format(written="(vs + 1) % 2", read=read))
    (reason,) = found
    assert reason.startswith(
        "block 'w' reads elements of 'a' that other iterations of loop 'i' may write: it reads a["
    )
