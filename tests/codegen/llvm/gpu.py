"""Handwritten thread-IR kernels for the tests of the NVPTX generator."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm import assembly, emit_module, image
from tilewright.codegen.nvidia import Image
from tilewright.ir.symbolic import Var, as_expr, ceildiv, var
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.nodes import Reg, Stmt
from tilewright.ir.thread.types import GLOBAL_POINTER
from tilewright.target.target import Target

THREADS = 128

X, Y = Reg("x", GLOBAL_POINTER), Reg("y", GLOBAL_POINTER)
N = var("n", lower=0)
BLOCK, THREAD = var("block"), var("thread")
INDEX = BLOCK * THREADS + THREAD


def kernel(body: Sequence[Stmt], name: str = "k", *, threads: int = THREADS) -> ThreadFunc:
    """Return a kernel with parameters ``x``, ``y``, and ``n``, and one thread per element."""
    axes = (
        ThreadAxis("blockIdx.x", BLOCK, ceildiv(N, threads)),
        ThreadAxis("threadIdx.x", THREAD, as_expr(threads)),
    )
    params: tuple[Var | Reg, ...] = (X, Y, N)
    return ThreadFunc(name, params, tuple(body), None, distinct=(X, Y), launch=LaunchGrid(axes))


def ptx(function: ThreadFunc, arch: str = "sm_80") -> str:
    target = Target("cuda", arch=arch)
    return assembly(emit_module([function], target), target)


def assembled(function: ThreadFunc, arch: str = "sm_80") -> Image:
    target = Target("cuda", arch=arch)
    return image(emit_module([function], target), target)
