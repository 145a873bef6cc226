"""Steps that would make iterations of concurrent loops dependent, or break the form of a scan."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, StepError
from tilewright.schedules.requirement import CommonRequirement

PACKED = """
k = symbols("k", lower=0)

@prim_func
def f(x: Buffer[(17, k), f32], y: Out[(17, k), i4]):
    t = alloc((17, k), f32)
    for i in range(17):
        for j in range(k):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2.0
    for i1 in range(17):
        for j1 in range(k):
            with block("y"):
                vi1, vj1 = spatial(i1), spatial(j1)
                y[vi1, vj1] = i4(i32(t[vi1, vj1]))
"""

SCAN = """
n = symbols("n", lower=1)
k = symbols("k", lower=1)

@prim_func
def f(x: Buffer[(n, k), i32], y: Out[(n, k), i32]):
    t = alloc((n, k), i32)
    for i in range(n):
        for j in range(k):
            with block("scan"):
                vi, vj = spatial(i), ordered(j)
                t[vi, vj] = scan(add, x[vi, vj])
    for a in range(n):
        for b in range(k):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = t[va, vb] + 1
"""


def rejected_for(sch: Schedule, verb: str, *args: object) -> StepError:
    """Apply a step that must be rejected before the program changes."""
    before = str(sch)
    with pytest.raises(StepError) as caught:
        getattr(sch, verb)(*args)
    assert str(sch) == before
    return caught.value


def test_a_store_of_packed_elements_is_not_moved_into_loops_of_threads() -> None:
    sch = Schedule(parse(PACKED))
    sch.cooperative_copy("t", rows=1, columns=16)
    error = rejected_for(sch, "reverse_compute_inline", "y")
    assert {p.requirement for p in error.problems} == {CommonRequirement.INDEPENDENT}
    assert "that share a byte: a byte contains 2 elements of i4" in str(error)


def test_a_store_of_whole_elements_is_moved_into_loops_of_threads() -> None:
    sch = Schedule(parse(PACKED.replace("i4", "i8")))
    sch.cooperative_copy("t", rows=1, columns=16)
    sch.reverse_compute_inline("y")
    assert violations(sch.module) == ()


def test_a_scan_of_lanes_is_not_divided() -> None:
    sch = Schedule(parse(SCAN))
    sch.vectorize(sch.split(sch.get_loops("scan")[1], (None, 16))[1])
    unit = sch.add_unit_loop("scan")
    error = rejected_for(sch, "loop_partition", unit, 0)
    assert {p.requirement for p in error.problems} == {CommonRequirement.INDEPENDENT}
    assert "loop 'j_1' is vectorized" in str(error)


def test_a_scan_of_lanes_is_not_put_into_a_block() -> None:
    sch = Schedule(parse(SCAN.replace("(n, k)", "(n, 8)").replace("range(k)", "range(8)")))
    i, j = sch.get_loops("scan")
    sch.vectorize(j)
    first, _ = sch.loop_partition(i, 1)
    sch.reorder((j, first))
    error = rejected_for(sch, "blockize", first)
    assert "is vectorized" in str(error)


def test_the_elements_of_a_scan_stay_at_constant_steps() -> None:
    sch = Schedule(parse(SCAN))
    error = rejected_for(sch, "transform_layout", "t", "lambda i, j: (j // 3, j % 3, i)")
    assert {p.requirement for p in error.problems} == {CommonRequirement.SCANS}
    assert "stores one element of 't' for each value of 'vj'" in str(error)
    sch.transform_layout("t", "lambda i, j: (j, i)")
    assert violations(sch.module) == ()
