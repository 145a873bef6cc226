"""Kernels that a GPU cannot run are refused by name, with numbers."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.gpu.errors import (
    DivergentBarrierError,
    KernelStatementError,
    LaunchLimitError,
    MemoryScopeError,
    SharedMemoryError,
    ThreadAxisError,
    UnboundKernelError,
    WarpError,
)
from tilewright.codegen.lower.gpu.sync import insert_barriers
from tilewright.codegen.lower.gpu.validate import check_warps
from tilewright.ir.dtype import f32, i32
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.target import Target
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    Const,
    If,
    Launch,
    Load,
    Loop,
    Perform,
    Predicate,
    Reg,
    Store,
    ThreadAxis,
    ThreadFunc,
)
from tilewright.ir.thread.operations.nvidia import SHUFFLE_BUTTERFLY_F32
from tilewright.ir.thread.types import GLOBAL_POINTER, SHARED_POINTER, VectorType

from tests.codegen.gpu import kernels
from tests.codegen.gpu.running import SIMT, program
from tests.codegen.gpu.test_lowering import REVERSED

COPY = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            with block("copy"):
                vi, va = spatial(i), spatial(a)
                y[vi, va] = x[vi, va]
"""

TWICE = """
@prim_func
def twice(x: Buffer[(64,), i32], y: Out[(64,), i32], z: Out[(32,), i32]):
    for a in thread(64, "threadIdx.x"):
        with block("one"):
            va = spatial(a)
            y[va] = x[va]
    for b in thread(32, "threadIdx.x"):
        with block("two"):
            vb = spatial(b)
            z[vb] = x[vb]
"""

MANY = """
@prim_func
def many(x: Buffer[(64, 32), i32], y: Out[(64, 32), i32]):
    for a in thread(64, "threadIdx.y"):
        for b in thread(32, "threadIdx.x"):
            with block("copy"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = x[va, vb]
"""

LARGE = """
@prim_func
def large(x: Buffer[(128, 512), i32], y: Out[(128, 512), i32]):
    s = alloc((128, 512), i32, scope="shared")
    for i in range(128):
        for a in thread(512, "threadIdx.x"):
            with block("keep"):
                vi, va = spatial(i), spatial(a)
                s[vi, va] = x[vi, va]
    for j in range(128):
        for b in thread(512, "threadIdx.x"):
            with block("turn"):
                wj, wb = spatial(j), spatial(b)
                y[wj, wb] = s[127 - wj, 511 - wb]
"""


def refused(text, error, *parts, target=SIMT):
    """Lower a program, and check what is said."""
    with pytest.raises(error) as caught:
        lower_kernel(program(text), target)
    for part in parts:
        assert part in str(caught.value), str(caught.value)
    return caught.value


def test_a_kernel_without_threads():
    text = COPY.replace('thread(n, "blockIdx.x")', "range(n)").replace(
        'thread(64, "threadIdx.x")', "range(64)"
    )
    refused(text, UnboundKernelError, "no loop of 'copy' is bound", "bind(loop, 'blockIdx.x')")


def test_a_result_outside_of_the_thread_blocks():
    text = COPY.replace(
        "    for i in thread", "    with block('mark'):\n        y[0, 0] = 1\n    for i in thread"
    )
    refused(text, UnboundKernelError, "'y' is written outside of the loop bound to blockIdx.x")


def test_an_axis_that_does_not_exist():
    refused(COPY.replace("threadIdx.x", "threadIdx.q"), ThreadAxisError, "threadIdx.q", "vthread.z")


def test_two_extents_of_one_axis():
    error = refused(TWICE, ThreadAxisError, "threadIdx.x is 64 in one loop and 32 in loop 'b'")
    assert error.details == {"extents": ["64", "32"]}


def test_threads_of_unknown_number():
    text = COPY.replace('thread(n, "blockIdx.x")', 'thread(n, "threadIdx.y")')
    refused(text, ThreadAxisError, "extent n of threadIdx.y is no constant")


def test_blocks_of_a_number_that_is_not_known_before():
    text = (
        COPY.replace("range(64)", "range(64)")
        .replace(
            'for a in thread(64, "threadIdx.x")', 'for a in thread(min(64, i + 1), "blockIdx.y")'
        )
        .replace("spatial(a)", "spatial(64, a)")
    )
    refused(text, ThreadAxisError, "is not known before the launch")


def test_too_many_threads_along_an_axis():
    text = COPY.replace("64", "128").replace("threadIdx.x", "threadIdx.z")
    error = refused(text, LaunchLimitError, "threadIdx.z has extent 128, and sm_80 allows 64")
    assert error.details == {"axis": "threadIdx.z", "extent": 128, "limit": 64}


def test_too_many_threads_in_a_block():
    refused(MANY, LaunchLimitError, "threadIdx.x 32 * threadIdx.y 64 = 2048 threads", "1024")


def test_more_shared_memory_than_there_is():
    error = refused(LARGE, SharedMemoryError, "262144 bytes of shared memory (s 262144)", "166912")
    assert error.details["parts"] == {"s": 262144}
    refused(LARGE, SharedMemoryError, "232448", target=Target("cuda", arch="sm_90a"))


def test_a_register_that_another_thread_reads():
    text = REVERSED.replace('scope="shared"', 'scope="local"')
    refused(text, MemoryScopeError, "'s' is local, but a thread reads what another one wrote")


def test_memory_of_a_block_that_another_block_reads():
    text = REVERSED.replace("s[wi, 63 - wb]", "s[n - 1 - wi, wb]")
    refused(text, MemoryScopeError, "'s' is read in other thread blocks", "blockIdx.x")


FILLED = """
n, m = symbols("n m", lower=1)

@prim_func
def filled(x: Buffer[(n,), i32], y: Out[({size},), i32]):
    for i in thread({size}, "blockIdx.x"):
        with block("zero"):
            vi = spatial({size}, i)
            y[vi] = 0
    for j in thread({size}, "blockIdx.x"):
        with block("copy"):
            vj = spatial({size}, j)
            {where}
            y[{at}] = x[vj]
"""


def test_a_result_that_other_thread_blocks_touch():
    """Zeros first, then some of the elements: another block may be first."""
    text = FILLED.format(size="n + m", where="guard(j < n)", at="vj + m")
    refused(text, MemoryScopeError, "two statements touch 'y'", "another one did")


def test_a_result_whose_parts_are_apart():
    text = FILLED.format(size="2 * n", where="guard(j < n)", at="vj + n").replace(
        "            y[vi] = 0", "            guard(i < n)\n            y[vi] = 0"
    )
    lower_kernel(program(text), SIMT)


def test_a_result_that_the_same_thread_block_touches():
    text = FILLED.format(size="n", where="guard(j < n)", at="vj")
    lower_kernel(program(text), SIMT)


def test_shared_memory_of_unknown_size():
    text = REVERSED.replace('for i in thread(n, "blockIdx.x")', "for i in range(n)").replace(
        "wi, 63 - wb", "n - 1 - wi, wb"
    )
    refused(text, MemoryScopeError, "'s' has n * 64 elements, which is no constant")


def test_a_parallel_loop():
    text = COPY.replace('thread(n, "blockIdx.x")', "parallel(n)")
    refused(text, KernelStatementError, "loop 'i' is parallel, which only a CPU has")


# ---------------------------------------------------------------- written at thread level

X, ROW = var("x", lower=0, upper=63), var("row", lower=0, upper=63)
S, Y = Reg("s", SHARED_POINTER), Reg("y", GLOBAL_POINTER)
WORD = VectorType(i32)


def kernel(*body, extents=(64,)):
    """A kernel with threads along x, then y."""
    axes = tuple(
        ThreadAxis(f"threadIdx.{along}", v, as_expr(n))
        for along, v, n in zip("xy", (X, ROW), extents, strict=False)
    )
    return ThreadFunc("k", (Y,), (Allocate(S, 256), *body), launch=Launch(axes))


WRITE = Store(Address(S, X * 4, 4), Const(1, WORD))
READ = Store(Address(Y, X * 4, 4), Load(WORD, Address(S, (63 - X) * 4, 4)))


def test_a_barrier_that_some_threads_would_not_reach():
    branch = If(Predicate(X < 32), (WRITE, READ))
    with pytest.raises(DivergentBarrierError, match="needs a barrier after"):
        insert_barriers(kernel(branch))
    count = var("i", lower=0)
    loop = Loop(count, as_expr(0), X + 1, (READ, WRITE))
    with pytest.raises(DivergentBarrierError):
        insert_barriers(kernel(loop))


def test_a_barrier_is_hoisted_out_of_a_branch():
    """What some threads read has been written before the branch: the barrier stands there."""
    body = insert_barriers(kernel(WRITE, If(Predicate(X < 32), (READ,)))).body
    assert [type(s).__name__ for s in body] == ["Allocate", "Store", "Barrier", "If"]


def shuffle():
    """An exchange of registers."""
    own, other = Reg("own", VectorType(f32)), Reg("other", VectorType(f32))
    perform = Perform(SHUFFLE_BUTTERFLY_F32, (own, Const(1, WORD)), (other,))
    return Assign(own, Const(0.0, VectorType(f32))), perform


def test_an_operation_of_a_warp_that_some_threads_skip():
    assign, perform = shuffle()
    with pytest.raises(WarpError, match="needs all 32 threads of a warp"):
        check_warps(kernel(assign, If(Predicate(X < 16), (perform,))))
    with pytest.raises(WarpError, match="needs all 32 threads of a warp"):
        check_warps(kernel(assign, Loop(var("i", lower=0), as_expr(0), X, (perform,))))
    check_warps(kernel(assign, perform))


def test_warps_may_part():
    """Rows of 32 threads are warps: what all of one do alike is no parting."""
    assign, perform = shuffle()
    check_warps(kernel(assign, If(Predicate(ROW < 2), (perform,)), extents=(32, 4)))
    with pytest.raises(WarpError):
        check_warps(kernel(assign, If(Predicate(ROW < 2), (perform,)), extents=(16, 4)))


@pytest.fixture(scope="module")
def tensorized() -> str:
    """The text of a kernel whose warps do tensor instructions."""
    return str(kernels.tensor_matmul())


def test_an_instruction_of_a_warp_wants_32_threads(tensorized):
    text = tensorized.replace('thread(32, "threadIdx.x")', 'thread(16, "threadIdx.x")')
    error = refused(text, WarpError, "so threadIdx.x has to be 32; it is 16")
    assert error.details == {"extent": "16"}


def test_an_instruction_of_a_warp_is_no_threads_own(tensorized):
    text = (
        tensorized.replace('"threadIdx.x"', '"threadIdx.q"')
        .replace('thread(2, "threadIdx.y")', 'thread(32, "threadIdx.x")')
        .replace('thread(32, "threadIdx.q")', 'thread(2, "threadIdx.y")')
    )
    refused(text, WarpError, "is done by a whole warp, but stands in a loop bound to threadIdx.x")


def test_a_tensorized_block_that_was_changed(tensorized):
    """The annotation promises what the body no longer does."""
    text = tensorized.replace("C_pad[vi, vj] += f32(", "C_pad[vi, vj] += f32(2.0) * f32(")
    refused(text, KernelStatementError, "is not what cuda.mma.m16n8k16.f32.f16 computes")


def test_threads_that_are_no_whole_warps():
    assign, perform = shuffle()
    with pytest.raises(WarpError, match="a block has 48"):
        check_warps(kernel(assign, perform, extents=(48,)))
