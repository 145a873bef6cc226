"""Steps that would make iterations of concurrent loops dependent, or break the form of a scan."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, StepError
from tilewright.schedules.requirement import CommonRequirement
from tilewright.target.target import Target

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


RAGGED = """
n, l = symbols("n l", lower=0)

@prim_func
def f(off: Buffer[(n + 1,), i32], x: Buffer[(l,), f32], y: InOut[(n,), f32]):
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(hi - lo):
                    with block("s"):
                        vi, vl, vj = spatial(i), spatial(l + 1, lo), reduce(l, j)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vl + vj]
"""


def threads_with_segments() -> Schedule:
    sch = Schedule(parse(RAGGED), target=Target("simt"))
    sch.schedule_kernel("f")
    sch.cache_read("s", "x", "shared")
    return sch


def test_threads_do_not_copy_beyond_their_segments() -> None:
    """The copy for a padded loop reads elements that the next thread writes."""
    sch = threads_with_segments()
    assert violations(sch.module) == ()
    sch.cache_read("s", "x_shared", "local")
    (*_, own) = sch.get_loops("copy_x_shared")
    sch.split(own, factors=(None, 64))
    error = rejected_for(sch, "cache_read", "copy_x_shared", "x_shared", "global")
    assert [p.requirement for p in error.problems] == [CommonRequirement.INDEPENDENT]
    assert "write x_shared at loaded indices" in str(error)
    assert "loop 'i_1' is bound to threadIdx.x" in str(error)


def test_threads_do_not_share_a_copy_whose_layout_mixes_segments() -> None:
    sch = Schedule(parse(RAGGED), target=Target("simt"))
    sch.schedule_kernel("f")
    error = rejected_for(sch, "cache_read", "s", "x", "shared", "lambda d: (d // 3, d % 3)")
    assert "is bound to threadIdx.x" in str(error)
    sch.cache_read("s", "x", "local", "lambda d: (d // 3, d % 3)")
    assert violations(sch.module) == ()


REDUCED = """
n, k = symbols("n k", lower=0)

@prim_func
def f(x: Buffer[(n, k), i32], e: Out[(n,), i32], p: Out[(n,), i64]):
    for j in range(k):
        for i in range(n):
            with block("find"):
                vi, vj = spatial(i), reduce(j)
                with init(): e[vi], p[vi] = i32(-2147483648), 9223372036854775807
                e[vi], p[vi] = argmax(x[vi, vj], vj)
"""

SUMMED = """
n, k = symbols("n k", lower=0)

@prim_func
def f(x: Buffer[(n, k), i32], e: Out[(n,), i32]):
    for j in range(k):
        for i in range(n):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): e[vi] = 0
                e[vi] += x[vi, vj]
"""


@pytest.mark.parametrize("text", [REDUCED, SUMMED], ids=["argmax", "sum"])
@pytest.mark.parametrize("verb", ["split", "loop_partition"])
def test_threads_combine_a_reduction_of_one_block(text: str, verb: str) -> None:
    """Each part of the loop would be a block that initializes its elements."""
    sch = Schedule(parse(text), target=Target("simt"))
    outer, inner = sch.split("j", (None, 4))
    sch.bind(inner, "threadIdx.x")
    rest = ("i", (None, 5), "epilogue") if verb == "split" else ("i", "n // 2")
    error = rejected_for(sch, verb, *rest)
    assert {p.requirement for p in error.problems} == {CommonRequirement.INDEPENDENT}
    assert "loop 'j_1' is bound to threadIdx.x, but it binds a reduction of block" in str(error)
    sch.split("i", (None, 5))
    sch.reorder((outer, "i_0"))
    assert violations(sch.module) == ()


def test_a_step_elsewhere_keeps_the_loops_of_a_reduction() -> None:
    """Steps check only the loops that they change."""
    sch = Schedule(parse(REDUCED), target=Target("simt"))
    sch.bind(sch.split("j", (None, 4))[1], "threadIdx.x")
    sch.split("j_0", (None, 5), "epilogue")
    assert violations(sch.module) == ()


def test_a_loop_that_writes_at_integers_read_outside_of_it() -> None:
    """The parts of the inner loop write a segment; that they are separate is not proved."""
    sch = Schedule(
        parse("""
n, l = symbols("n l", lower=1)

@prim_func
def f(off: Buffer[(n + 1,), i32], x: Buffer[(l,), f32], z: InOut[(l,), f32], w: Buffer[(n,), f32]):
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(hi - lo):
                    with block("s"):
                        vl, vj = spatial(l + 1, lo), spatial(l, j)
                        z[vl + vj] = max(x[vl + vj], 0.0)
""")
    )
    outer, inner = sch.split("j", (None, 16))
    sch.vectorize(inner)
    sch.reorder((inner, outer))
    assert violations(sch.module) == ()
    error = rejected_for(sch, "split", outer, (None, 4, 4), "epilogue")
    assert {p.requirement for p in error.problems} == {CommonRequirement.INDEPENDENT}
    sch.split(outer, (None, 4))
    assert violations(sch.module) == ()
