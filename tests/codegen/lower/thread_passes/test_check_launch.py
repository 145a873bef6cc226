"""Launch limits, shared memory, and warps of GPU kernels."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.thread_passes.check_launch import (
    CheckLaunch,
    check_warps,
    shared_parts,
)
from tilewright.ir.kernel_errors import SharedMemoryError, WarpError
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import Allocate, If, Loop, Predicate, Reg
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.types import SHARED_POINTER
from tilewright.target.target import Target

from tests.codegen.lower.thread_passes.kernels import READ, ROW, WRITE, X, kernel, shuffle

SIMT = Target("simt")
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


def test_golden(golden):
    """A kernel that is not changed, and one with an exchange that half of each warp skips."""
    assign, exchange = shuffle()
    good = kernel(assign, exchange, WRITE, READ, extents=(32, 4))
    assert CheckLaunch().run(good, SIMT) is good
    parts = "".join(f"{name}: {size} bytes\n" for name, size in shared_parts(good.body).items())
    bad = kernel(assign, If(Predicate(X < 16), (exchange,)), extents=(32, 4))
    with pytest.raises(WarpError) as caught:
        CheckLaunch().run(bad, SIMT)
    golden(
        "check_launch.txt",
        f"{to_text(good)}\n-- check_launch accepts it; shared memory --\n\n{parts}\n\n"
        f"{to_text(bad)}\n-- check_launch rejects it --\n\n{caught.value.message}\n",
    )


@pytest.mark.parametrize(
    ("target", "limit"), [(SIMT, 166912), (Target("cuda", arch="sm_90a"), 232448)]
)
def test_shared_memory(target, limit):
    with pytest.raises(SharedMemoryError, match=r"262144 bytes of shared memory \(s 262144\)") as e:
        lower_kernel(parse(LARGE).prims[0], target)
    known = {"bytes": 262144, "limit": limit, "parts": {"s": 262144}}
    assert e.value.details == {**known, "pass": "check_launch"}


def test_shared_memory_lists_the_largest_part_first():
    more = Allocate(Reg("t", SHARED_POINTER), 200_000)
    with pytest.raises(SharedMemoryError, match=r"\(t 200000 \+ s 256\)"):
        CheckLaunch().run(kernel(more), SIMT)
    assert CheckLaunch().run(kernel(), SIMT)


def test_a_warp_level_operation_that_some_threads_skip():
    assign, exchange = shuffle()
    message = "requires all 32 threads of a warp, but control flow is divergent there"
    with pytest.raises(WarpError, match=message):
        check_warps(kernel(assign, If(Predicate(X < 16), (exchange,))))
    with pytest.raises(WarpError, match=message):
        check_warps(kernel(assign, Loop(var("i", lower=0), as_expr(0), X, (exchange,))))
    check_warps(kernel(assign, exchange))


def test_control_flow_that_is_uniform_in_each_warp():
    """Rows of 32 threads are warps; rows of 16 threads are halves of warps."""
    assign, exchange = shuffle()
    check_warps(kernel(assign, If(Predicate(ROW < 2), (exchange,)), extents=(32, 4)))
    with pytest.raises(WarpError):
        check_warps(kernel(assign, If(Predicate(ROW < 2), (exchange,)), extents=(16, 4)))


def test_a_partial_warp():
    assign, exchange = shuffle()
    with pytest.raises(WarpError, match=r"multiple of 32 .* a block has 48") as caught:
        check_warps(kernel(assign, exchange, extents=(48,)))
    assert caught.value.details == {"threads": 48}
    check_warps(kernel(WRITE, extents=(48,)))
