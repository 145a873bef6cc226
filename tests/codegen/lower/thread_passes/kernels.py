"""Small kernels in thread IR, with 64 or more threads per block."""

from __future__ import annotations

from tilewright.ir.dtype import f32, i32
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    Const,
    Load,
    MachineOp,
    Reg,
    Store,
)
from tilewright.ir.thread.operations.nvidia import SHUFFLE_BUTTERFLY_F32
from tilewright.ir.thread.types import GLOBAL_POINTER, SHARED_POINTER, VectorType

X, ROW = var("x", lower=0, upper=63), var("row", lower=0, upper=63)
"""The indices along threadIdx.x and threadIdx.y."""

S, Y = Reg("s", SHARED_POINTER), Reg("y", GLOBAL_POINTER)
WORD = VectorType(i32)


def kernel(*body, extents=(64,)):
    """Return a kernel with 256 bytes of shared memory and threads along x, then y."""
    axes = tuple(
        ThreadAxis(f"threadIdx.{along}", v, as_expr(n))
        for along, v, n in zip("xy", (X, ROW), extents, strict=False)
    )
    return ThreadFunc("k", (Y,), (Allocate(S, 256), *body), launch=LaunchGrid(axes))


WRITE = Store(Address(S, X * 4, 4), Const(1, WORD))
"""Each thread writes its element of shared memory."""

READ = Store(Address(Y, X * 4, 4), Load(WORD, Address(S, (63 - X) * 4, 4)))
"""Each thread reads the element of another thread."""


def shuffle():
    """Return an assignment and a warp-level exchange of the assigned register."""
    own, other = Reg("own", VectorType(f32)), Reg("other", VectorType(f32))
    exchange = MachineOp(SHUFFLE_BUTTERFLY_F32, (own, Const(1, WORD)), (other,))
    return Assign(own, Const(0.0, VectorType(f32))), exchange
