"""Findings in kernels of a few statements: each defect alone, and a similar correct kernel."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.errors import LaunchError
from tilewright.codegen.simt import NO_CHECKS, BufferArgument, Checks, Report, Steps, run_kernel
from tilewright.codegen.simt.findings import (
    DataRaceError,
    MisalignedAccessError,
    OutOfBoundsAccessError,
    SimtDivergentBarrierError,
    TrapError,
    UninitializedReadError,
)
from tilewright.errors import MalformedProgramError
from tilewright.ir.dtype import f32, i32
from tilewright.ir.identity import STEP_STRIDE
from tilewright.ir.symbolic import as_expr, eq, var
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicUpdate,
    Barrier,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    If,
    Index,
    Load,
    Loop,
    MachineOp,
    Predicate,
    Reg,
    Return,
    Select,
    Source,
    Store,
)
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.ir.thread.types import (
    GLOBAL_POINTER,
    POINTER,
    SHARED_POINTER,
    VectorType,
)

F32, I32 = VectorType(f32), VectorType(i32)
THREADS = 64

x = var("x", lower=0, upper=THREADS - 1)
block = var("b", lower=0)
shared = Reg("tile", SHARED_POINTER)
out = Reg("out", GLOBAL_POINTER)
TILE = Allocate(shared, 4 * THREADS)
BARRIER = Barrier("block")


def at(base, element, alignment=4):
    return Address(base, as_expr(element * 4), alignment)


def put(base, element, value=None, **options):
    return Store(at(base, element), Const(1.0, F32) if value is None else value, **options)


def get(base, element):
    return Load(F32, at(base, element))


def kernel(*body, blocks=1, threads=THREADS):
    axes = (
        ThreadAxis("blockIdx.x", block, as_expr(blocks)),
        ThreadAxis("threadIdx.x", x, as_expr(threads)),
    )
    return ThreadFunc("probe", (out,), body, launch=LaunchGrid(axes))


def run(*body, blocks=1, threads=THREADS, size=2 * THREADS, **options) -> Report:
    function = kernel(*body, blocks=blocks, threads=threads)
    data = np.zeros(size, np.float32)
    return run_kernel(function, (blocks, 1, 1), (threads, 1, 1), [data], **options)


def kinds(report: Report) -> list[str]:
    return [f.kind for f in report.findings]


def test_a_value_of_another_thread_needs_a_barrier():
    neighbor = put(out, x, get(shared, (x + 1) % THREADS))
    assert kinds(run(TILE, put(shared, x), BARRIER, neighbor)) == []
    report = run(TILE, put(shared, x), neighbor)
    assert kinds(report) == ["race"]
    finding = report.findings[0]
    assert finding.cell.buffer == "tile"
    assert {t.thread[0] for t in finding.threads} == {0, 1}
    assert (finding.site.kind, finding.other.kind) == ("store", "store")
    with pytest.raises(DataRaceError, match="no barrier orders the two accesses"):
        raise report.error()


def test_a_write_after_a_read_of_another_thread_needs_a_barrier():
    read = put(out, x, get(shared, (x + 1) % THREADS))
    again = put(shared, x, Const(2.0, F32))
    assert kinds(run(TILE, put(shared, x), BARRIER, read, BARRIER, again)) == []
    assert kinds(run(TILE, put(shared, x), BARRIER, read, again)) == ["race"]


def test_a_threads_own_values_need_no_barrier():
    assert kinds(run(TILE, put(shared, x), put(out, x, get(shared, x)))) == []


def test_a_warps_barrier_orders_its_threads_and_no_others():
    in_warp = put(out, x, get(shared, x // 32 * 32 + (x + 1) % 32))
    across = put(out, x, get(shared, (x + 32) % THREADS))
    warp = Barrier("warp")
    assert kinds(run(TILE, put(shared, x), warp, in_warp)) == []
    assert kinds(run(TILE, put(shared, x), in_warp)) == ["race"]
    assert kinds(run(TILE, put(shared, x), warp, across)) == ["race"]


def test_readers_of_several_epochs_do_not_hide_each_other():
    """Warp 0 reads before its barrier, then after it; warp 1's write races with either read."""
    warp = Barrier("warp")
    first = If(Predicate(x < 32), (put(out, x, get(shared, 0)), warp, put(out, x, get(shared, 0))))
    second = If(Predicate(eq(x, 40)), (put(shared, 0),))
    start = If(Predicate(x < 1), (put(shared, 0),))
    report = run(TILE, start, BARRIER, first, second)
    assert "race" in kinds(report)
    own = If(Predicate(x < 1), (put(shared, 0, Const(3.0, F32)),))
    assert kinds(run(TILE, start, BARRIER, first, BARRIER, own)) == []


def test_two_threads_writing_one_element_race_unless_the_values_are_equal():
    thread = Cast(F32, Index(x))
    assert kinds(run(put(out, 0, thread))) == ["race"]
    same = run(put(out, 0))
    assert kinds(same) == ["redundant write"]
    assert same.error() is None


def test_blocks_are_never_ordered():
    mine = put(out, block)
    assert kinds(run(If(Predicate(x < 1), (mine,)), blocks=3)) == []
    other = If(Predicate(x < 1), (mine, put(out, 9 + block, get(out, 2 - block))))
    report = run(other, blocks=3, batch=THREADS)
    assert "race" in kinds(report)
    assert "accesses of different thread blocks are not ordered" in str(report)


def test_blocks_of_different_batches_race():
    body = If(Predicate(x < 1), (put(out, 0, Cast(F32, Index(block))),))
    assert kinds(run(body, blocks=4, batch=1)) == ["race"]
    assert kinds(run(body, blocks=4)) == ["race"]


def test_atomic_updates_race_with_plain_accesses_only():
    one = Const(1, I32)
    data = np.zeros(4, np.int32)
    update = AtomicUpdate("add", Address(out, as_expr(0), 4), one)
    report = run_kernel(kernel(update), (1, 1, 1), (THREADS, 1, 1), [data])
    assert (kinds(report), data[0]) == ([], THREADS)
    plain = Store(Address(out, as_expr(0), 4), one)
    report = run_kernel(kernel(update, plain), (1, 1, 1), (THREADS, 1, 1), [data])
    assert "race" in kinds(report)


def test_a_loop_without_its_second_barrier_races_in_the_second_iteration():
    k = var("k", lower=0)
    body = (put(shared, x), BARRIER, put(out, x, get(shared, (x + 1) % THREADS)))
    loop = Loop(k, as_expr(0), as_expr(3), body, source=Source(7, "k"))
    closed = Loop(k, as_expr(0), as_expr(3), (*body, BARRIER), source=Source(7, "k"))
    report = run(TILE, loop)
    assert kinds(report) == ["race"]
    assert report.findings[0].site.loops == ("k",)
    assert kinds(run(TILE, closed)) == []


def test_a_barrier_that_some_threads_do_not_reach():
    report = run(If(Predicate(x < 40), (BARRIER,)))
    assert kinds(report) == ["divergent barrier"]
    assert "40 of 64 threads of a block reach the barrier" in report.findings[0].message
    with pytest.raises(SimtDivergentBarrierError):
        raise report.error()


def test_a_barrier_after_some_threads_have_returned():
    report = run(If(Predicate(x < 40), (Return(),)), BARRIER)
    assert kinds(report) == ["divergent barrier"]
    assert "does not, because it has returned" in report.findings[0].message


def test_a_loop_whose_extent_differs_between_threads():
    k = var("k", lower=0)
    assert kinds(run(Loop(k, as_expr(0), x, (BARRIER,)))) == ["divergent barrier"]
    assert kinds(run(Loop(k, as_expr(0), block + 1, (BARRIER,)), blocks=2)) == []


def test_a_branch_that_whole_blocks_take_is_not_divergent():
    assert kinds(run(If(Predicate(block < 1), (BARRIER,)), blocks=3)) == []


def test_a_divergent_barrier_orders_nothing():
    half = If(Predicate(x < 32), (BARRIER,))
    report = run(TILE, put(shared, x), half, put(out, x, get(shared, (x + 1) % THREADS)))
    assert set(kinds(report)) == {"divergent barrier", "race"}


def test_shared_and_local_memory_is_uninitialized():
    local = Reg("mine", POINTER)
    report = run(TILE, put(out, x, get(shared, x)))
    assert kinds(report) == ["uninitialized read"]
    with pytest.raises(UninitializedReadError, match=r"shared tile\[0\]"):
        raise report.error()
    assert kinds(run(Allocate(local, 16), put(out, x, get(local, 2)))) == ["uninitialized read"]
    some = If(Predicate(x < 10), (put(local, 2),))
    report = run(Allocate(local, 16), some, put(out, x, get(local, 2)))
    assert (kinds(report), report.findings[0].count) == (["uninitialized read"], THREADS - 10)
    assert kinds(run(Allocate(local, 16), put(local, 2), put(out, x, get(local, 2)))) == []


COPY = Reg("copy", SHARED_POINTER)
SOME = If(Predicate(x < 10), (put(shared, x),))
"""Ten threads write their elements of the tile."""


def copies(*between):
    """Copy a partly written tile to a second one; the last threads copy uninitialized elements."""
    return (TILE, Allocate(COPY, 4 * THREADS), SOME, *between, put(COPY, x, get(shared, x)))


def test_a_copy_of_an_uninitialized_element_that_is_not_used_has_no_finding():
    assert kinds(run(*copies())) == []
    used = If(Predicate(x < 10), (put(out, x, get(COPY, x)),))
    assert kinds(run(*copies(), used)) == []
    again = put(COPY, x, Const(2.0, F32))
    assert kinds(run(*copies(), again, put(out, x, get(COPY, x)))) == []


ADDED = Binary("add", get(COPY, x), Const(1.0, F32))
USES = {
    "output": put(out, x, get(COPY, x)),
    "arithmetic": put(shared, x, ADDED),
    "branch": If(Compare("lt", get(COPY, x), Const(1.0, F32)), (put(out, x),)),
    "second copy": put(out, x, get(shared, x)),
}


@pytest.mark.parametrize("use", USES)
def test_a_use_of_a_copied_uninitialized_element_is_reported_with_its_origin(use):
    back = (put(shared, x, get(COPY, x)),) if use == "second copy" else ()
    report = run(*copies(), *back, USES[use])
    assert (kinds(report), report.findings[0].count) == (["uninitialized read"], THREADS - 10)
    with pytest.raises(UninitializedReadError, match=r"a copy of shared tile\[10\]"):
        raise report.error()


def test_a_register_holds_a_copy_of_an_uninitialized_element():
    held = Reg("held", F32)
    move = (TILE, SOME, Assign(held, get(shared, x)))
    assert kinds(run(*move)) == []
    assert kinds(run(*move, If(Predicate(x < 10), (put(out, x, held),)))) == []
    report = run(*move, put(out, x, held))
    assert (kinds(report), report.findings[0].count) == (["uninitialized read"], THREADS - 10)
    report = run(*move, put(shared, x, Binary("add", held, Const(1.0, F32))))
    assert kinds(report) == ["uninitialized read"]
    again = Assign(held, Const(1.0, F32))
    assert kinds(run(*move, again, put(out, x, held))) == []


def test_a_selection_moves_the_selected_value():
    chosen = Select(Predicate(x < 10), get(shared, x), Const(0.0, F32))
    assert kinds(run(TILE, SOME, put(out, x, chosen))) == []
    other = Select(Predicate(x < 11), get(shared, x), Const(0.0, F32))
    assert kinds(run(TILE, SOME, put(out, x, other))) == ["uninitialized read"]


@pytest.mark.parametrize("temporary", [False, True])
def test_a_copy_to_global_memory_is_a_use_unless_only_the_kernel_reads_it(temporary):
    buffer = BufferArgument(np.zeros(4 * THREADS, np.uint8), 4, (THREADS,), False, True, temporary)
    function = kernel(TILE, SOME, put(out, x, get(shared, x)))
    report = run_kernel(function, (1, 1, 1), (THREADS, 1, 1), [buffer])
    assert kinds(report) == ([] if temporary else ["uninitialized read"])


def test_an_output_is_uninitialized_if_the_argument_declares_it():
    data = np.zeros(THREADS, np.float32)
    body = put(out, x, Binary("add", get(out, x), Const(1.0, F32)))
    buffer = BufferArgument.of(data, defined=False)
    report = run_kernel(kernel(body), (1, 1, 1), (THREADS, 1, 1), [buffer])
    assert kinds(report) == ["uninitialized read"]
    assert kinds(run(body)) == []


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_element_outside_its_buffer(shift):
    report = run(put(out, x + shift), size=THREADS)
    assert kinds(report) == ["out of bounds"]
    finding = report.findings[0]
    assert finding.count == 1
    assert finding.cell.element == (-1,) if shift < 0 else (THREADS,)
    with pytest.raises(OutOfBoundsAccessError, match="the buffer has 64 elements"):
        raise report.error()


def test_elements_out_of_bounds_read_as_zero_and_are_not_written():
    data = np.arange(4, dtype=np.float32)
    body = put(out, x, Binary("add", get(out, x + 2), Const(1.0, F32)))
    report = run_kernel(kernel(body, threads=4), (1, 1, 1), (4, 1, 1), [data])
    assert data.tolist() == [3, 4, 1, 1]
    assert kinds(report).count("out of bounds") == 1


def test_masked_lanes_may_be_out_of_bounds():
    lane = var("lane", lower=0, upper=3)
    four = VectorType(f32, 4)
    mask = Predicate(x * 4 + lane < 6, lane, 4)
    value = Load(four, Address(out, x * 16, 4), mask=mask)
    masked = Store(Address(out, x * 16, 4), value, mask=mask)
    assert kinds(run(masked, threads=2, size=6)) == []
    assert kinds(run(Store(masked.address, value), threads=2, size=6)) == ["out of bounds"]


def test_a_vector_must_be_aligned():
    four = Const(1.0, VectorType(f32, 4))
    good = Store(Address(out, x * 16, 16), four)
    bad = Store(Address(out, x * 16 + 4, 16), four)
    assert kinds(run(good, size=4 * THREADS + 4)) == []
    report = run(bad, size=4 * THREADS + 4)
    assert kinds(report) == ["misaligned"]
    with pytest.raises(MisalignedAccessError, match="not a multiple of 16 bytes"):
        raise report.error()


def test_a_read_only_buffer_is_not_written():
    data = np.zeros(THREADS, np.float32)
    data.flags.writeable = False
    report = run_kernel(kernel(put(out, x)), (1, 1, 1), (THREADS, 1, 1), [data])
    assert kinds(report) == ["out of bounds"]
    assert "read-only" in report.findings[0].message


@pytest.mark.parametrize(
    ("stride", "conflicts"), [(1, 0), (2, 1), (3, 0), (4, 3), (16, 15), (32, 31), (33, 0)]
)
def test_bank_conflicts_grow_with_the_common_divisor_of_stride_and_banks(stride, conflicts):
    tile = Allocate(shared, 4 * stride * 32)
    report = run(tile, put(shared, x * stride), threads=32)
    assert report.bank_conflicts == conflicts
    (counter,) = [c for c in report.counters if c.space == "shared"]
    assert (counter.requests, counter.cycles) == (1, 1 + conflicts)


def test_threads_that_read_one_word_do_not_conflict():
    report = run(TILE, put(shared, x), put(out, x, get(shared, x // 32 * 32)), threads=32)
    assert report.bank_conflicts == 0


def test_vector_accesses_are_split_into_phases():
    """With 16 bytes per thread, eight threads use the 128 bytes per cycle of all banks."""
    tile, four = Allocate(shared, 16 * 32), Const(1.0, VectorType(f32, 4))
    report = run(tile, Store(Address(shared, x * 16, 16), four), threads=32)
    (counter,) = report.counters
    assert (counter.requests, counter.cycles) == (4, 4)


@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (1, 4), (2, 8), (8, 32), (100, 32)])
def test_sectors_grow_with_the_stride(stride, sectors):
    report = run(put(out, x * stride), threads=32, size=32 * 101)
    (counter,) = report.counters
    needed = 1 if stride == 0 else 4
    assert (counter.sectors, counter.excess) == (sectors, sectors - needed)


def test_the_table_names_statements_by_their_loops():
    k = var("k", lower=0)
    body = put(out, x + k, source=Source(5, "copy"))
    report = run(Loop(k, as_expr(0), as_expr(2), (body,), source=Source(4, "k_0")))
    assert "k_0/copy" in report.table()
    assert report.to_json()["traffic"][0]["requests"] == 4


def test_a_finding_names_the_step_that_created_its_block():
    source = Source(3 * STEP_STRIDE + 1, "copy")
    bad = put(out, x + THREADS, source=source)
    steps = Steps(texts={3: "step 2: sch.cache_read(...)"})
    report = run(bad, size=THREADS, steps=steps)
    assert report.findings[0].site.step == "step 2: sch.cache_read(...)"
    assert "(from step 2: sch.cache_read(...))" in str(report.error())


def test_an_error_contains_all_findings():
    value = Binary("add", get(shared, x), Const(1.0, F32))
    report = run(TILE, put(out, x + THREADS, value), size=THREADS)
    error = report.error()
    assert "1 more finding" in error.message
    assert [f["kind"] for f in error.details["findings"]] == kinds(report)
    assert error.to_json()["kind"] in ("OutOfBoundsAccessError", "UninitializedReadError")


def test_checks_can_be_disabled():
    neighbor = put(out, x, get(shared, (x + 1) % THREADS))
    assert kinds(run(TILE, put(shared, x), neighbor, checks=NO_CHECKS)) == []
    only = Checks(races=True, definedness=False, traffic=False)
    report = run(TILE, put(shared, x), neighbor, checks=only)
    assert (kinds(report), report.counters) == (["race"], ())


def test_a_launch_that_does_not_match_its_kernel():
    function = kernel(put(out, x))
    data = np.zeros(THREADS, np.float32)
    with pytest.raises(LaunchError, match="expected 1 arguments, got 2"):
        run_kernel(function, (1, 1, 1), (THREADS, 1, 1), [data, 3])
    with pytest.raises(LaunchError, match="parameter 'out': expected an array, got int"):
        run_kernel(function, (1, 1, 1), (THREADS, 1, 1), [3])
    with pytest.raises(LaunchError, match="no threads"):
        run_kernel(function, (0, 1, 1), (THREADS, 1, 1), [data])
    with pytest.raises(LaunchError, match="compact row-major array, got strides"):
        run_kernel(function, (1, 1, 1), (THREADS, 1, 1), [np.zeros((8, 16), np.float32)[:, ::2]])
    with pytest.raises(LaunchError, match="not a kernel"):
        run_kernel(ThreadFunc("host", (), ()), (1, 1, 1), (1, 1, 1), [])


def test_a_trap_names_the_first_thread_that_reaches_it():
    numbers = (Index(x), Index(as_expr(40)))
    body = If(Predicate(x > 40), (MachineOp(OPERATIONS["nvidia.trap"], numbers),))
    with pytest.raises(
        TrapError, match=r"thread 41 of block 0.*value 41, exclusive upper bound 40"
    ):
        run(body)
    assert kinds(run(If(Predicate(x > 99), body.then))) == []


def test_host_statements_are_rejected_in_a_kernel():
    with pytest.raises(MalformedProgramError, match="Call"):
        run(Call("exp", ()))
    with pytest.raises(MalformedProgramError, match="'r' is read before it is assigned"):
        run(put(out, x, Reg("r", F32)))


def test_a_register_keeps_the_values_of_inactive_threads():
    reg = Reg("r", F32)
    body = (
        Assign(reg, Const(1.0, F32)),
        If(Predicate(x < 3), (Assign(reg, Const(2.0, F32)),)),
        put(out, x, reg),
    )
    data = np.zeros(8, np.float32)
    run_kernel(kernel(*body, threads=8), (1, 1, 1), (8, 1, 1), [data])
    assert data.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]
